"""What durable statements begin with, as data: one row a pattern, in the languages people chat in.

A pattern stands at the start of a statement. Its slot says which question the statement answers if only one answer
can hold at a time; then the group ``value`` is the answer. ``FAVOURITE`` builds its slot from the group ``kind``.
"""

import re
from dataclasses import dataclass
from functools import cache

FAVOURITE = "favourite"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to begin a statement, and the slot that it fills."""

    slot: str | None
    regex: re.Pattern[str]


_VALUE = r"(?P<value>[^,.;:!?()。，！？；、]+)"
_IM = r"(?:i['’]?m|i am)"
_IVE = r"(?:i['’]?ve|i have)"
_NAME = r"(?-i:[A-Z][a-zà-öø-ÿ'’-]+(?: [A-Z][a-zà-öø-ÿ'’-]+){0,2})"
# "I'm French, a nurse" gives no name, and who moved to Rust still lives where they lived.
_NO_PEOPLE = (
    r"(?!(?:\w+ )?(?:\w*(?:ican|ish|ese|ian|ist)|french|dutch|greek|german|swiss|thai|arab"
    r"|czech|muslim|catholic|hindu|black|white|type)\b)"
)
_NO_TOOL = (
    r"(?!(?:python|java\w*|typescript|rust|golang|go|kotlin|swift|scala|ruby|php|react|vue"
    r"|angular|svelte|flask|django|fastapi|node|next|postgres\w*"
    r"|mysql|sqlite|mongo\w*|redis|aws|azure|gcp|docker|kubernetes|linux|ubuntu|windows"
    r"|mac\w*|android|ios|github|gitlab|jira|notion|slack|vs|vim"
    r"|neovim|cursor|claude|chatgpt|gpt\S*|openai|google|gmail|step|part|phase|version|plan|v\d\S*)\b)"
)
_ADV = (
    r"(?:(?:also|still|just|really|actually|currently|now|recently|always|absolutely|truly"
    r"|honestly|both|already|finally|usually|mostly"
    r"|mainly|even|definitely|totally|genuinely|typically|generally|kinda|kind of|sort of"
    r"|so|very|super|pretty|quite|officially"
    r"|originally|especially|particularly|deeply|only) )*"
)
# What follows a like or a habit must name something: "I love it" says nothing on its own.
_OF_SOMETHING = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|how|what|when|where|the (?:way"
    r"|idea|fact|thought|feeling|look|sound|vibe|colou?rs?|new|one)"
    r"|to (?:hear|see|know|say|get)|seeing|hearing|knowing|one|all|both|its|their|his|working with you)\b)"
)
_RELATION = (
    r"(?:mom|mum|mother|dad|father|parents?|step(?:mother|father|mom|dad|son|daughter)|wife"
    r"|husband|spouse|partner|girlfriend"
    r"|boyfriend|fianc[eé]e?|son|daughter|kids?|child(?:ren)?|twins?|brothers?|sisters?"
    r"|siblings?|grand(?:ma|pa|mother|father|son"
    r"|daughter|kids|parents|children)|aunt|uncle|cousins?|niece|nephew|family|dogs?|cats?"
    r"|pets?|pup(?:py|pies)?|kittens?|horse"
    r"|roommates?|best friend|friend|mentor|boss|coach|colleague|co-?worker|neighbou?r)"
)
_RELATION_WORDS = (
    r"(?:(?:own|older|younger|elder|little|big|late|ex|two|three|four|five|\d|close|best|good"
    r"|old|long-?time|romantic|new|first|eldest|youngest|former|twin|childhood) )*"
)
_OWNED = (
    rf"(?:{_RELATION}|allerg(?:y|ies)|diabetes|asthma|adhd|autism|arthritis|migraines|insomnia"
    rf"|celiac disease|depression"
    r"|anxiety|(?:bachelor|master)['’]?s?(?: degree)?|degree|ph\.?d|mba|rabbits?|turtles?"
    r"|parrots?|hamsters?|guinea pigs?"
    r"|snakes?|fish|birds?|chickens?|fear of|years of experience|years['’]? experience|experience (?:in"
    r"|as|with)|motorcycle|collection of|garden|farm|bakery|tattoos?)"
)
_ROLE = (
    r"(?:nurse|teacher|doctor|engineer|developer|programmer|lawyer|attorney|accountant|architect"
    r"|artist|musician|writer|author|journalist"
    r"|editor|designer|photographer|chef|cook|baker|barista|waiter|waitress|bartender|farmer"
    r"|carpenter|electrician|plumber|mechanic|pilot"
    r"|driver|police officer|firefighter|paramedic|soldier|pharmacist|dentist|veterinarian"
    r"|psychologist|therapist|counsell?or|scientist"
    r"|researcher|physicist|chemist|biologist|mathematician|economist|analyst|consultant"
    r"|manager|director|producer|banker|broker|realtor"
    r"|librarian|professor|lecturer|tutor|translator|interpreter|student|technologist|technician"
    r"|administrator|secretary|cashier"
    r"|salesperson|entrepreneur|founder|freelancer|actor|actress|dancer|singer|coach|trainer"
    r"|surgeon|social worker|data scientist)"
)
_PLAY = (
    r"(?:play|teach|coach|volunteer|collect|practi[cs]e|own|manage|lead|train|compete|perform"
    r"|paint|draw|garden|knit|sew|cook|bake|hike|camp"
    r"|surf|swim|ski|cycle|bike|jog|meditate|dance|sing|blog|tutor|foster|commute|drive"
    r"|eat|drink|smoke|speak|study|wear|read|write|travel)"
)
_LIFE = (
    r"(?:becom(?:e|ing)|mov(?:e|ing) to|study(?:ing)?|retir(?:e|ing)|open(?:ing)?|travel(?:ing)? to"
    r"|visit(?:ing)?|adopt(?:ing)?|marry(?:ing)?"
    r"|get(?:ting)? (?:married|engaged|a (?:dog|cat|degree))|buy(?:ing)?|learn(?:ing)? (?!about"
    r"|how|more|from)[a-z]|quit(?:ting)?|start(?:ing)? (?:a|my) (?:family|business|career)"
    r"|go(?:ing)? (?:back )?to (?:college|university|school))"
)
_VENTURE = (
    r"(?:apps?|website|studio|business|company|game|blog|book|novel|portfolio|store|shop|restaurant"
    r"|tracker|channel|podcast|band|foundation|charity|library)"
)
_ENGLISH: tuple[tuple[str | None, str], ...] = (
    ("name", rf"my (?:full |first |real )?name(?:['’]s| is) {_VALUE}"),
    (
        "name",
        rf"(?:i['’]?m called|i am called|i go by|(?:you can |everyone |people |friends )call me) (?P<value>{_NAME})",
    ),
    ("name", rf"{_IM} {_NO_PEOPLE}(?P<value>{_NAME})(?=, (?:an?|the|your|from)\b| and {_IM} )"),
    ("name", rf"{_IM} {_NO_PEOPLE}(?P<value>(?-i:[A-Z][a-z]+ [A-Z][a-z]+))(?=[,.!]|$)"),
    ("age", rf"{_IM} (?P<value>[1-9]\d)(?= years?[ -]old|[,.!]| and\b|$)"),
    ("age", rf"{_IM} an? (?P<value>[1-9]\d)[ -]year[ -]old\b"),
    ("age", rf"i {_ADV}turned (?P<value>[1-9]\d)\b"),
    ("birthday", rf"my birthday(?:['’]s| is) (?=[^,.;!?]*\d){_VALUE}"),
    ("birthday", rf"i was born on {_VALUE}"),
    ("born in", rf"i was born (?:and raised )?in {_VALUE}"),
    ("lives in", rf"i {_ADV}(?:live|reside) in (?!(?:a|an|the|this|that|my|fear)\b){_VALUE}"),
    ("lives in", rf"{_IM} {_ADV}(?:living|based|located) (?:here )?in (?!(?:a|an|the|this|that|my)\b){_VALUE}"),
    (
        "lives in",
        rf"(?:i|{_IVE}) {_ADV}(?:moved|relocated) (?:back |over |here )?to (?=(?-i:[A-Z])){_NO_TOOL}{_VALUE}",
    ),
    (None, rf"i {_ADV}(?:live|lived) (?:in|at|on|with|near|by|alone|together)\b"),
    (None, rf"{_IM} {_ADV}(?:living|staying) with my\b"),
    (None, rf"(?:i|{_IVE}) {_ADV}(?:moved|relocated) (?:in|to|from|out|away)\b"),
    ("works as", rf"i {_ADV}work as (?:an? |the )?{_VALUE}"),
    ("works as", rf"{_IM} {_ADV}(?:working|employed) as (?:an? |the )?{_VALUE}"),
    ("works as", rf"{_IM} {_ADV}an? (?P<value>(?:[\w/-]+ ){{0,3}}{_ROLE})\b"),
    (
        "works at",
        rf"i {_ADV}work (?:at|for) (?!(?:a|an|the|this|that|my|me|it|him|her|free"
        rf"|fun|myself|hours|now|\d+)\b){_VALUE}",
    ),
    (
        None,
        rf"i {_ADV}work (?:at|for|in|from|with (?:kids|children|people|animals)|full[- ]time"
        rf"|part[- ]time|nights|remotely)\b",
    ),
    (
        None,
        r"my (?:current )?(?:job|profession|occupation|hobby|hobbies|dream|goal|main goal"
        r"|life goal|passion|nationality|native language|mother tongue|hometown|major) (?:is"
        r"|are) " + _OF_SOMETHING,
    ),
    (None, rf"{_IM} (?:originally )?from (?!(?:the (?:same|other))\b)"),
    (None, r"i (?:come from|grew up|was raised)\b"),
    (
        None,
        rf"{_IM} {_ADV}(?:allergic to|vegetarian|vegan|pescatarian|lactose|gluten|diabetic"
        rf"|dyslexic|colou?r-?blind|deaf|left-handed|bilingual"
        r"|pregnant|retired|unemployed|self-employed|transgender|gay|lesbian|bisexual|queer"
        r"|non-?binary|autistic|introverted|extroverted"
        r"|passionate about|interested in|into|obsessed with|afraid of|scared of|terrified of"
        r"|learning (?:to|how to|(?-i:[A-Z]))|studying|majoring"
        r"|saving (?:up )?for|training for|planning (?:a|my|our) (?:\w+ )?(?:trip|wedding"
        r"|vacation|move|holiday|road trip)|planning (?:on|to) {_LIFE}|writing (?:a|my)"
        r"|(?:building|developing|starting|opening|launching|creating|setting up) (?:an?"
        r"|my|our)(?: own)? (?:[\w-]+ ){{0,3}}{_VENTURE}|a (?:big|huge|lifelong|massive) fan of"
        r"|a fan of"
        r"|(?:Catholic|Christian|Muslim|Jewish|Buddhist|Hindu|atheist))\b ".rstrip()
        + r"(?! (?:it|that|this|these|those|them)\b)",
    ),
    (
        "marital status",
        rf"{_IM} {_ADV}(?P<value>single|married|divorced|engaged|widowed)\b(?! (?:with|in|by) (?:the|this|that)\b)",
    ),
    (
        None,
        rf"{_IM} an? (?:[\w-]+ ){{0,2}}(?:vegetarian|vegan|introvert|extrovert|morning person"
        rf"|night owl|cat person|dog person|mother|father|mom|dad"
        r"|parent|immigrant|veteran|survivor|atheist|perfectionist|minimalist|twin|only child"
        r"|trans woman|trans man|single mom|single dad)\b",
    ),
    (
        None,
        rf"i {_ADV}have (?:(?:an?|one|two|three|four|five|six|\d+|some|several|my own|over"
        rf"|more than|no|severe|type \d) )+(?:[\w'’-]+ ){{0,3}}{_OWNED}\b",
    ),
    (
        None,
        rf"i(?:['’]ve| have) got (?:(?:an?|one|two|three|four|five|six|\d+|some|several|my own"
        rf"|no) )+(?:[\w'’-]+ ){{0,3}}{_OWNED}\b",
    ),
    (None, rf"i {_ADV}(?:(?:love|like|enjoy|adore)(?! the\b)|hate|dislike|prefer|loathe|despise) {_OF_SOMETHING}"),
    (
        None,
        rf"i (?:(?:really|absolutely) )?(?:can['’]?t stand|don['’]?t (?:really )?(?:like"
        rf"|eat|drink|enjoy)|do not (?:like|eat|drink|enjoy)|never eat|never drink) {_OF_SOMETHING}",
    ),
    (
        None,
        rf"i(?:['’]ve| have) (?:always|long|never) (?:loved|liked|hated|enjoyed|wanted to (?:be"
        rf"|become|visit|learn)|been (?!(?:to|told|the|so|there|here)\b)|had (?:a|an|this)) ?{_OF_SOMETHING}\w+",
    ),
    (
        None,
        rf"i (?:always|usually|often|rarely|regularly|never|typically|normally) {_PLAY}\b(?! (?:it"
        rf"|that|this|these|those|them)\b)",
    ),
    (None, r"i(?:['’]ve| have) never (?!(?:thought|heard|felt|known|realized|met)\b)\w+"),
    (
        None,
        r"i (?:can )?(?:play|teach|coach|volunteer|collect|practi[cs]e|own|speak|foster"
        r"|tutor|knit|meditate) (?!(?:it|that|this|these|those|them|the|into|in|to|by)\b)[\w'’-]+",
    ),
    (None, r"i (?:run|own|manage|lead|founded|co-?founded) (?:an?|my(?: own)?) \w+"),
    (
        None,
        rf"i(?:['’]ve| have) {_ADV}been (?!(?:thinking|wondering|trying|meaning|told|looking"
        rf"|busy|feeling|seeing|hearing|having|getting|struggling)\b)"
        r"[^,.;!?]*\b(?:for (?:about |over |almost |nearly |the (?:last|past) )?(?:\d+|an?"
        r"|two|three|four|five|six|seven|eight|nine|ten|many|several|a few|some) ?(?:years?"
        r"|decades?|months?)"
        r"|since (?:i was|\d{4}|childhood|high school|college)|for years|for ages|(?:all|most of) my life)\b",
    ),
    (
        None,
        rf"i(?:['’]ve| have) {_ADV}been (?:diagnosed with|married|vegetarian|vegan|sober"
        rf"|into \w+|a (?:[\w-]+ )?{_ROLE})\b",
    ),
    (
        None,
        rf"i(?:['’]ve| have) {_ADV}(?:had|known|owned|played|lived|worked|studied|practi[cs]ed"
        rf"|collected|taught) [^,.;!?]*\b(?:for|since)\b",
    ),
    (None, r"i used to (?!(?:think|believe|it|that|be (?:so|like))\b)\w+"),
    (
        None,
        rf"i {_ADV}(?:graduated|majored|studied (?:at|in|for|abroad|(?-i:[A-Z]))|retired"
        rf"|enrolled|adopted|got (?:married|engaged|divorced|promoted|hired|laid off|fired"
        rf"|accepted|my degree)"
        r"|quit (?:my|smoking|drinking)|lost my (?:job|mom|mother|dad|father|wife|husband"
        r"|dog|cat)|opened (?:a|my)|launched (?:a|my)|founded|started (?:my own|a new (?:job"
        r"|business|hobby)"
        r"|a business|taking|learning|playing|practi[cs]ing|studying|working (?:as|at|for)"
        r"|volunteering|teaching|collecting|going to|a (?:blog|band|podcast|company|book club))"
        r"|became (?:an?|the)|joined (?:an?|the|my)|signed up for|was (?:diagnosed|promoted"
        r"|hired|adopted|laid off|raised)|earn(?:ed)? (?:my|an?|\$|€|£)|make (?:\$|€|£)\d"
        r"|took up|picked up (?:a|the|playing|painting))"
        r"(?! (?:it|that|this|these|those|them)\b)",
    ),
    (
        None,
        rf"{_IVE} {_ADV}(?:graduated|retired|adopted|joined|enrolled|signed up|quit|become"
        rf"|taken up|started (?:taking|learning|playing|practi[cs]ing|studying|volunteering"
        rf"|teaching|a new|my own))\b",
    ),
    (None, rf"i (?:{_ADV})(?:recently )?met (?:my (?:[\w-]+ )?{_RELATION}|{_NAME})\b"),
    (None, rf"i (?:plan (?:on|to)|intend to|aspire to|hope to|want to) {_LIFE}"),
    (
        FAVOURITE,
        rf"my (?:all-time )?fav(?:ou?rite|e|orite)? (?!(?:part|thing|memory|moment|time|one"
        rf"|way|bit)s?\b)(?P<kind>\w+(?: \w+)?) (?:is|are) (?!(?:that|this|these|when|how"
        rf"|it|the one)\b){_VALUE}",
    ),
    (
        None,
        rf"my {_RELATION_WORDS}{_RELATION}(?: of \d+ years)?(?:,? {_NAME}\b|['’]s name is"
        rf"| (?:is|are) (?:an?|called|named|from|allergic|from|\d+|vegetarian|vegan|my)\b"
        r"| (?:works?|lives?|loves?|likes?|hates?|has|have|plays?|studies|teaches|died|passed away"
        r"|got married|goes to|was born|was diagnosed|are called)\b"
        rf"| and i (?:have|are|live|love|met|got|always|often|enjoy|run|go)\b)(?! (?:it|that|this|these|those|them)\b)",
    ),
)
_ENGLISH_ASSISTANT: tuple[tuple[str | None, str], ...] = (
    ("name", rf"my name(?:['’]s| is) (?P<value>{_NAME})"),
    ("name", rf"(?:i['’]?m|i am) called (?P<value>{_NAME})"),
    (None, rf"{_IM} (?:only |just )?an? (?:[\w-]+ ){{0,3}}(?:ai|language model|assistant|chatbot|bot)\b"),
    (None, r"i was (?:made|created|built|trained|developed) by \w+"),
    (
        None,
        r"i (?:recommended|suggested|advised|proposed|promised) (?!(?:it|that|this|these"
        r"|those|them|earlier|above)\b)\w+",
    ),
)
_OTHERS: tuple[tuple[str | None, str], ...] = (
    # German
    ("name", rf"(?:ich heiße|ich heisse|mein name ist) {_VALUE}"),
    (
        "lives in",
        rf"ich (?:wohne|lebe) (?:jetzt |derzeit |zurzeit |seit \w+ )?in (?!(?:einem|einer|der|dem)\b){_VALUE}",
    ),
    ("lives in", r"ich bin (?:\w+ )?nach (?P<value>\w+) gezogen"),
    ("works as", rf"ich arbeite (?:jetzt |derzeit )?als {_VALUE}"),
    ("works at", rf"ich arbeite (?:jetzt |derzeit )?bei {_VALUE}"),
    ("age", r"ich bin (?P<value>\d\d) jahre alt"),
    (None, r"ich (?:mag|liebe|hasse) (?!(?:es|das|dich|sie|ihn|diese?)\b)\w+"),
    (
        None,
        r"ich bin (?:allergisch gegen|vegetarier|veganer|verheiratet|geschieden|ledig|in \w+ geboren"
        r"|eine? \w+(?:er|in|ist|eur)\b)",
    ),
    (
        None,
        r"ich habe (?:einen?|zwei|drei|vier) (?:\w+ )?(?:hunde?|katzen?|kinder|kind|sohn"
        r"|söhne|tochter|töchter|bruder|brüder|schwestern?|allergie)\b",
    ),
    (
        None,
        r"meine? (?:schwester|bruder|mutter|vater|mann|frau|sohn|tochter|freundin|freund"
        r"|hund|katze) (?:ist|heißt|wohnt|lebt|arbeitet|liebt|mag|hat)\b",
    ),
    (None, r"mein lieblings\w+ ist"),
    # French
    ("name", rf"(?:je m['’]appelle|mon nom est) {_VALUE}"),
    ("lives in", rf"(?:j['’]habite|je vis) (?:maintenant |actuellement )?(?:à|en|au|aux) {_VALUE}"),
    ("works as", rf"je travaille comme {_VALUE}"),
    ("works at", rf"je travaille chez {_VALUE}"),
    ("age", r"j['’]ai (?P<value>\d\d) ans"),
    (
        None,
        r"(?:j['’]aime|j['’]adore|je déteste|je préfère|je n['’]aime pas) (?!(?:ça|cela"
        r"|bien ça|ton|ta|tes|votre|te|vous)\b)\w+",
    ),
    (None, r"je suis (?:allergique|végétarien|végane|marié|célibataire|divorcé|retraité|né)"),
    (None, r"j['’]ai (?:une?|deux|trois|quatre) (?:chiens?|chats?|enfants?|fils|filles?|frères?|sœurs?|allergie)\b"),
    (
        None,
        r"(?:ma|mon) (?:sœur|frère|mère|père|mari|femme|fils|fille|copine|copain|chien|chat) (?:est"
        r"|s['’]appelle|habite|vit|travaille|aime|adore|a)\b",
    ),
    # Spanish
    ("name", rf"(?:me llamo|mi nombre es) {_VALUE}"),
    ("lives in", rf"(?:yo )?vivo en (?!(?:una?|el|la|los|las)\b){_VALUE}"),
    ("works as", rf"(?:yo )?trabajo (?:como|de) {_VALUE}"),
    ("age", r"(?:yo )?tengo (?P<value>\d\d) años"),
    (None, r"(?:no )?(?:me gustan?|me encantan?|odio|prefiero) (?!(?:eso|esto|tu|tus|que)\b)\w+"),
    (
        None,
        r"(?:yo )?soy (?:alérgic|vegetarian|vegan|casad|solter|divorciad|jubilad|(?:un "
        r"|una )?(?:médic|enfermer|profesor|ingenier|abogad|estudiante))",
    ),
    (None, r"(?:yo )?tengo (?:una?|dos|tres|cuatro) (?:perr|gat|hij|herman)\w+"),
    (
        None,
        r"mi (?:hermana|hermano|madre|padre|esposo|esposa|marido|mujer|hijo|hija|novia|novio"
        r"|perro|perra|gato|gata) (?:es|está|se llama|vive|trabaja|ama|tiene)\b",
    ),
    # Portuguese and Italian
    ("name", rf"(?:(?:eu )?me chamo|o meu nome é|meu nome é|mi chiamo|il mio nome è) {_VALUE}"),
    ("lives in", rf"(?:(?:eu )?moro em|vivo em|abito a|vivo a) {_VALUE}"),
    ("works as", rf"(?:(?:eu )?trabalho como|lavoro come) {_VALUE}"),
    (None, r"(?:sono|sou|eu sou) (?:allergic|alérgic|vegetarian|vegan)\w*"),
    # Russian
    ("name", rf"меня зовут {_VALUE}"),
    ("lives in", rf"я (?:сейчас |теперь )?живу в {_VALUE}"),
    ("works as", r"я работаю (?!(?:в|на|над|с)\b)(?P<value>\w+)"),
    ("age", r"мне (?P<value>\d\d) (?:лет|года?)\b"),
    (None, r"я работаю (?:в|на) \w+"),
    (None, r"я (?:очень |не )?(?:люблю|обожаю|ненавижу|предпочитаю) (?!(?:это|тебя|вас|его|её|их|когда|как)\b)\w+"),
    (None, r"у меня (?:есть |аллергия |два |две |три |четыре )+\w+"),
    (None, r"(?:моя|мой|мои) (?:сестра|брат|мама|папа|мать|отец|муж|жена|сын|дочь|собака|кошка|кот) \w+"),
    (None, r"я (?:веган|вегетариан|замужем|женат|на пенсии|родил)\w*"),
    # Chinese
    ("name", r"我(?:的名字)?(?:叫|是叫)(?:做)?(?P<value>[\w·]{1,12})"),
    ("name", r"我的名字是(?P<value>[\w·]{1,12})"),
    ("lives in", r"我(?:现在|目前|一直)?住在(?P<value>[^,.;:!?，。！？；、\s]+)"),
    ("lives in", r"我(?:最近|刚|刚刚|已经)?搬(?:到|去)了?(?P<value>[^,.;:!?，。！？；、\s了]+)"),
    ("age", r"我(?:今年)?(?P<value>\d{2})岁"),
    (None, r"我(?:现在|目前)?在[^,.;:!?，。！？；、\s]{1,12}(?:工作|上班|上学|读书|读研|读博)"),
    (
        None,
        r"我是(?:一名|一个|一位|个)?[^,.;:!?，。！？；、\s]{0,8}(?:师|生|员|人|医|警|家|手|父|母|者|妈妈|爸爸|素食)",
    ),
    (None, r"我(?:很|最|非常|特别|一直|不|从小就?)?(?:喜欢|爱吃|爱喝|爱看|爱听|讨厌|热爱)(?!你|这|那|它|的是)"),
    (None, r"我对[^,.;:!?，。！？；、\s]{1,12}过敏"),
    (
        None,
        r"我(?:家里?)?有(?:一|两|二|三|四|\d)(?:只|个|条|位)[^,.;:!?，。！？；、\s]{0,6}(?:猫|狗|孩子|儿子|女儿|妹|姐|哥|弟)",
    ),
    (
        None,
        r"我的?(?:妹妹|姐姐|哥哥|弟弟|妈妈|爸爸|母亲|父亲|丈夫|老公|老婆|妻子|儿子|女儿|男朋友|女朋友|猫|狗)(?:叫|是|住|在|喜欢|今年)",
    ),
    (None, r"我的?生日是"),
    # Japanese
    ("name", r"(?:私|僕|俺)の名前は(?P<value>[^、。！？\s]+?)(?:です|と|だ|$)"),
    ("lives in", r"(?:(?:私|僕|俺)は)?(?:今|現在)?、?(?P<value>[^、。！？\s]{1,12})に住んで(?:い)?(?:ます|る)"),
    ("age", r"(?:(?:私|僕|俺)は)?(?P<value>\d{2})歳(?:です|だ)"),
    (None, r"(?:(?:私|僕|俺)は)?[^、。！？\s]{1,16}(?:で|に)(?:働いて|勤めて)(?:い)?(?:ます|る)"),
    (None, r"(?:私|僕|俺)は、?[^、。！？\s]{1,20}が(?:とても|すごく)?(?:大好き|好き|嫌い|苦手)(?:です|だ)"),
    (None, r"(?:(?:私|僕|俺)は)?[^、。！？\s]{1,12}アレルギー(?:が|です)"),
    (None, r"(?:私|僕|俺)は、?[^、。！？\s]{1,12}(?:師|生|員|者|家|エンジニア|デザイナー)(?:です|だ)"),
    (None, r"[^、。！？\s]{0,8}(?:猫|犬|うさぎ|ペット)を(?:\S{1,3}匹)?飼って(?:い)?(?:ます|る)"),
    # Korean
    ("name", r"(?:제|내) 이름은 (?P<value>[^\s,.!?]+?)(?:입니다|이에요|예요|이야|야)"),
    ("lives in", r"(?:저는|나는|전|난) (?:지금 )?(?P<value>[^,.!?]{1,16})에(?:서)? (?:살아|살고|삽니다|산다)"),
    ("age", r"(?:저는|나는|전|난) (?P<value>\d{2}) ?(?:살|세)"),
    (None, r"(?:저는|나는|전|난) [^,.!?]{1,20}(?:을|를|이|가)? ?(?:아주 |정말 |제일 )?(?:좋아|싫어)(?:해|합|한)"),
    (None, r"(?:저는|나는|전|난) [^,.!?]{1,20}에서 (?:일해|일하고|일합|근무)"),
    (None, r"(?:저는|나는|전|난) [^,.!?]{0,12}알레르기"),
    (
        None,
        r"(?:저는|나는|전|난) [^,.!?\s]{0,8}(?:학생|선생님|의사|간호사|개발자|디자이너|회사원)(?:입니다|이에요|예요)",
    ),
    (None, r"(?:고양이|강아지|개)(?:를)? (?:\S+ )?(?:키워|키우고|키웁)"),
)


@cache
def user_patterns() -> tuple[Pattern, ...]:
    """Return what the user's durable statements begin with, the most specific first."""
    return _compile((*_ENGLISH, *_OTHERS))


@cache
def assistant_patterns() -> tuple[Pattern, ...]:
    """Return what the assistant's durable statements about itself begin with."""
    return _compile(_ENGLISH_ASSISTANT)


def _compile(rows: tuple[tuple[str | None, str], ...]) -> tuple[Pattern, ...]:
    return tuple(Pattern(slot, re.compile(text, re.IGNORECASE)) for slot, text in rows)
