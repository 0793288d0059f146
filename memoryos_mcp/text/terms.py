"""Splits text into words for keyword search, for lists of keywords, and for comparisons.

Text in scripts without spaces (Chinese, Japanese, Thai, ...) is split into overlapping pairs of characters, the usual
way to search it without a dictionary. Korean text is also split in this way, because its particles are attached to
words. The last character of each run of such text is also indexed alone, so that a prefix search finds every character.

The word index stems text as English. Words of other languages are stemmed before they are indexed. Words in Cyrillic,
Arabic and Greek script are always stemmed. Words in Latin script are stemmed if the text does not seem to be English
(see `is_foreign`). A short query does not reveal its language. A search therefore looks for each word in Latin script
both with and without this stemming.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Set

from memoryos_mcp.text.stemming import is_latin, latin_stem, script_stem
from memoryos_mcp.text.stemming import stem as stem

# A page without vectors is about a query only if it contains this share of the query's words; rare words count more.
ABOUT_WORD_SHARE = 0.5
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
# Vowel signs and accents below U+0E00, which ``\w`` does not match.
_MARKS = "".join(char for char in map(chr, range(0x300, 0xE00)) if unicodedata.category(char) in {"Mn", "Mc"})
_LETTERS = rf"[^\W_{_UNSPACED}]+(?:[{_MARKS}]+[^\W_{_UNSPACED}]*)*"
_WORD = re.compile(rf"[{_UNSPACED}]+|{_LETTERS}(?:['’]{_LETTERS})?")
_TOLD_BY = re.compile(r"[^\W\d_]+")
_ACCENTED = re.compile("[\u00df-\u024f\u1e00-\u1eff]")
_POSSESSIVE = re.compile(r"['’]s$")

STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing don down during each even ever few for from further get gets getting got
    had has have having he her here hers herself him himself his how i if in into is it its itself just let like ll
    may me might more most much must my myself no nor not now of off ok okay on once one only or other our ours
    ourselves out over own please really re same shall she should so some still such than thank thanks that the
    their theirs them themselves then there these they this those through to too under until up us ve very was we
    well were what when where which while who whom why will with would yeah yes you your yours yourself yourselves
    i'm i've i'd i'll you're you've you'll it's that's don't didn't doesn't can't won't isn't wasn't let's there's
    he's she's we're we've they're what's couldn't wouldn't shouldn't haven't hasn't aren't weren't
    """.split()
)
# The most common words of German, French, Spanish, Italian, Portuguese, Dutch, Russian and Arabic.
FOREIGN_STOP_WORDS = frozenset(
    """
    aber alle als also am an auch auf aus bei bin bis bist da dann das dass daß dein deine dem den denn der des dich die
    dir doch du ein eine einem einen einer es für ganz gegen gibt habe haben hast hat hatte heute hier ich ihm ihn ihr
    ihre im immer ist ja jetzt kann kannst kein keine können machen mal man mehr mein meine meinem meinen meiner mich
    mir mit morgen muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine sich sie sind über um und uns
    unser unter viel vom von vor war waren was weil wenn wer werde werden wie wieder will wir wird wo würde zu zum zur
    ai au aussi avec avez avoir bien car ce cela ces cette chez ci comme dans de deux donc elle elles en est et était
    être fait faire il ils j'ai j'aime je jour la le les leur lui ma mais me mes moi mon même ne nos notre nous on ont
    ou où par pas peu plus pour quand que quel quelle qui sa sans se ses si son sont suis sur ta te tes toi ton toujours
    tout tous toute très tu un une vos votre vous c'est d'un d'une l'on n'est qu'il s'il aujourd'hui al algo ante así
    aunque bueno cada como cómo con cual cuando cuándo del desde día donde dónde dos él ella ellos entre era eres esa
    ese eso esta está están estar este esto estoy fue gracias gusta gustan ha hacer hasta hay hoy las lo los mi mis
    mucho muy más nada ni no o para pero poco por porque puedo qué quiero ser sí sin sobre soy su sus también tan tengo
    ti tiene todo todos tus una unas uno unos usted vamos y ya yo che chi cosa dei della delle di e è fa gli ho i in io
    loro mia mio molto nel nella non per perché più quando questa questo sei sono sta stato sua suo tra tuo vi ao aos as
    às até com ela ele em eu foi isso já mas meu minha muito na não nas num os pela pelo quem são sem só sou também tem
    tenho tua uma você а без более бы был была были было быть в вам вас весь во вот все всё всех вы где да даже для до
    его ее её если есть еще ещё же за и из или им их к как когда которые который кто ли мы меня мне может мой моя моё
    мои на надо нам нас не него нет ни но ну о об он она они оно от очень по под после потом потому при про с сам свой
    себя сейчас со так также там тебя тебе тем то тоже только ты у уже хочу чем что чтобы эта эти это этот я сегодня
    вчера просто нужно welche welcher welchem welchen welches wann warum wieso woher wohin worum womit wofür wessen wem
    wen dieser diese dieses diesem diesen jeder jede jedes euch euer eure unsere unserem unseren unserer ihrem ihren
    ihrer seinem seinen seiner deinem deinen deiner wurde wurden worden sollte soll musste konnte wollte hatten gewesen
    beim ins ans quels quelles lequel laquelle combien comment pourquoi lorsque puis encore aux cet étaient avait
    avaient cuál cuáles cuánto cuántos cuánta cuántas quién quiénes adónde cuyo nuestro nuestra nuestros nuestras estaba
    estaban había fueron quale quali quanto quanti quanta quante cui dove come anche nostro nostra nostri nostre erano
    qual quais quantos quantas onde nosso nossa estava eram foram dela dele nessa nesse aan bij dat dan dit deze een er
    geen haar heb hebben heeft hem het hij hoe hun ik is jij jouw kan kon maar mag met mij mijn moet naar niet nog nu of
    om omdat ons onze ook op over toch toen tot uit uw van veel voor waar waarom wanneer wat we wel welk welke werd wij
    wil zal ze zich zij zijn zo zonder zou какой какая какое какие какого какому каком какую каких каким какими сколько
    куда откуда почему зачем чей чья чьё чьи кого кому кем чего чему моего моей моему моим моих наш наша наше наши нашей
    нашего нами тот та те того той этого этой этом этих من في على إلى الى عن مع ما ماذا متى أين اين كيف لماذا كم أي اي
    أية هل هو هي هم هن أنا انا نحن أنت انت أنتم هذا هذه ذلك تلك هؤلاء الذي التي الذين اللذين كان كانت كنت كنا يكون تكون
    قد لقد لا لم لن ليس إن ان أن إنه أنه لكن ثم أو او و بل حتى إذا اذا لو كل بعض غير بعد قبل عند عندما حين حول بين فوق
    تحت منذ لي لك له لها لنا لكم لهم بي به بها فيه فيها منه منها عليه عليها إليه إليها عني عندي معي معه معها عم عمّ
    """.split()
)
# Foreign stop words that also occur in English text: as English words, in names, or as abbreviations.
_ENGLISH_TOO = frozenset(
    """
    ante bin car cet che chi com come comment con das dei del dem den des die dir dos dove ella elle era eras este hat
    hay her his ins las les los mag main mal man mas mes met mis mit mon more nada non nos num nun ons over par pas per
    plus pour sans sein ses sin sobre son soy sua suis sur tan todo todos ton tout van von war wel wen wie wil zo zou
    """.split()
)
_TELLS_FOREIGN = frozenset(
    word for word in FOREIGN_STOP_WORDS - STOP_WORDS - _ENGLISH_TOO if len(word) > 2 or not word.isascii()
)
_ALL_STOP_WORDS = STOP_WORDS | FOREIGN_STOP_WORDS
_TELLS_ENGLISH = STOP_WORDS - FOREIGN_STOP_WORDS
# In the index, this mark follows the stem of a foreign word in Latin script, so that the stem differs from English
# words. The index treats this private-use character as a letter.
_MARK = "\ue000"


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and lower-cased form of each word in an NFKC-normalised text.

    Text in a script without spaces is split into pairs of characters.
    """
    for match in _WORD.finditer(text):
        word, start = match[0].lower(), match.start()
        if _UNSPACED_RUN.match(word):
            for place, pair in enumerate(_pairs(word)):
                yield start + place, start + place + len(pair), pair
        else:
            yield start, match.end(), _POSSESSIVE.sub("", word)


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order and in lower case.

    Text in a script without spaces is split into pairs of characters.
    """
    return [word for _, _, word in spans(_normal(text))]


def is_foreign(text: str) -> bool:
    """Return whether ``text`` has more foreign function words and accented words than English function words."""
    found = _TOLD_BY.findall(text.lower())
    if text.isascii() and _TELLS_FOREIGN.isdisjoint(found):
        return False
    foreign = sum(word in _TELLS_FOREIGN for word in found)
    if not text.isascii():
        foreign += sum(1 for word in found if _ACCENTED.search(word) and word not in _TELLS_FOREIGN)
    return foreign > 0 and foreign > sum(word in _TELLS_ENGLISH for word in found)


def stop_words(text: str) -> Set[str]:
    """Return the stop words for ``text``: the English ones if the text is English, otherwise those of all languages."""
    return _ALL_STOP_WORDS if is_foreign(text) else STOP_WORDS


def is_content(word: str, stops: Set[str]) -> bool:
    """Return whether a word is a content word: not a stop word, and not a single Latin letter or digit."""
    return word not in stops and (len(word) > 1 or not word.isascii())


def content_words(text: str) -> list[str]:
    """Return the words of ``text`` in order, without stop words and without single Latin letters and digits."""
    stops = stop_words(text)
    return [word for word in words(text) if is_content(word, stops)]


def query_words(query: str) -> list[str]:
    """Return the content words of a query without duplicates; if there are none, return all its words."""
    return list(dict.fromkeys(content_words(query) or words(query)))


def is_unspaced(word: str) -> bool:
    """Return whether a word is in a script without spaces. Such words are searched for as pairs of characters."""
    return _UNSPACED_RUN.fullmatch(word) is not None


def is_prefix(word: str) -> bool:
    """Return whether a word is a single character of a script without spaces.

    The word index contains text in such scripts as pairs of characters. A single character matches all pairs that begin
    with this character.
    """
    return len(word) == 1 and is_unspaced(word)


def index_text(text: str) -> str:
    """Return ``text`` in the form in which it is added to the word index. English text in ASCII is unchanged.

    Text in a script without spaces becomes pairs of adjacent characters, and its last character is also added alone
    ("東京都" becomes "東京 京都 都"). Words of other languages become stems.
    """
    foreign = is_foreign(text)
    if text.isascii() and not foreign:
        return text
    return _WORD.sub(lambda found: _indexed(found[0], foreign=foreign), _normal(text))


def index_forms(word: str) -> tuple[str, ...]:
    """Return all forms of a word for which the word index must be searched (see `index_text`).

    ``word`` must be in the form that `words` returns.
    """
    if found := script_stem(word):
        return (found,)
    return (word, latin_stem(word) + _MARK) if is_latin(word) else (word,)


def stems(text: str) -> list[str]:
    """Return the stems of the content words of ``text``, in order, with duplicates."""
    return [stem(word) for word in content_words(text)]


def rarity(count: int, pages: int) -> float:
    """Return the rarity of a word: BM25's inverse document frequency, ``ln(1 + (N - df + 0.5) / (df + 0.5))``.

    ``N`` is ``pages``, the number of all pages. ``df`` is ``count``, the number of pages that contain the word.
    """
    return math.log(1 + (max(pages - count, 0) + 0.5) / (count + 0.5))


def _indexed(run: str, *, foreign: bool) -> str:
    if is_unspaced(run):
        return f" {' '.join([*_pairs(run), run[-1]])} "
    word = _POSSESSIVE.sub("", run.lower())
    if found := script_stem(word):
        return found
    return latin_stem(word) + _MARK if foreign and is_latin(word) else run


def _normal(text: str) -> str:
    """Normalise ``text`` (NFKC). Full-width letters, for example, become normal letters."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
