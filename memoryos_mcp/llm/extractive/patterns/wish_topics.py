"""Topics of wishes: language, units, length, form of address and emojis. Only one wish per topic is valid at a time.

A wish with a condition ("when I ask for code") has no topic, because it excludes no other wish.
"""

import re

from memoryos_mcp.llm.extractive.patterns.vocabulary import LANGUAGE

_SCOPED = re.compile(
    r"\b(?:when|whenever|if|unless|every time|each time) (?!you (?:write|talk|speak|answer|reply|respond)(?: to me)?\W*$)"
    r"|\b(?:for|in|on|with) (?:all |any |every |each |your |my |the )*(?:code|recipes?|reviews?|e-?mails?|translations?|summar(?:y|ies)|maths?"
    r"|posts?|docs?|documents?|comments?|commits?|titles?|headings|travel|work|dates|python|lists|plans|\w+days)\b"
    r"|\bwenn\b|\bquand\b|\bcuando\b|\bquando\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"n['’]t\b|\b(?:not|never|no|stop|without|avoid|skip|drop|ditch|omit|leave out|kein\w*|nie|niemals|nicht|ohne|jamais|pas|sans|nunca|sin|mai|non"
    r"|senza|sem|não)\b",
    re.IGNORECASE,
)
_LANGUAGES = {
    "deutsch": "german",
    "englisch": "english",
    "französisch": "french",
    "spanisch": "spanish",
    "italienisch": "italian",
    "français": "french",
    "anglais": "english",
    "allemand": "german",
    "español": "spanish",
    "inglés": "english",
    "alemán": "german",
    "italiano": "italian",
    "inglese": "english",
    "tedesco": "german",
    "português": "portuguese",
    "inglês": "english",
}
_LANGUAGE = re.compile(
    r"\b(?:answer|reply|respond|write|speak|talk|use|explain|be|antwort|schreib|sprich|red|répond|écri|parle|respond|contest|escrib|habl|rispond"
    rf"|scriv|parl|escrev|fal)[^.;!?]{{0,40}}?\b(?P<value>{LANGUAGE}|{'|'.join(_LANGUAGES)})\b(?! (?:spelling|recipes?|food|films?|books?|dates?|names?))",
    re.IGNORECASE,
)
_METRIC = (
    r"metric|celsius|kilomet(?:er|re)s?|kilograms?|kilos|grams?|cent(?:i?)met(?:er|re)s?|lit(?:er|re)s|metrisch\w*"
)
_IMPERIAL = r"imperial|fahrenheit|miles|pounds and ounces|feet and inches|ounces|cups"
_UNITS = re.compile(rf"\b(?:(?P<metric>{_METRIC})|(?P<imperial>{_IMPERIAL}))\b", re.IGNORECASE)
_OF_ANSWERS = r"(?:answers?|repl(?:y|ies)|responses?|explanations?|messages?|be|keep (?:it|things)|antwort\w*|réponses?|respuestas?|risposte|respostas?)"
_SHORT = r"short(?:er)?|brief(?:er)?|concise|terse|kurz\w*|knapp\w*|courtes?|brève?s?|bref|cortas?|breves?|curtas?|under \w+ (?:words|lines|sentences)"
_LONG = r"long(?:er)?|detailed|in[- ]depth|thorough|verbose|in (?:more )?detail|ausführlich\w*|détaillées?|longues?|detalladas?|largas?|dettagliate|lunghe|detalhadas|longas"
_LENGTH = re.compile(
    rf"\b(?:{_OF_ANSWERS}[^.;!?]{{0,30}}?\b(?:(?P<short>{_SHORT})|(?P<long>{_LONG}))|(?:(?P<short_before>{_SHORT})|(?P<long_before>{_LONG})) {_OF_ANSWERS})\b",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"\b(?:(?P<formal>address me formally|be (?:more )?formal|speak formally|siez\w*|vouvoie\w*|vouvoyez|usted|del lei|[\"“']sie[\"”']|[\"“']vous[\"”'])"
    r"|(?P<informal>address me informally|be (?:more )?(?:informal|casual)|speak (?:informally|casually)|duz\w*|tutoie\w*|tut[eé]ame|tutearme|del tu"
    r"|[\"“']du[\"”']|[\"“']tu[\"”']|stop being so formal|drop the formalities))(?!\w)",
    re.IGNORECASE,
)
_EMOJIS = re.compile(r"\b[ée]mojis?\b|\bemoticons?\b", re.IGNORECASE)


def topic_of(wish: str) -> tuple[str, str] | None:
    """Return the topic of a wish and the requested value; None if the wish has no topic."""
    if _SCOPED.search(wish):
        return None
    is_negated = _NEGATED.search(wish) is not None
    if _EMOJIS.search(wish):
        return "emojis", "no" if is_negated else "yes"
    for slot, pattern in (("length", _LENGTH), ("form of address", _FORM), ("units", _UNITS)):
        found = pattern.search(wish)
        if found is None or found.lastgroup is None or (is_negated and slot == "length"):
            continue
        wanted = found.lastgroup.removesuffix("_before")
        is_unwanted = slot == "units" and _NEGATED.search(wish[: found.start()]) is not None
        return slot, f"not {wanted}" if is_unwanted else wanted
    found = _LANGUAGE.search(wish)
    if found is None:
        return None
    language = found["value"].lower()
    is_unwanted = _NEGATED.search(wish[: found.start("value")]) is not None
    return "language of answers", f"{'not ' if is_unwanted else ''}{_LANGUAGES.get(language, language)}"
