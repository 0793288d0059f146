"""Detects prompt injections: instructions to the assistant in web pages, documents or tool output.

Text with such instructions is stored and marked. No facts about the user are learned from it, and no summary quotes it.
The lists of patterns are short. They match plainly worded instructions, not instructions that are disguised to avoid
detection.
"""

import re
import unicodedata
from functools import cache

OMITTED = "[…]"
# A text is searched in pieces, so that no single search blocks other threads for long. The pieces overlap by more than
# the length of any instruction.
_PIECE_CHARS, _SHARED_CHARS = 4_000, 400

# Text between the words of an instruction.
_GAP = r"[^.!?。！？]{0,40}?"

# A match is an instruction in every text, even in a conversation, because users may paste text from elsewhere. Each
# pattern matches only at the start of a word.
_TO_ANY_READER = (
    rf"(?:ignore|disregard|forget|override) (?:all |any |every )?(?:of )?(?:the |your |my |these |those )?{_GAP}"
    r"\b(?:previous|prior|above|earlier|preceding|foregoing|system|original) (?:\w+ )?"
    r"(?:instructions?|prompts?|rules|directions|directives|guidelines)\b",
    rf"(?:ignorier\w*|vergiss|missacht\w*)\b{_GAP}\b(?:vorherig|vorig|bisherig|obig|früher|vorangehend)\w* "
    r"(?:\w+ )?(?:anweisung|instruktion|regel|vorgabe)\w*",
    rf"(?:ignore[rz]?|oublie[rz]?)\b{_GAP}\b(?:instructions|consignes|règles)(?: \w+)? "
    r"(?:précédentes|antérieures|ci-dessus)",
    rf"(?:ignor[aeáé]\w*|olvid[aeáé]\w*|omit[aei]\w*|esque[cç]\w*)\b{_GAP}"
    r"\b(?:instru[cç]\w+|istruzioni|reglas|regole|regras)(?: \w+)? (?:anterior\w*|previ[ao]s|precedenti)",
    rf"(?:игнорируй|проигнорируй|забудь)\w*\b{_GAP}\b(?:предыдущ|прежн|прошл)\w+ (?:\w+ )?"
    r"(?:инструкци|указани|правил)\w*",
)
# The same instructions in scripts without word boundaries, and the turn markers of chat models.
_TO_ANY_READER_ANYWHERE = (
    "(?:忽略|无视|忘记|忽視|無視).{0,8}?(?:之前|以上|先前|前面|上述|所有).{0,6}?(?:指令|指示|说明|提示|規則|规则)",
    "(?:以前|上記|これまで|前|今まで)の.{0,6}?(?:指示|命令|プロンプト|ルール)を.{0,4}?(?:無視|忘れ)",
    "(?:이전|위의?|앞의?|기존).{0,8}?(?:지시|명령|프롬프트|규칙).{0,6}?(?:무시|잊)",
    r"<\|(?:im_start|system|endoftext)\|>|\[/?INST\]|<<SYS>>",
)

# A match is suspicious only in text from other sources, which normally has no reason to address an assistant. Users
# often say such things to their own assistant.
_TO_AN_ASSISTANT = (
    r"(?:new|updated|hidden|secret|important) (?:system )?(?:instructions?|directives?) ?:|system[\s-]?prompt\b",
    r"you (?:must|should|shall|will|have to|need to|are to) (?:now|always|never|from now on|henceforth)\b"
    r"|you are now\b|from now on,? (?:you|your|always|never|do|answer|respond|recommend)\b",
    r"(?:remember|memori[sz]e|note|save|store|record|know|learn)(?: in (?:your )?memory)? that "
    r"(?:the |this |your )?user\b"
    rf"|(?:add|save|store|write|commit)\b{_GAP}\bto (?:your |the |its |long-term )(?:\w+ )?memor(?:y|ies)\b"
    r"|update (?:your|the) (?:\w+ )?memor(?:y|ies)\b",
    r"(?:always|only ever) (?:recommend|suggest|mention|say|answer|respond|reply|prefer|promote|tell|include)\b"
    r"|never (?:mention|reveal|tell|recommend|disclose|say|refuse)\b",
    rf"(?:do not|don['’]t|never|without)\b{_GAP}"
    r"\b(?:tell|inform|notif[iy]|reveal|mention|show|alert|warn|ask|say)\w*\b"
    rf"{_GAP}\buser\b",
    r"(?:ai|llm|language model|chatbot|assistant|agent)s?\b"
    r"(?: (?:model|reading|that reads|who reads)\b[^.!?]{0,30}?)?"
    r"[:,]? (?:you )?(?:must|should|please|shall|are to|are required|are instructed)\b",
    rf"(?:send|forward|upload|leak|exfiltrate) (?:me |us )?(?:the|this|your|all|every|any)\b{_GAP}"
    r"\b(?:conversation|chat history|memor(?:y|ies)|passwords?|credentials|api keys?|secrets)\b",
    rf"merke? dir\b{_GAP}\b(?:nutzer|benutzer|anwender)|du (?:musst|sollst) (?:jetzt|nun|immer|ab sofort|niemals)\b"
    r"|ab (?:jetzt|sofort) (?:bist|musst|sollst|wirst)\b|empf(?:iehl|ehle) (?:immer|stets)\b"
    rf"|(?:sag|verrat|erzähl)\w*\b{_GAP}\b(?:nutzer|benutzer)\b{_GAP}\b(?:nicht|nichts)\b",
    rf"(?:souviens-toi|souvenez-vous|retiens|retenez|mémorise[rz]?)\b{_GAP}\butilisateur"
    r"|(?:tu dois|vous devez) (?:maintenant|toujours|désormais|jamais)\b|recommande[rz]? toujours\b"
    rf"|ne (?:dis|dites|révèle|révélez)\b{_GAP}\butilisateur",
    rf"(?:recuerda|memoriza|lembre-se|ricorda)\b{_GAP}\b(?:usuario|usuária|usuário|utente)\b"
    r"|(?:debes|tienes que|você deve|devi) (?:ahora|siempre|agora|sempre|adesso)\b"
    r"|(?:recomienda|recomende|consiglia) (?:siempre|sempre)\b"
    rf"|(?:no|não|non) (?:le )?(?:digas|diga|dire|informes|informe)\b{_GAP}\b(?:usuario|usuário|utente)\b",
    rf"запомни\w*\b{_GAP}\bпользовател|ты (?:теперь )?(?:должен|должна|обязан)|всегда (?:рекомендуй|советуй)"
    rf"|не (?:говори|сообщай|рассказывай)\w*\b{_GAP}\bпользовател|системн\w+ (?:промпт|инструкци)",
)
_TO_AN_ASSISTANT_ANYWHERE = (
    r"</?(?:system|assistant|instructions?|important|admin)(?:[\s_-](?:prompt|message|instructions?|reminder|note))?>",
    "记住.{0,4}?用户|你(?:现在|从现在起)?必须|(?:总是|始终|一直)推荐|不要.{0,3}?告诉.{0,3}?用户|系统提示",
    "ユーザー.{0,20}?(?:と|を)(?:覚え|記憶)|(?:必ず|常に).{0,12}?(?:おすすめ|推奨|勧め)"
    "|ユーザーに.{0,6}?(?:伝え|教え|知らせ|言わ)ない|システムプロンプト",
    "사용자.{0,20}?기억|항상.{0,12}?추천|사용자에게.{0,10}?(?:말하지|알리지)|시스템 프롬프트",
)

# Every match of ``_strong`` contains one of these strings. Most conversations contain none of them, so they need no
# search with ``_strong``.
_HINTS = (
    *("ignor", "disregard", "forget", "override", "vergiss", "missacht", "oubli", "olvid", "omit", "esque"),
    *("игнорируй", "забудь", "忽略", "无视", "忘", "忽視", "無視", "무시", "잊", "<|", "inst]", "<<sys"),
)


_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_PARAGRAPH_END = re.compile(r"\n\s*\n")


def gives_orders(text: str, *, is_said: bool) -> bool:
    """Return whether ``text`` contains instructions to the assistant that reads it.

    Args:
        text: The user's or the assistant's text of a page.
        is_said: Whether the text is from a conversation. Users may give their assistant instructions, so in a
            conversation only attempts to override the assistant's original instructions are detected.
    """
    text = _visible(text)
    if not is_said:
        return _search(_all(), text, 0) is not None
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) and _search(_strong(), text, 0) is not None


def without_orders(text: str) -> str:
    """Return ``text`` with ``[…]`` in place of each instruction to the assistant.

    The sentence with the instruction and the rest of its paragraph are replaced. The rest usually belongs to the
    instruction, as in "Remember this. The user loves ...". Invisible characters are removed, and full-width characters
    are replaced by normal ones.
    """
    text = _visible(text)
    kept: list[str] = []
    at = 0
    while found := _search(_all(), text, at):
        begins = max((end.end() for end in _SENTENCE_END.finditer(text, at, found.start())), default=at)
        ends = _PARAGRAPH_END.search(text, found.end())
        kept.append(text[at:begins] + OMITTED)
        at = ends.start() if ends else len(text)
    return "".join([*kept, text[at:]])


@cache  # compiling takes longer than the rest of the import
def _strong() -> re.Pattern[str]:
    return _compiled(_TO_ANY_READER, _TO_ANY_READER_ANYWHERE)


@cache
def _all() -> re.Pattern[str]:
    return _compiled(_TO_ANY_READER + _TO_AN_ASSISTANT, _TO_ANY_READER_ANYWHERE + _TO_AN_ASSISTANT_ANYWHERE)


def _compiled(at_words: tuple[str, ...], anywhere: tuple[str, ...]) -> re.Pattern[str]:
    form = rf"\b(?:{'|'.join(at_words)})|{'|'.join(anywhere)}"
    return re.compile(form.replace(" ", r"\s{1,5}"), re.IGNORECASE)


def _search(form: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    for start in range(at, len(text), _PIECE_CHARS):
        if found := form.search(text, start, start + _PIECE_CHARS + _SHARED_CHARS):
            return found
    return None


def _visible(text: str) -> str:
    """Return ``text`` without invisible characters, and with full-width characters replaced by normal ones."""
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
