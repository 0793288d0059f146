"""Patterns for statements whose subject is omitted: "Moved to Rome in May", "Allergic to nuts", "bin Lehrerin".

Each row is a pair: an omitted subject ("I "), and a pattern for the beginning of the text without this subject
("moved"). No pattern matches possible instructions ("Use Linux", "Speak French") or texts that may be about somebody
else ("Born in 1950, he ...").
"""

import re
from functools import cache

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, DIET, KIN, ROLE

_JUST = r"(?:(?:just|recently|finally|also|already|still|now|currently|mostly|actually|always|never|only) ){0,2}"
_PAST = (
    r"(?:landed (?:an?|my)|moved|adopted|got(?! (?:it|you|that|an? (?:error|question|problem|issue|warning)))|bought|started(?! (?:with|from|by)\b)|turned \d\d|became|finished my|passed my"
    r"|graduated|retired|joined|switched (?:from|to)|quit (?:my|smoking|drinking)|stopped (?:eating|smoking|drinking)|gave up"
    r"|got (?:tickets|a)|broke my|sold (?:my|our)|booked|grew up|worked (?:as|at|for)|lost my|signed up|had (?:surgery|a baby|my))"
)
_STATE = (
    rf"(?:originally from {CAPITAL}|born and raised in|based in|living (?:in|with)|allergic to|intolerant (?:to|of)"
    r"|(?:lactose|gluten)[- ]intolerant|diabetic|coeliac|celiac|pregnant|colou?r[- ]?blind|dyslexic|left-handed"
    rf"|{DIET}(?= (?:here|since|for|now|and|but|who|with)\b|[,.!]|$)|not an? (?:\w+ )?fan of|(?:a )?(?:big|huge) fan of|working (?:at|for|as|in|remotely|nights)"
    rf"|studying|driving (?:an? |the |for )|working (?:part|full|two|three|six|\d+)|doing my|on (?:maternity|paternity|parental|sick) leave|in my (?:first|second|third|fourth|final|last) (?:year|semester|trimester)|renting|staying (?:with|w/|at|in {CAPITAL})|raising|living (?:at|on|near|alone|by)|moving (?:back )?to|taking (?:my|an?) |going to {CAPITAL}|studying|learning {CAPITAL}|training (?:for|to be)|married (?:to|with|for)|happily married|divorced(?= (?:with|and|since)\b|[,.!]|$)|single (?:mum|mom|dad|parent|mother|father)"
    r"|retired(?= (?:now|since|from|and|\w+ here)\b|[,.!]|$)|self-employed|unemployed|in my (?:early|mid|late|twenties|thirties|forties|fifties|sixties|[2-9]0s)"
    r"|[1-9]\d(?:, | years? old\b| ?[fm]\b| ?yo\b)"
    rf"|at (?=(?-i:[A-Z])[\w. ]{{1,30}}, (?:doing|working|leading|as)\b)"
    r"|afraid of|obsessed with|really into|flying to|moving to|getting (?:married|divorced)|training|planning (?:an?|my|our|to)(?! \w+ there)|saving (?:up )?for|expecting (?:an?|our|my|twins)|teaching myself|running my own)"
)
_OWN = (
    r"(?:live (?:in|with|alone|near|on a|out|up|down|outside|by|at|just)|teach|run an?|own an?|manage an?|drive an?|study|work (?:as|at|for|in|from|nights|part|full)|(?:love|hate)(?! (?:is|are|was|and|of|you|your|to|it|this|that|how|speech|mail)\b)|prefer|can['’]?t (?:stand|eat|drink|have)|cannot (?:stand|eat|drink)"
    r"|don['’]?t (?:like|drink|own|speak|smoke|eat)|grew|have (?:an?|two|three|four) )"
)
_OF_KIN = rf"(?:(?:hobbies|name|birthday|favou?rite \w+|pronouns|native language|time ?zone)(?:['’]s|:)? |(?:doctor|gp|dentist|physio|therapist) (?:says|said|told me)(?: that)? i|(?:car|phone|laptop|flat|house) is (?:an? )|(?!family ){KIN}(?:['’]s)? (?:is|are|has|have|just|works?|lives?|loves?|hates?|can['’]?t|doesn['’]t) )"

_ROWS: tuple[tuple[str, str], ...] = (
    ("I've ", rf"{_JUST}been\b"),
    ("I ", rf"{_JUST}{_PAST}\b"),
    ("I'm ", rf"{_JUST}{_STATE}"),
    ("I ", rf"{_JUST}{_OWN}"),
    (
        "I'm a ",
        rf"{_JUST}(?!(?:an?|the|my|our|your|his|her|their|no|every|any|another|some|this|that|which|what)\b)(?:[\w-]+ ){{0,3}}{ROLE} (?:at|for|in|from|here|by day|by trade|based in)\b",
    ),
    ("I was ", r"(?:laid off|made redundant|promoted|furloughed|diagnosed with)\b"),
    (
        "I'm ",
        rf"(?:going|off) to {CAPITAL}|still at {CAPITAL}|on holiday in|freelancing\b|saving for|born and bred\b",
    ),
    ("my ", _OF_KIN),
    (
        "ich ",
        r"(?:bin|wohne|lebe|arbeite|komme (?:aus|ursprünglich)|heiße|habe?|mag|hasse|liebe|vertrage|esse|trinke|studiere"
        r"|lerne|spiele|fahre|fliege|ziehe|spreche|heirate)(?! (?:ich|du|wir|ihr|sie|es|mir|mich)\b) \w",
    ),
    ("j'", r"(?:habite|adore|ai (?:un|une|deux|trois|\d\d ans))\b"),
    ("je ", r"(?:travaille|suis|bosse|viens de|vis à) "),
)


@cache
def elided() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return pairs of a subject (such as "I'm ") and a pattern.

    The pattern matches the beginning of a text in which this subject is omitted (such as "Allergic to nuts").
    """
    return tuple((subject, re.compile(begins, re.IGNORECASE)) for subject, begins in _ROWS)
