"""Patterns for English wishes that apply to all future answers.

A request for a single answer is not a wish. Therefore, a wish must contain words such as "always", "never", "from now
on", "whenever" or "remember that".
"""

from memoryos_mcp.llm.extractive.patterns.vocabulary import LANGUAGE, ONE_NAME, Row

_DO = (
    r"(?:use|give|answer|reply|respond|write|put|begin|start|end|add|include|show|explain|ask|keep|call|address|avoid"
    r"|mention|tell|speak|talk|suggest|recommend|assume|round|format|quote|cite|remind|check|stop|send|make|be|skip|prefer"
    r"|provide|offer|convert|state|list|describe|summari[sz]e|refer|stick|translate|highlight|focus|treat|sign|note|warn"
    r"|confirm|double[- ]check|verify|proofread|spell|propose|lecture|apologi[sz]e|repeat|shorten|comment|name|sugarcoat|guess|invent|tag|label|number|bold|capitali[sz]e|compliment|praise|patronise|patronize|swear|joke|flatter|thank|greet|address|finish|open|close|leave|plan|schedule|rate|review|think|back|challenge|correct|interrupt|tutor|teach|quiz|pick|choose)"
)
_PLEASE = r"(?:please,? |kindly )?"
_NEVER = r"(?:don['’]?t|do not|never)"
_TEXTS = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summaries|emails?|reviews?|code|texts?|lists?)"
_FORM = (
    rf"(?:metric|imperial|{LANGUAGE}|(?:British|American|plain|simple) \w+|bullet points|full sentences|lower ?case"
    r"|celsius|fahrenheit|euros|dollars|pounds|yen|(?:swiss )?francs|rupees|kronor|crowns|chf|eur|usd|gbp|grams|ounces|cups|stones?|feet|inches|cent(?:i?)met(?:er|re)s|kilomet(?:er|re)s|miles|kilograms?|24-hour|markdown|plain text)"
)
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:from now on,? )?{_PLEASE}(?:(?:you can|just|do|you may) )?(?:call|address) me (?:as )?(?P<value>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?(?!(?:back|crazy|when|if|later|a|an|the|old|at|on)\b){ONE_NAME})(?! (?:back|later|when)\b)"),
    ("called", r"(?:please |just |you can )?call me (?P<value>(?!(?:back|crazy|when|if|later|a|an|the|old|at|on|out|in|by|to|and|it|whatever|names|anything|what|again|that|this)\b)[a-z]{2,12})(?:,? please| from now on)?\W*$"),
    ("assistant called", rf"(?:from now on,? )?(?:your name is|you(?:['’]re| are) (?:now )?called|(?:i['’]ll|i will|i want to|let me) call you) (?P<value>{ONE_NAME})"),
    (None, rf"{_PLEASE}(?:always|never(?: ever)?) (?!stop |be (?!(?:brief|concise|polite|honest|direct|formal|informal|specific|critical|short|precise|clear|patient|kind|strict|condescending|rude|vague)\b)|keep (?:going|it|calm|on)|say never|make (?:a|me|you|them|us|sure)|remind me of ){_DO}\b(?! (?:mind|up|in\W*$|again\W*$|me wonder|yourself|a (?:book|dream)|dream))"),
    (None, rf"(?:from now on|in (?:the )?future|going forward),? (?:i(?:['’]?d| would) like you to |i want you to |you should |you must )?{_PLEASE}(?:always |never |don['’]?t |do not |no |only ){{0,2}}(?:{_DO}\b|\w+ please)"),
    (None, rf"(?:from now on|from here on(?: out)?|going forward|in (?:the )?future|for the rest of (?:our|this|the) \w+|(?:standing|house|ground) (?:rule|instruction)|as a rule)[,:]? {_PLEASE}(?!(?:i|we|he|she|it|they|my|our|the|this|that|there|you|your|i['’]\w+|we['’]\w+|you['’]\w+|it['’]\w+)\b)(?!(?:\w+ ){{0,2}}(?:will|would|is|are|was|were|has|have|can|could|might|may)\b)\w[^?]{{3,120}}"),
    (None, rf"{_PLEASE}(?:don['’]?t|do not) (?:ever )?(?!be\b){_DO}\b[^.;?!]{{0,80}}\b(?:ever|again|any ?more|with me|to me|in (?:my|your) \w+)\b"),
    (None, rf"{_PLEASE}(?:don['’]?t|do not) use (?:any )?(?:\w+ )?(?:emojis?|exclamation marks|jargon|slang|abbreviations|emoticons|swear words|(?:em[- ]?)?dashes|semicolons|hashtags|all caps|acronyms|clich[eé]s|buzzwords|filler words|passive voice|contractions)\b(?! (?:in|for) (?:the|this|that|my (?:file|code|script|table|essay))\b)"),
    ("assistant called", r"you(?:['’]re| are) (?P<value>(?-i:[A-Z][a-z]+)), my (?:[\w-]+ ){0,2}(?:coach|assistant|tutor|guide|companion|trainer|secretary|mentor|teacher|helper)\b"),
    (None, rf"{_NEVER} (?:ever )?call me (?!(?:back|later|when|if|at|on|again|out|crazy|old)\b)\w+(?: \w+)?\W*$"),
    (None, rf"{_NEVER} (?:ever )?call me [\"“”']\w+"),
    (None, rf"{_NEVER} (?:ever )?(?:call|address) me by \w+"),
    (None, r"(?:please,? )?use (?:the )?(?:formal|informal|polite|[\"“”'](?:du|sie|tu|vous|tú|usted|lei)[\"“”'])(?: (?:form|you|address|[\"“”']\w+[\"“”']))?,? (?:with|when|for|in|to|not|instead)\b(?! (?:this|that|the (?:mail|letter))\b)"),
    (None, r"(?:please,? )?(?:don['’]?t|do not|never) (?:give|send|show|offer|add) (?:me )?(?:any |those |your )?(?:\w+ )?(?:disclaimers?|lectures?|warnings?|caveats|compliments|praise|summaries|pep talks|emojis?|unsolicited advice)\b"),
    (None, r"(?:please,? )?keep (?:it|things|everything|answers|replies|your (?:answers|replies|tone)) (?:\w+ ){0,2}(?:short|brief|concise|simple|formal|informal|casual|friendly|light|professional)(?: and \w+)?,? (?:in general|always|please,? always|at all times|generally|with me|from now on)\b"),
    (None, rf"(?:no need to|you don['’]?t (?:have|need) to) {_DO} [^.;?!]{{0,40}}\b(?:every|all the time|each time|always|with me)\b"),
    (None, rf"(?:when|whenever) (?:suggesting|recommending|writing|giving|explaining|answering|replying|translating|coding|summari[sz]ing|quoting|planning|reviewing|listing|talking|making) [^.;:?]{{2,60}}?, {_PLEASE}(?:always |never |don['’]?t |do not |only )?{_DO}\b"),
    (None, r"(?:when|whenever) (?:you|i) (?:write|give|show|send|make|suggest|ask for|explain|answer|reply|translate|code) [^.;:?]{2,60}?, (?!(?:i|we|it|the (?:file|app|server))\b)[\w' ]{2,30} (?:should|must) (?:always |never )?be\b"),
    (None, r"i(?:['’]d| would) rather you (?:just |always |never |not )?(?!(?:go|be|use (?:this|that|the)|do (?:this|that|it))\b)[a-z]+ [^.;?!]{3,80}"),
    (None, rf"(?:can|could|would|will) you (?:please )?(?:stop \w+ing|{_DO})\b[^?]{{2,80}}\b(?:every time|each time|from now on|in (?:the )?future|going forward|always|all the time|so (?:much|often))\b"),
    (None, rf"{_PLEASE}(?:just )?{_DO}\b[^.;?!:]{{2,80}},? (?:always|every time|each time)\W*$"),
    (None, r"i(?:['’]?d like| would like| want| need) you to be (?:\w+ )?(?:honest|direct|blunt|concise|brief|critical|formal|informal|strict|polite|patient|precise|specific) with me\b"),
    (None, rf"please,? use {_FORM}(?: (?:units|spelling|format|english|time|notation|clock|only))*\W*$"),
    (None, rf"{_PLEASE}stop (?:using|giving|adding|calling|asking|writing|apologi[sz]ing|suggesting|starting|ending|saying|repeating|including|putting|being so)\b"),
    (None, rf"(?:whenever|every time|each time|any time|when|if) (?:you|i|we) [^.;:?]{{3,80}}?,? {_PLEASE}(?:always|{_NEVER}|only) (?:\w+ ){{0,1}}?{_DO}\b"),
    (None, rf"(?:whenever|every time|each time) (?:you|i|we) [^.;:?]{{3,80}}?, {_PLEASE}{_DO}\b"),
    (None, rf"when (?:you|i) (?:ask|request|send|share|paste|mention|review|explain|answer|reply|suggest|recommend)\b(?![^.;?]*\b(?:this|these|that|those|above|following)\b)[^.;:?]{{0,80}}?, {_PLEASE}{_DO}\b"),
    (None, rf"(?:for|in|on|with) (?:my|all|any|every) [^.;:?]{{3,60}}?,? {_PLEASE}(?:always|{_NEVER}) {_DO}\b"),
    (None, r"for (?:my|all|any) [^.;:?]{3,60} i(?:['’]?d| would)? (?:want|like) you to be\b"),
    (None, rf"{_PLEASE}(?:remember|note|keep in mind|bear in mind|don['’]?t forget)(?: that)?,? (?:my|i|we|our|all)\b[^?]{{0,120}}\b(?:should|must|never|always|prefer|only (?:want|use|read)|want you|hate (?:it )?when you)\b"),
    (None, rf"{_PLEASE}remember to (?:always|never|{_DO})\b"),
    (None, rf"{_PLEASE}keep (?:your|all|the|all your) {_TEXTS} (?:\w+ ){{0,3}}(?:short|brief|concise|simple|long|detailed|formal|informal|polite|under|to|below|in|free|plain|friendly|casual)\b"),
    (None, rf"{_PLEASE}(?:answer|reply|respond|talk|speak|write)(?: to)?(?: me)? (?:only |always |just )?in {_FORM}\b(?! (?:how|what|why|where|the|this|that|a|an|for|about)\b)(?![^.!?]{{0,40}}:)"),
    (None, rf"(?:no|no more) (?:\w+ ){{1,3}}(?:in|at the end of|for) (?:my|your|the|any|all|code)? ?{_TEXTS}\b"),
    (None, r"no (?:more )?(?:emojis?|exclamation marks|bullet points|small talk|jargon|apologies|disclaimers|flattery|slang|spoilers|swearing|emoticons|(?:\w+ ){0,2}voice)\b"),
    (None, rf"i (?:would )?(?:always |strongly |really )?prefer (?:you to (?:always|never|{_DO})|(?:your |my )?(?:\w+ ){{0,2}}{_TEXTS}\b)"),
    (None, rf"i(?:['’]?d| would)? (?:always )?(?:prefer|like|want) (?:you to (?:always|never)|(?:short|brief|concise|long|detailed) {_TEXTS}|(?:all )?(?:your )?{_TEXTS} (?:in|with|without|to be)|to be (?:called|addressed))\b"),
    (None, rf"{_PLEASE}(?:don['’]?t|do not) (?:ever )?{_DO}\b[^.;?!]{{0,80}}?\b(?:(?:every|each|all|any of) (?:of )?(?:your |the |my )?(?:{_TEXTS}|time|sentence|paragraph|message)|with (?:me|\")|so (?:much|often|many)|all the time|unless i (?:ask|say|tell)|your {_TEXTS})\b"),
    (None, rf"{_PLEASE}stop (?!(?:it|that|this|there|here|the|at|by|when|for)\b)\w+ing\b(?=[^.;?!]{{0,60}}\b(?:so (?:much|often)|all the time|every|each|everything|with|me|your|to me)\b)"),
    (None, rf"when(?:ever)? you (?:write|give|show|send|make|suggest|recommend|explain|answer|talk|list|plan|translate|code|cook|quote|cite|do|help)\b (?!(?:the|this|that|these|an?|it)\b)(?:\w+ ){{0,4}}?(?:for|to|with)? ?(?:me|us|my \w+)\b,? (?:please )?(?:always |never |only |don['’]?t |do not )?{_DO}\b"),
    (None, rf"when(?:ever)? you (?:write|give|show|send|make|suggest|recommend|explain|answer|talk|list|plan|translate|code|quote|cite|refer|mention|speak|summari[sz]e|format|use)\b (?!(?:the|this|that|these|an?|it)\b)[^.;:?,]{{3,60}}, {_PLEASE}(?:always |never |only |don['’]?t |do not )?{_DO}\b"),
    (None, rf"{_PLEASE}(?:you (?:can|may|should) )?(?:skip|drop|leave out|cut|ditch|omit|spare me|lose|avoid|leave off|no need for) (?:the |all |any |your |those |with )?(?:\w+ )?(?:pleasantries|disclaimers?|apologies|emojis?|small talk|preamble|intros?|introductions?|flattery|jargon|fluff|caveats|exclamation marks|filler|compliments|summary at the end|sign-?offs?|greetings|platitudes|warnings|corporate speak|buzzwords|bullet points)\b"),
    (None, rf"{_PLEASE}(?:speak|talk|write|answer|reply|respond|explain things)(?: to me| with me)? (?:only |always |just )?(?:in )?(?:{LANGUAGE}|simple words|plain english|short sentences|layman['’]s terms|lower ?case)(?: only| please| to me| with me|, please| always)+\W*$"),
    (None, rf"(?:(?:all )?(?:prices|temperatures|distances|units|dates|times|amounts|measurements|weights|recipes|answers|numbers|examples|quantities)) (?:always |should be |should always be |go )?in {_FORM}(?: units| format)?(?:,? (?:please|always|only))*\W*$"),
    (None, r"i (?:don['’]?t|do not|never) (?:want|need|like) (?:any |your |to (?:see|hear|get) (?:any )?)?(?:\w+ )?(?:emojis?|disclaimers?|lectures?|small talk|apologies|flattery|bullet points|spoilers|jargon|exclamation marks|advice on|pep talks|moralising|moralizing)\b"),
    (None, rf"{_PLEASE}(?:always )?(?:remind me|check in with me|ask me) (?:(?:every|each) \w+|daily|weekly|once a \w+|on \w+days)\b"),
    (None, rf"{_PLEASE}remind me (?:to|that|about) [^.;?!]{{3,60}}\b(?:on|at|in|every|each|next|tomorrow|before|by|when|tonight)\b"),
    (None, rf"{_PLEASE}only (?:suggest|recommend|answer|reply|speak|write|give me|show me|use) (?!(?:the|this|that|it|one|a|an|two|three|\d+|if|for the)\b)\w+(?=[^.;?!]{{0,60}}(?:\b(?:recipes|restaurants|answers|sources|units|words|sentences|places|books|films|dishes|hotels|euros|metric|english|examples|options|ideas)\b))"),
    (None, rf"{_PLEASE}(?:treat|consider|think of) me (?:as|like) \w+|{_PLEASE}explain (?:things|everything|it all)(?: to me)? (?:as if|like|as though|in|with)\b"),
    (None, rf"{_PLEASE}(?:refer to me|address me) (?:as|by|with) \w+|{_PLEASE}use (?:he/him|she/her|they/them|my (?:first|last|full) name|(?:my )?pronouns)\b"),
    (None, rf"{_PLEASE}(?:be|stay) (?:\w+ )?(?:brief|concise|blunt|direct|honest|formal|informal|patient|critical|polite|gentle|strict) (?:with me|from now on|when|in your|at all times)\b"),
    (None, rf"i (?:want|need|expect) (?:you to|your {_TEXTS} to) (?:always|never|stop|be|keep|use|answer|reply|speak|call|remember)\b(?! (?:this|that|it|the)\b)(?=[^.;?!]{{0,60}}\b(?:always|never|from now on|every|whenever|with me|to me|in {LANGUAGE})\b)"),
    (None, rf"{_PLEASE}use {_FORM}(?: \w+)?,? (?:not|instead of|rather than|and not|over) \w+"),
    (None, r"(?:please,? )?(?:don['’]?t|do not) (?:ever )?(?:mention|bring up|talk about|ask (?:me )?about|suggest|recommend|include|offer|remind me (?:of|about)) (?:my |any |alcohol|meat|pork|fish|seafood|religion|politics)(?:\w+)?(?: \w+)?\W*$"),
    (None, r"(?:you (?:can|may)|feel free to) (?:swear|curse|joke|tease me|be (?:\w+ )?(?:blunt|honest|direct|harsh|brutal|frank|sarcastic|informal|casual|strict)|use (?:\w+ )?(?:slang|jargon|emojis|humou?r|sarcasm|technical terms)|speak \w+ (?:to|with) me|drop the formalities)\b"),
    (None, rf"{_PLEASE}{_DO}\b[^.;?!:]{{2,80}}\b(?:from now on|from here on|going forward|in (?:the )?future|at all times|for all (?:my|future) \w+)\b"),
    (None, rf"(?:if|when|whenever) i (?:ask|say|send|paste|share|mention|request|type) (?:you )?(?:for|about|an?|my|[\"“]\w+[^\"”]{{0,30}}[\"”]|you (?:something|anything))[^.;:?]{{0,60}}, {_PLEASE}{_DO}\b"),
    (None, rf"for (?:all )?(?:code|recipes|emails?|translations?|summaries|maths?|measurements|dates|prices|recommendations|explanations|python|german|french|spanish), {_PLEASE}(?:always|never|prefer|use|stick to|avoid|keep|don['’]?t|give me|follow|assume|stay|include|leave)\b"),
    (None, r"(?:please,? )?(?:format|write|give|show|put) (?:me )?(?:all |your )?(?:dates|times|prices|numbers|amounts|units|temperatures|distances|names|currencies|code snippets) (?:as|in|with|like|the) (?!(?:the table|this|that|column)\b)\w+"),
    (None, r"i(?:['’]?d| would) like you to (?:challenge|push|correct|treat|act as my|speak|question|teach|coach|help me stay|hold me) ?(?!(?:this|that)\b)\w+"),
    (None, rf"you (?:should|must) (?:always|never) {_DO}\b"),
    (None, r"use (?:metric|imperial|british|american|celsius|fahrenheit|(?:the )?24-hour)\b[^.?!:]{0,40}\b(?:with me|for me|always|please|everywhere|throughout|units|spelling)\W*$"),
    (None, rf"(?:can|could|would|will) you (?:please )?(?:always|never|from now on,?(?: always| only)?) {_DO}\b"),
    (None, rf"{_PLEASE}{_DO}\b[^.;?!:]{{2,60}},? (?:always|every time|each time)\W*$"),
    (None, r"i (?:prefer|like|love|hate|appreciate) it (?:when|if) you (?:answer|give|explain|use|show|write|start|call|reply|respond|ask|list|tell)\b"),
    (None, r"(?:please,? )?(?:don['’]?t|do not|never) (?:sugarcoat|sugar-coat|patroni[sz]e|lecture|flatter|apologi[sz]e|judge|hedge|ramble|moralise|moralize|repeat yourself)\b(?! (?:it|this|that)\b)"),
    (None, r"(?:please,? )?(?:don['’]?t|do not|never|stop) (?:ever )?(?:us(?:e|ing)|say(?:ing)?|writ(?:e|ing)) (?:the (?:word|phrase|term|expression)s? |words like |phrases like |[\"“])"),
    (None, rf"(?:in|for|on|with) (?:every|each|all|any) (?:\w+ ){{0,2}}(?:recipes?|answers?|repl(?:y|ies)|messages?|e-?mails?|reviews?|summar(?:y|ies)|responses?|texts?|lists?|plans?|posts?|translations?|explanations?|suggestions?|recommendations?),? {_PLEASE}(?:always |never )?(?:leave out|leave off|{_DO})\b(?! (?:in|of|for|to)\b)"),
    (None, r"(?:please,? )?use (?:simple|plain|short|formal|informal|easy|everyday|gender-neutral|inclusive) (?:words|language|sentences|english|terms|vocabulary)\b"),
    (None, r"(?:please,? )?(?:don['’]?t|do not|never) (?:give|tell|show) me (?:the |full |a )?(?:\w+ )?(?:solutions?|answers?) (?:right away|immediately|directly|straight away|unless|outright|at once)\b"),
    (None, r"(?:please,? )?(?:address|speak to|talk to|treat) me (?:as|like|with|by|in) (?!(?:if)\b)\w+"),
    (None, rf"(?:you (?:can|may)|feel free to|it['’]?s (?:ok|okay|fine|all right) to) (?P<ends>{_DO} [^.;:?!]{{3,60}}?) (?:again|after all|now)\b"),
    (None, r"(?:you (?:no longer have to|don['’]?t (?:have|need) to)|no need to|stop) (?P<ends>\w+ [^.;:?!]{3,60}?) (?:any ?more|any longer|from now on)\b"),
)  # fmt: skip
