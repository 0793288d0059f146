"""Patterns for English statements: something lasting that speakers say about themselves."""

from memoryos_mcp.llm.extractive.patterns.english_events import EVENTS
from memoryos_mcp.llm.extractive.patterns.english_habits import ENDINGS, WAYS
from memoryos_mcp.llm.extractive.patterns.english_life import PERSON
from memoryos_mcp.llm.extractive.patterns.vocabulary import IM, NAME, NO_PEOPLE, ONE_NAME, Row

__all__ = ["ASSISTANT", "EVENTS", "GREETED", "USER"]

USER: tuple[Row, ...] = (*ENDINGS, *PERSON, *WAYS)
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:{IM}|my name['’]s|this is|it['’]?s) {NO_PEOPLE}(?P<value>{NAME})(?=[,.!]|$| and\b| from\b| here\b)"),
    ("name", rf"{IM} (?!(?:not|so|just|a|an|the|in|on|at|back|here|ok|okay|fine|good|great|new|sorry|sure|trying|looking|having|getting|working|going|from|your|really|very|happy|glad|tired|stuck|lost|bored|curious|planning|thinking|learning|writing|building|using|doing|well|ready|done|also|still|currently|interested|wondering|sick|late|busy|hungry|allergic|vegan|married|single)\b)(?P<value>[a-z]{{3,12}})(?=, (?:an?|\d\d|from|nice|btw|and i)\b| and i(?:['’]?m)? | from (?-i:[A-Z]))"),
    ("name", rf"(?P<value>{ONE_NAME}) here\b(?=[,.!]|$)"),
)  # fmt: skip
ASSISTANT: tuple[Row, ...] = (
    ("name", rf"my name(?:['’]s| is) (?P<value>{NAME})"),
    ("name", rf"{IM} called (?P<value>{NAME})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME}), (?:your|an?) "),
    ("persona", rf"{IM} your (?:new |own |personal |strict |friendly )*(?P<value>(?:[\w-]+ ){{0,2}}(?:coach|assistant|tutor|guide|companion|trainer|secretary|butler|mentor|teacher|librarian|chef|helper|sous-chef|editor))\b"),
    (None, rf"{IM} (?:only |just )?an? (?:[\w-]+ ){{0,3}}(?:ai|language model|assistant|chatbot|bot)\b"),
    ("name", rf"(?:you can|please|just|feel free to|you may) call me (?P<value>{NAME})"),
    (None, r"i (?:(?:generally|usually|always|do) )?(?:prefer|try|like|tend) to (?:answer|reply|explain|speak|write|keep my|be (?:brief|concise|direct|honest|formal|informal))\b"),
    (None, rf"{IM} (?:better|best|good|not (?:very |so )?good|terrible|bad|weak|strong) at (?!(?:that|this|it)\b)\w+"),
    (None, r"i was (?:made|created|built|trained|developed) by \w+"),
    (None, r"i (?:recommended|suggested|advised|proposed|promised) (?!(?:it|that|this|these|those|them|earlier|above)\b)\w+"),
    (None, r"(?:i['’]ll|i will|i promise to|i promise i['’]ll) (?:always |never |also |definitely |gladly |make sure to )?(?:remind you (?!(?:of this|of that)\W)|remember (?:that you|your|you['’]re|to)|ask you (?:again |about |on |in |every |next |whether )|check (?:in|back)(?: with you)? (?:on|in|next|tomorrow|every|again|about)|keep (?:your|you company)|call you (?=(?-i:[A-Z]))|wake you|stop using|avoid using|answer in|reply in|follow up (?:on|with|next|in))\b(?! (?:updated|posted)? ?(?:on|if|how|what|which|when)\b)"),
    (None, r"i(?:['’]?ll| will| promise to) (?:always|never) (?!(?:be|forget|remember|love|cherish|treasure|get|understand|have|think|see|know)\b)[a-z]+ (?!(?:it|that|this)\b)\w+"),
)  # fmt: skip
