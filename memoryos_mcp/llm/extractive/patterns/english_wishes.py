"""What begins a wish: what the user wants of every answer to come, in English.

A request for one answer is no wish. So a wish says that it holds for more than that: always, never, from now on,
whenever, remember that.
"""

from memoryos_mcp.llm.extractive.patterns.vocabulary import LANGUAGE, ONE_NAME

_DO = (
    r"(?:use|give|answer|reply|respond|write|put|begin|start|end|add|include|show|explain|ask|keep|call|address|avoid"
    r"|mention|tell|speak|talk|suggest|recommend|assume|round|format|quote|cite|remind|check|stop|send|make|be|skip|prefer"
    r"|provide|offer|convert|state|list|describe|summari[sz]e|refer|stick|translate|highlight|focus|treat|sign|note|warn"
    r"|confirm|double[- ]check|verify|proofread|spell|propose|lecture|apologi[sz]e|repeat|shorten|comment|name|sugarcoat|guess|invent)"
)
_PLEASE = r"(?:please,? |kindly )?"
_NEVER = r"(?:don['’]?t|do not|never)"
_TEXTS = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summaries|emails?|reviews?|code|texts?|lists?)"
_FORM = (
    rf"(?:metric|imperial|{LANGUAGE}|(?:British|American|plain|simple) \w+|bullet points|full sentences|lower ?case"
    r"|celsius|fahrenheit|euros|dollars|kilomet(?:er|re)s|miles|kilograms?|24-hour|markdown|plain text)"
)
WISHES: tuple[tuple[str | None, str], ...] = (
    ("called", rf"(?:from now on,? )?{_PLEASE}(?:(?:you can|just|do|you may) )?call me (?P<value>(?!(?:back|crazy|when|if|later|a|an|the|old|at|on)\b){ONE_NAME})(?! (?:back|later|when)\b)"),
    ("assistant called", rf"(?:from now on,? )?(?:your name is|you(?:['’]re| are) (?:now )?called|(?:i['’]ll|i will|i want to|let me) call you) (?P<value>{ONE_NAME})"),
    (None, rf"{_PLEASE}(?:always|never(?: ever)?) (?!stop |be (?!(?:brief|concise|polite|honest|direct|formal|informal|specific|critical|short|precise|clear|patient|kind|strict|condescending|rude|vague)\b)|keep (?:going|it|calm|on)|say never|make (?:a|me|you|them|us|sure)|remind me of ){_DO}\b(?! (?:mind|up|in\W*$|again\W*$|me wonder|yourself|a (?:book|dream)|dream))"),
    (None, rf"(?:from now on|in (?:the )?future|going forward),? (?:i(?:['’]d| would) like you to |i want you to |you should |you must )?{_PLEASE}(?:always |never |don['’]?t |do not |no |only ){{0,2}}(?:{_DO}\b|\w+ please)"),
    (None, rf"{_PLEASE}(?:don['’]?t|do not) (?:ever )?(?!be\b){_DO}\b[^.;?!]{{0,80}}\b(?:ever|again|any ?more|with me|to me|in (?:my|your) \w+)\b"),
    (None, rf"{_PLEASE}(?:don['’]?t|do not) use (?:any )?(?:\w+ )?(?:emojis?|exclamation marks|jargon|slang|bullet points|abbreviations|emoticons|headings|tables|swear words)\b"),
    ("assistant called", r"you(?:['’]re| are) (?P<value>(?-i:[A-Z][a-z]+)), my (?:[\w-]+ ){0,2}(?:coach|assistant|tutor|guide|companion|trainer|secretary|mentor|teacher|helper)\b"),
    (None, rf"{_NEVER} (?:ever )?call me (?!(?:back|later|when|if|at|on|again|out|crazy|old)\b)\w+(?: \w+)?\W*$"),
    (None, r"i(?:['’]d like| would like| want| need) you to be (?:\w+ )?(?:honest|direct|blunt|concise|brief|critical|formal|informal|strict|polite|patient|precise|specific) with me\b"),
    (None, rf"please,? use {_FORM}(?: (?:units|spelling|format|english|time|notation|clock|only))*\W*$"),
    (None, rf"{_PLEASE}stop (?:using|giving|adding|calling|asking|writing|apologi[sz]ing|suggesting|starting|ending|saying|repeating|including|putting|being so)\b"),
    (None, rf"(?:whenever|every time|each time|any time|when|if) (?:you|i|we) [^.;:?]{{3,80}}?,? {_PLEASE}(?:always|{_NEVER}|only) (?:\w+ ){{0,1}}?{_DO}\b"),
    (None, rf"(?:whenever|every time|each time) (?:you|i|we) [^.;:?]{{3,80}}?, {_PLEASE}{_DO}\b"),
    (None, rf"when (?:you|i) (?:ask|request|send|share|paste|mention|review|explain|answer|reply|suggest|recommend)\b(?![^.;?]*\b(?:this|these|that|those|above|following)\b)[^.;:?]{{0,80}}?, {_PLEASE}{_DO}\b"),
    (None, rf"(?:for|in|on|with) (?:my|all|any|every) [^.;:?]{{3,60}}?,? {_PLEASE}(?:always|{_NEVER}) {_DO}\b"),
    (None, r"for (?:my|all|any) [^.;:?]{3,60} i(?:['’]d| would)? (?:want|like) you to be\b"),
    (None, rf"{_PLEASE}(?:remember|note|keep in mind|bear in mind|don['’]t forget)(?: that)?,? (?:my|i|we|our|all)\b[^?]{{0,120}}\b(?:should|must|never|always|prefer|only (?:want|use|read)|want you|hate (?:it )?when you)\b"),
    (None, rf"{_PLEASE}remember to (?:always|never|{_DO})\b"),
    (None, rf"{_PLEASE}keep (?:your|all|the|all your) {_TEXTS} (?:\w+ ){{0,3}}(?:short|brief|concise|simple|long|detailed|formal|informal|polite|under|to|below|in|free|plain|friendly|casual)\b"),
    (None, rf"{_PLEASE}(?:answer|reply|respond|talk|speak|write)(?: to)?(?: me)? (?:only |always |just )?in {_FORM}\b(?! (?:how|what|why|where|the|this|that|a|an|for|about)\b)(?![^.!?]{{0,40}}:)"),
    (None, rf"(?:no|no more) (?:\w+ ){{1,3}}(?:in|at the end of|for) (?:my|your|the|any|all|code)? ?{_TEXTS}\b"),
    (None, r"no (?:more )?(?:emojis?|exclamation marks|bullet points|small talk|jargon|apologies|disclaimers|flattery|slang|spoilers|swearing|emoticons|(?:\w+ ){0,2}voice)\b"),
    (None, rf"i (?:would )?(?:always |strongly |really )?prefer (?:you to (?:always|never|{_DO})|(?:your |my )?(?:\w+ ){{0,2}}{_TEXTS}\b)"),
    (None, rf"i(?:['’]d| would)? (?:always )?(?:prefer|like|want) (?:you to (?:always|never)|(?:short|brief|concise|long|detailed) {_TEXTS}|(?:all )?(?:your )?{_TEXTS} (?:in|with|without|to be)|to be (?:called|addressed))\b"),
    (None, rf"you (?:should|must) (?:always|never) {_DO}\b"),
    (None, r"use (?:metric|imperial|british|american|celsius|fahrenheit|(?:the )?24-hour)\b[^.?!:]{0,40}\b(?:with me|for me|always|please|everywhere|throughout|units|spelling)\W*$"),
    (None, r"(?:address|speak to|talk to|treat) me (?:as|like|with|by|in) (?!(?:if)\b)\w+"),
    (None, rf"(?:you (?:can|may)|feel free to|it['’]s (?:ok|okay|fine|all right) to) (?P<ends>{_DO} [^.;:?!]{{3,60}}?) (?:again|after all|now)\b"),
    (None, r"(?:you (?:no longer have to|don['’]t (?:have|need) to)|no need to|stop) (?P<ends>\w+ [^.;:?!]{3,60}?) (?:any ?more|any longer|from now on)\b"),
)  # fmt: skip
