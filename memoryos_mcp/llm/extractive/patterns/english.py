"""What durable statements begin with in English."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import (
    ADV,
    ANIMAL,
    CAPITAL,
    CODE,
    COUNTED,
    IM,
    IVE,
    LANGUAGE,
    MONTH,
    NAME,
    NO_PEOPLE,
    NO_TOOL,
    OF_SOMETHING,
    ONE_NAME,
    ONE_OF_SEVERAL,
    ONLY_ONE,
    RELATION,
    RELATION_WORDS,
    ROLE,
    TIME,
    VALUE,
    WE,
    WEEKDAY,
    WERE,
    WEVE,
)

Row = tuple[str | None, str]

_NOT_ELSEWHERE = r"(?! (?:it|that|this|these|those|them)\b)"
_RUN_OF = r"[^,.;!?]{0,60}?"
_REGULARLY = (
    rf"(?:every (?:(?:other |single |second )?(?:day|week|month|year|night|morning|evening|afternoon|weekend|summer|winter"
    rf"|spring|autumn|fall)|{WEEKDAY}|{MONTH})|each (?:day|week|month|year|night|morning|evening|summer|winter)|once (?:a"
    rf"|per) \w+|(?:twice|(?:two|three|four|five|\d) times) (?:a|per) (?:day|week|month|year)|on {WEEKDAY}s|{WEEKDAY}s"
    rf"|on (?:week(?:days|ends)|school days)|at (?:the )?weekends|in the (?:mornings|evenings|afternoons)|daily\b|weekly\b"
    r"|(?:\d+|an?|half an?|one|two|three|four|five|six|seven|eight|ten|twenty|thirty|several) [a-z]+(?: of [a-z]+)? (?:a|per"
    r"|each|every) (?:day|week|month|year|night|morning|evening)(?=[,.!]|$| and| before| after)"
    r"|(?:before|after) (?:breakfast|lunch|dinner|work|bed|school))"
)
_PLAY = (
    r"(?:play|teach|coach|volunteer|collect|practi[cs]e|own|manage|lead|train|compete|perform|paint|draw|garden|knit|sew"
    r"|cook|bake|hike|camp|surf|swim|ski|cycle|bike|jog|meditate|dance|sing|blog|tutor|foster|commute|drive|eat|drink"
    r"|smoke|speak|wear|read|travel|run|walk|exercise|fast|nap|shop)"
)
_DO_REGULARLY = (
    rf"(?:{_PLAY}|go|work out|work|get up|wake up|do|attend|meet|call|visit|have|take|see|go to|make|study|stay|babysit"
    r"|lift|climb|box|row|donate|help|watch|listen to|tend|work from home|see my|take my|pray|journal|stretch|sleep)"
)
_LIFE = (
    r"(?:becom(?:e|ing)|mov(?:e|ing) to|study(?:ing)?|retir(?:e|ing)|open(?:ing)? (?:a|my)|travel(?:l?ing)? to"
    r"|visit(?:ing)? (?=(?-i:[A-Z]))|adopt(?:ing)? a|marry(?:ing)?"
    r"|get(?:ting)? (?:married|engaged|a (?:dog|cat|degree))|buy(?:ing)? (?:a|an|my|our) (?:\w+ )?(?:house|flat|apartment"
    r"|home|car|boat|farm|bike|van)|learn(?:ing)? (?!about|how|more|from|the)[a-z]|quit(?:ting)? (?:my|smoking|drinking)"
    r"|start(?:ing)? (?:a|my) (?:own )?(?:family|business|career|company)|go(?:ing)? (?:back )?to (?:college|university"
    r"|school)|run(?:ning)? (?:a|the|my) (?:[\w-]+ )?marathon)"
)
_VENTURE = (
    r"(?:studio|business|company|blog|book|novel|store|shop|restaurant|channel|podcast|band|foundation|charity|library"
    r"|caf[eé]|bakery|farm|start-?up|practice|brewery|gallery|clinic|agency|bookshop|bookstore|garage|salon|vineyard"
    r"|guest ?house|hostel|dance school|food truck|nursery|yoga studio)"
)
_THING = (
    r"(?:bikes?|bicycles?|cars?|motorbikes?|motorcycles?|scooters?|boats?|vans?|campers?|pianos?|guitars?|violins?|cellos?"
    r"|drum kit|laptop|macbook|ipad|iphone|telescope|camera|house|flat|apartment|cottage|cabin|allotment|greenhouse|farm"
    r"|caravan|kayak|canoe|e-bike|3d printer|sewing machine|espresso machine|synthesizer|tent|truck|garden|record player"
    r"|sailboat|collection of [\w ]+|tattoos?|swimming pool|second home|holiday home|bank|account)"
)
_ILLNESS = (
    r"(?:allerg(?:y|ies)|diabetes|asthma|adhd|add|autism|arthritis|migraines?|insomnia|celiac disease|coeliac disease"
    r"|celiac|coeliac|depression|anxiety|epilepsy|eczema|psoriasis|endometriosis|pcos|ibs|crohn['’]s(?: disease)?|ms"
    r"|multiple sclerosis|tinnitus|hay fever|(?:low|high) blood pressure|high cholesterol|hypertension|hypothyroidism"
    r"|a heart condition|heart condition|pacemaker|scoliosis|sciatica|sleep apn(?:o?e)a|ocd|ptsd|bipolar disorder|dyslexia"
    r"|fibromyalgia|gout|lupus|an?(?:a)emia|intolerance|(?:bad|weak|injured|dodgy) (?:back|knees?|shoulder|hip|ankle|wrist)"
    r"|slipped disc|herniated disc|food allergies|fear of \w+|phobia|reflux|glaucoma|hearing aid|prosthetic \w+|cancer)"
)
_FOOD = (
    r"(?:(?:tree |all |any |too much )?(?:nuts|peanuts|gluten|dairy|lactose|wheat|sugar|salt|caffeine|coffee|alcohol|wine|beer"
    r"|shellfish|seafood|fish|eggs?|soy|meat|red meat|pork|beef|spicy food|grapefruit|milk|cheese|onions?|garlic|tomatoes"
    r"|strawberries|sesame|celery|mushrooms|chocolate|bananas|apples|avocados?|yeast|fructose))"
)
_OWNED = (
    rf"(?:{RELATION}|{ANIMAL}|{_ILLNESS}|{_THING}|boys|girls|(?:bachelor|master)['’]?s?(?: degree)?|degree|ph\.?d|mba"
    r"|fear of|motorcycle|garden|farm|bakery)"
)
_EVENT = (
    r"(?:appointment|interview|exam|flight|operation|surgery|wedding|check-?up|scan|driving test|audition|concert|recital"
    r"|marathon|race|competition|tournament|conference|viva|defen[cs]e|graduation|party|holiday|vacation|trip|reunion"
    r"|birthday|anniversary|due date|deadline(?! to (?:meet|hit|keep|make)\b)|training|course|rehearsal|funeral|baptism|first day|date|dentist|match|game"
    r"|performance|exhibition|hearing|presentation|move|retreat|housewarming)"
)
_TO_BE = r"(?:is|are|['’]s|was|will be|takes place|starts?|begins?|is scheduled for|has been moved to|has moved to|got moved to|leaves|departs|arrives|ends)"
_CONDITION = (
    r"(?:allergic to(?! (?:\w+ )?(?:mornings?|mondays?|weekdays?|work|working|people|meetings?|effort|exercise|exercising"
    r"|nonsense|drama|commitment|fun|responsibilit\w+|housework|homework|chores|small talk|bugs|stupid\w*|adulting|mess)\b)"
    r"|vegetarian|vegan|pescatarian|lactose[- ]intolerant|gluten[- ]intolerant|intolerant (?:to|of)|coeliac"
    r"|celiac|diabetic|dyslexic|colou?r-?blind|deaf|blind in|left-handed|bilingual|trilingual|asthmatic|an?(?:a)emic"
    r"|low on iron|pregnant|expecting (?:a|my|our|twins)|retired|self-employed|transgender|gay|lesbian|bisexual|queer"
    r"|non-?binary|autistic|introverted|extroverted|short-sighted|near-?sighted|far-?sighted|epileptic|hypertensive"
    r"|passionate about|interested in (?!(?:a|the|an|how|learning|knowing|your|this|\w+ing (?:ways|how|more|the|a|my)|improving|understanding|using|implementing|exploring)\b)|really into|into|obsessed with"
    r"|afraid of|scared of|terrified of|fluent in|keen on|fond of|(?:addicted|sensitive) to|sober|halal|kosher"
    r"|claustrophobic|afraid to fly)"
)
_NATIONAL = (
    r"(?-i:[A-Z][a-z]{2,12}(?:ican|ish|ese|ian|ean|alian)|French|Dutch|Greek|German|Swiss|Thai|Arab|Czech|Iraqi|Pakistani"
    r"|Israeli|Welsh|Catholic|Muslim|Jewish|Buddhist|Hindu|Christian|Sikh|Korean|Mexican|Cuban|Filipino)"
)
_WORK_FACT = rf"(?:[\w/&-]+ ){{0,3}}{ROLE}"

USER: tuple[Row, ...] = (
    # Who: name, age, birthday, origin
    ("name", rf"my (?:full |first |real |given )?name(?:['’]s| is) (?!(?:not|on|in|too|spelt|spelled|misspel\w+|often|hard|pronounced|a|an|the|also|derived)\b){VALUE}"),
    ("name", rf"the name['’]s (?P<value>{NAME})(?=[,.!]|$)"),
    ("name", rf"(?:i['’]?m called|i am called|i go by|(?:you can |everyone |everybody |people |friends |my friends )calls? me) (?P<value>{NAME})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?=, (?:an?|the|your|from|\d\d)\b| and {IM} )"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>(?-i:[A-Z][a-z]+ [A-Z][a-z]+))(?=[,.!]|$)"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?= from {CAPITAL})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?=,? (?:and )?(?:i (?:work|live|am|have|study|teach)|i['’]m|my)\b)"),
    ("age", rf"{IM} (?P<value>[1-9]\d)(?= years?[ -]old|[,.!]| and\b|$)"),
    ("age", rf"{IM} an? (?P<value>[1-9]\d)[ -]year[ -]old\b"),
    ("age", rf"{IM} (?P<value>(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)(?= years? old\b)"),
    ("age", rf"i {ADV}turned (?P<value>[1-9]\d)\b"),
    ("age", rf"{IM} {ADV}(?P<value>in my (?:early |mid[ -]?|late )?(?:teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|[2-9]0s))\b"),
    ("birthday", rf"my birthday(?:['’]s| is) (?=[^,.;!?]*(?:\d|{MONTH})){VALUE}"),
    ("birthday", rf"i was born (?:on|in) (?=\d|{MONTH}|the \d){VALUE}"),
    ("from", rf"i was born (?:and (?:raised|bred) )?in (?!(?:the|a|an)\b){VALUE}"),
    ("from", rf"{IM} (?:originally )?from (?:the )?(?=(?-i:[A-Z]))(?!(?:Monday|Tuesday|January|Marketing|Sales|HR|IT)\b){VALUE}"),
    ("from", rf"i (?:originally )?come from (?:the )?{CAPITAL}{VALUE}"),
    (None, r"i (?:grew up|was (?:born and )?raised|was brought up) (?!(?:thinking|believing|watching)\b)\w+"),
    ("nationality", rf"{IM} {ADV}(?:half |an? )?(?P<value>{_NATIONAL}(?: citizen)?)(?=[,.!]| and\b| but\b| by\b| living\b|$)"),
    # Where
    ("lives", rf"{WE} {ADV}(?:live|reside) in (?!(?:a|an|the|this|that|my|fear)\b){VALUE}"),
    ("lives", rf"{WE} {ADV}live (?:just |right )?(?P<value>outside (?:of )?{CAPITAL}[^,.;:!?]+)"),
    ("lives", rf"{WERE} {ADV}(?:living|based|located|settled) (?:here )?in (?!(?:a|an|the|this|that|my)\b){VALUE}"),
    ("lives", rf"{WEVE} {ADV}(?:moved|relocated) (?:back |over |here )?(?:from (?-i:[A-Z])[\w ]{{1,30}} )?to {CAPITAL}{NO_TOOL}{VALUE}"),
    ("lives", rf"{WEVE} {ADV}(?:been living|lived) in {CAPITAL}(?P<value>[^,.;:!?]+?) (?:since|for (?!a while))\b"),
    (None, rf"{WE} {ADV}live (?:in (?:a|an|the)|at|on|with|near|by|alone|together|next)\b"),
    (None, rf"{IM} {ADV}(?:living|staying) with my\b"),
    (None, rf"{WEVE} {ADV}(?:moved|relocated) (?:in with|into|to (?:a|the)|out of|away from)\b (?!(?:it|this|that)\b)"),
    (None, rf"(?:my|our|the) (?:new )?(?:house|flat|apartment|home|place) is (?:in|on|at|near) (?:the |an? )?{CAPITAL}"),
    (None, r"(?:my|our) (?:new )?(?:house|flat|apartment|home) (?:is|has) (?:in|on|near) the \w+ (?:of|floor)\b"),
    (None, r"(?:my|our) (?:\w+ )?(?:landlord|landlady|doctor|gp|dentist|vet|therapist|lawyer|office|bank|school)(?:['’]s name)? is (?:called |named |in |at )?(?:dr\.? |mr\.? |mrs\.? |ms\.? )?(?=(?-i:[A-Z]))"),
    # Work and study
    ("work", rf"i {ADV}work as (?:an? |the )?{VALUE}"),
    ("work", rf"{IM} {ADV}(?:working|employed) as (?:an? |the )?{VALUE}"),
    ("work", rf"(?:{IM}|{IVE} been) {ADV}an? (?P<value>{_WORK_FACT})\b(?! (?:myself|of (?:my|this|that)|who|mindset|at heart)\b)"),
    ("work", rf"{IM} {ADV}an? (?P<value>(?!(?:\w+ )?(?:fan|member|customer|user|regular|beginner|guest|visitor|sucker)\b)[\w-]+(?: [\w-]+){{0,2}} (?:at|for) (?:the )?(?-i:[A-Z])[\w&. -]+)"),
    ("work", rf"{IM} {ADV}the (?P<value>(?:head|director|manager|owner|founder|ceo|cto|editor|principal|chair(?:wo)?(?:man)?)(?: of| at) [^,.;!?]+)"),
    ("work", rf"{IM} {ADV}the (?P<value>(?:(?:head|lead|chief|senior|only|sole) ){{1,2}}{ROLE} (?:at|of|for|in) [^,.;!?]+)"),
    ("work", rf"(?:i|{IVE}) {ADV}(?:start(?:ed)?|begin|began|joined [^,.;!?]{{2,30}}) (?:on [^,.;!?]{{3,20}} |a new job |work |working |my new job )?as (?:an? |the )(?P<value>{_WORK_FACT})\b"),
    ("work", rf"(?:i|{IVE}) {ADV}(?:got|took|accepted|landed|found|have|started|starting) (?:an?|my|the) (?:new )?(?:job|position|post|role)(?: offer)? (?:as|at|with|in) (?:an? |the )?(?!(?:this|that|it)\b){VALUE}"),
    ("work", rf"(?:i|{IVE}) {ADV}(?:was|got|been|became|become)(?: promoted to| made)? (?:an? |the )?(?P<value>{_WORK_FACT}|head of [^,.;!?]+)\b"),
    ("work", rf"i {ADV}(?:got|was|been) promoted to {VALUE}"),
    ("work", rf"i {ADV}(?:do )?(?P<value>(?!(?:do )?(?:what|this|that|it|nothing)\b)[^,.;!?]{{3,50}}) for a living\b"),
    ("work", rf"my (?:current )?(?:job|profession|occupation) is (?!(?:to|so|very|not|really|too|boring|stressful|hard|in)\b){OF_SOMETHING}{VALUE}"),
    ("work", rf"{IM} {ADV}(?P<value>retired|unemployed|self-employed|out of work|between jobs|on (?:maternity|paternity|parental) leave)\b"),
    ("work", rf"(?:i|{IVE}) {ADV}(?P<value>retired|lost my job|got laid off|was laid off|been laid off|got fired|was fired|quit my job|(?:left|quit) my job)\b"),
    ("employer", rf"i {ADV}work (?:at|for) (?!(?:a|an|the|this|that|my|me|it|him|her|free|fun|myself|hours|now|home|night|\d+)\b){VALUE}"),
    (None, rf"i {ADV}work (?:(?:at|for|in) (?!(?:it|this|that|the same|my (?:code|project))\b)|from home|with (?:kids|children|people|animals)|full[- ]time|part[- ]time|nights|remotely|night shifts|on {WEEKDAY}s)"),
    (None, r"my (?:hobby|hobbies|dream|life goal|long-term goal|passion|passions|nationality|native language|mother tongue|hometown|home town|major|religion|blood type|favou?rites?|new year['’]s resolution|shoe size|size|zodiac sign|star sign|height) (?:is|are) " + OF_SOMETHING),
    ("studies", rf"{IM} {ADV}(?:studying|majoring in|doing (?:a|my) (?:degree|master['’]?s|ph\.?d|bachelor['’]?s)(?: in)?) (?!(?:this|that|the|for|it|how|hard|a|to|more)\b){VALUE}"),
    ("studies", rf"i {ADV}study (?!(?:this|that|the|for|it|how|hard|a|to|more|best|at night|every|in the)\b){VALUE}"),
    (None, rf"i {ADV}(?:studied|graduated|majored) (?:\w+ ){{0,3}}(?:in|at|from) {CAPITAL}"),
    (None, rf"{WE} (?:run|own|manage|founded|co-?founded) (?:an?|my(?: own)?|our(?: own)?) (?:[\w-]+ ){{0,2}}{_VENTURE}\b"),
    # Family, friends
    ("family:{who}", rf"(?:my|our) {RELATION_WORDS}{ONLY_ONE},? (?!(?:is|and)\b)(?P<value>{ONE_NAME})\b(?!['’]s)"),
    ("family:{who}", rf"(?:my|our) {RELATION_WORDS}{ONLY_ONE}(?:['’]s (?:first )?name is| is (?:called|named)|['’]s (?:called|named)) (?P<value>{ONE_NAME})"),
    ("family:{who}:{value}", rf"(?:my|our) {RELATION_WORDS}{ONE_OF_SEVERAL},? (?P<value>{ONE_NAME})\b(?!['’]s)"),
    ("family:{who}:{value}", rf"(?:my|our) {RELATION_WORDS}{ONE_OF_SEVERAL}(?:['’]s (?:first )?name is| is (?:called|named)|['’]s (?:called|named)) (?P<value>{ONE_NAME})"),
    ("family:{who}:{value}", rf"{WE}(?:['’]ve| have)?(?: got)? (?:have |had )?(?:an?|one) {RELATION_WORDS}{ONE_OF_SEVERAL},? (?:called |named |whose name is )?(?P<value>{ONE_NAME})\b"),
    ("family:{who}", rf"(?P<value>{ONE_NAME}) is my {RELATION_WORDS}{ONLY_ONE}\b"),
    ("family:{who}:{value}", rf"(?P<value>{ONE_NAME}) is my {RELATION_WORDS}{ONE_OF_SEVERAL}\b"),
    ("marital status", rf"{IM} {ADV}(?P<value>single|married|divorced|engaged|widowed|separated)(?: to {ONE_NAME})?\b(?! (?:with|in|by|from|out) (?:the|this|that|a)\b)(?! (?:with(?! (?:\w+ ){{1,2}}(?:kids?|children|daughters?|sons?|boys|girls)\b)|parent|mom|mum|dad|mother|father|point)\b)"),
    ("marital status", rf"(?:{WEVE}|my (?:partner|boyfriend|girlfriend|husband|wife) and i) {ADV}(?:got|are getting|been|are) (?P<value>married|divorced|engaged|separated)\b(?! to (?:the|this))"),
    (None, rf"(?:(?:my|our) {RELATION_WORDS})(?:(?:kids?|children|sons|daughters|brothers|sisters|twins|siblings|parents)) are (?:called|named) {CAPITAL}"),
    (None, rf"(?!\w+ly,){NAME}, (?:my|our) {RELATION_WORDS}{RELATION}(?=,| who| from)"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} (?:is|are) (?:an? (?:[\w-]+ ){{0,2}}{ROLE}|called|named|from|allergic|vegetarian|vegan|my|\d+|expecting|pregnant|getting (?:married|a new)|diabetic|from|retired|in hospital)\b"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} {ADV}(?:starts? (?:school|kindergarten|nursery|college|university)|started (?:school|kindergarten|nursery|college|university)|(?:is|are) due (?:on|in|next|this)|works? (?:as|in|at|for)|lives? (?:in|with|near|next)|loves?|likes?|hates?|plays?|studies|teaches|died|passed away|got married|goes to|was born|was diagnosed|are called|turns? \d|turned \d|has (?:an?|two|three|four|\d)|have (?:an?|two|three|four|\d)|speaks?|can['’]t eat|proposed|comes? from|moved to|collects?)\b{_NOT_ELSEWHERE}"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} and i (?:have|are|live|love|met|got|always|often|enjoy|run|go)\b{_NOT_ELSEWHERE}"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION}['’]s (?:birthday|name) is\b"),
    (None, rf"{NAME} is (?:expecting|pregnant)\b(?! (?:me|you|us|a reply|that))"),
    (None, rf"(?:{NAME}|my (?:partner|boyfriend|girlfriend)) proposed(?: to me)?(?:!|\.|$| on| in| at)"),
    (None, rf"i (?:{ADV})(?:recently )?met (?:my (?:[\w-]+ )?(?:{RELATION})|{NAME})\b"),
    # Animals
    (None, rf"(?:my|our) {RELATION_WORDS}(?P<ends>{ANIMAL}(?: {ONE_NAME})?),? (?:has )?(?:just )?(?:died|passed away|was run over)\b"),
    ("pet:{value}", rf"{WEVE} {ADV}(?:(?:have|got|adopted|keep|own|bought|rescued) ){{1,2}}(?:an?|one|our|my) (?:[\w'’-]+ ){{0,3}}{ANIMAL},? (?:called|named|whose name is) (?P<value>{ONE_NAME})"),
    ("pet:{value}", rf"(?:my|our) {RELATION_WORDS}{ANIMAL}(?:['’]s name is| is (?:called|named)|['’]s (?:called|named)|,)? (?P<value>{ONE_NAME})\b(?!['’]s)"),
    ("pet:{value}", rf"(?P<value>{ONE_NAME}) is (?:my|our) (?:[\w'’-]+ ){{0,2}}{ANIMAL}\b"),
    (None, rf"{WEVE} {ADV}(?:(?:have|got|adopted|keep|own|bought) ){{1,2}}(?:an?|two|three|four|our|my) (?:[\w'’-]+ ){{0,3}}(?:called|named) {CAPITAL}"),
    (None, rf"{WEVE} (?:just |recently )?adopted (?:an?|two|three)\b(?! (?:new )?(?:approach|strategy|habit|framework|style|policy|tool|system|routine|method))"),
    (None, rf"{WEVE} {ADV}(?:got|rescued|bought|took in) (?:an?|two|three|another) (?:[\w-]+ ){{0,3}}{ANIMAL}\b(?! (?:toys?|food|bed|costume|video|picture|sitter)\b)"),
    (None, rf"(?:my|our) {RELATION_WORDS}{ANIMAL} (?:is|are|has|have|loves?|hates?|died|passed away|eats?|needs?|sleeps?|likes?|was run over) (?!(?:so|being|acting|it|this|that|very|too)\b)\w+"),
    # Diet and health
    ("diet", rf"(?:{IM}|{IVE} been|i {ADV}became|{IVE} become|i {ADV}went) {ADV}(?:an? (?:strict )?)?(?P<value>vegetarian|vegan|pescatarian|flexitarian)\b"),
    ("diet", rf"{IM} (?P<value>not (?:an? )?(?:vegetarian|vegan|pescatarian) any ?more|no longer (?:an? )?(?:vegetarian|vegan|pescatarian))"),
    ("diet", rf"(?:i|{IVE}) {ADV}(?P<value>(?:stopped|quit|given up|gave up) (?:eating |being )?(?:meat|fish|dairy|animal products|vegetarian|vegan|gluten|sugar))\b"),
    ("diet", r"i (?P<value>(?:don['’]?t|do not|no longer) eat (?:meat|fish)(?: or \w+)? any ?more|eat (?:meat|fish) again|no longer eat (?:meat|fish|animal products))"),
    (None, rf"(?:i|{IVE}) {ADV}started (?:eating|drinking|smoking) {OF_SOMETHING}\w+"),
    (None, rf"{IM} {ADV}(?:not |no longer ){{0,1}}{_CONDITION}\b{_NOT_ELSEWHERE}(?![^.!?]*\b(?:lol|lmao|rofl|jk|(?:ha){{2,}}h?)\b)"),
    (None, rf"{WE} {ADV}(?:have|suffer from|live with|was born with) (?:{COUNTED}){{0,1}}(?:[\w'’-]+ ){{0,2}}{_ILLNESS}\b"),
    (None, rf"i {ADV}(?:can['’]?t|cannot|can not|must not|mustn['’]t|am not allowed to|may not) (?:eat|drink|have|tolerate|digest|take) {OF_SOMETHING}(?!(?:off|on|away|up|a (?:look|break)|fun|access)\b)"),
    (None, r"i (?:can['’]?t|cannot) (?:hear|walk|smell|taste) (?:very )?(?:well|properly|anything|far|without|with|on|in)\b"),
    (None, rf"{IM} {ADV}recovering from (?:[\w'’-]+ ){{0,3}}(?:surgery|operation|injury|stroke|cancer|covid|illness|accident|concussion|burnout|heart attack)\b"),
    (None, rf"{IM} {ADV}trying to (?:(?:eat|drink|smoke) (?:less|more|fewer) |quit (?:smoking|drinking)|lose weight|gain weight)"),
    (None, rf"{IM} {ADV}on (?:[\w-]+ ){{0,3}}(?:medication|meds|antidepressants|insulin|blood thinners|statins|the pill|painkillers)\b"),
    (None, rf"(?:i (?:have to|must|need to) (?:avoid|stay away from)|i {ADV}avoid) {_FOOD}\b"),
    (None, rf"{_FOOD} (?:makes?|gives?) me (?:sick|ill|itchy|bloated|sneeze|hives|cramps|an? (?:rash|headache|migraine|stomach ache))\b"),
    (None, rf"i {ADV}(?:keep|eat) (?:strictly )?(?:kosher|halal|vegan|vegetarian|plant-based|gluten-free|dairy-free|keto|low-carb)\b"),
    (None, r"i(?: always| usually)? (?:get|break out in) (?:hives|a rash|migraines|seasick|carsick|hay fever|nosebleeds|panic attacks)\b"),
    (None, rf"(?:i|{IVE}) {ADV}(?:was|been|got) (?:diagnosed with|vaccinated|prescribed)\b"),
    (None, r"i (?:take|took|am on|use) (?:\d+ ?(?:mg|ml|units|mcg|µg)|(?:metformin|insulin|ibuprofen|statins?|antidepressants?|beta ?blockers?|blood thinners|vitamin \w+|iron tablets|thyroxine|levothyroxine|lisinopril|sertraline|ritalin|an inhaler|antihistamines|medication|magnesium|omeprazole))\b"),
    (None, r"my (?:\w+ ){0,2}(?:doctor|gp|dentist|physio|cardiologist|therapist|optician|allergist|neurologist|dermatologist|midwife) (?:says|said|told me|found|confirmed)(?: that)? i(?:['’]m| am| have| should not| must not| can['’]t)\b"),
    (None, r"i (?:tore|broke|sprained|dislocated|fractured|twisted|pulled|strained) (?:an?|my) (?!(?:build|code|record|promise|streak|test|sweat)\b)"),
    (None, r"i(?:['’]ve| have)? (?:recently |just )?had (?:a (?:stroke|heart attack|miscarriage|baby|hip replacement|knee replacement|c-section)|(?:\w+ )?surgery|an operation|my (?:appendix|tonsils|gallbladder|wisdom teeth) (?:out|removed))\b"),
    (None, rf"i {ADV}(?:wear glasses|wear contacts|wear contact lenses|wear (?:a )?hearing aids?|wear braces|use a wheelchair|smoke\b|don['’]?t smoke|don['’]?t drink(?: alcohol)?\b|quit smoking|quit drinking|stopped smoking|stopped drinking)"),
    # Likes
    ("favourite {kind}", rf"my (?:all-time |absolute )?fav(?:ou?rite|e|orite)? (?!(?:part|thing|memory|moment|time|one|way|bit)s?\b)(?P<kind>\w+(?: \w+)?) (?:is|are) (?!(?:that|this|these|when|how|it|the one|probably)\b){VALUE}"),
    (None, rf"i {ADV}(?:(?:love|like|enjoy|adore)(?! the\b| to (?:think|know|see|keep|make sure|focus)\b)|hate|dislike|prefer|loathe|despise|detest) {OF_SOMETHING}"),
    (None, rf"i (?:(?:really|absolutely|just) )?(?:can['’]?t (?:stand|bear)|don['’]?t (?:really )?(?:like|eat|drink|enjoy)|do not (?:like|eat|drink|enjoy)|never (?:eat|drink|touch)) {OF_SOMETHING}"),
    (None, rf"{IM} {ADV}(?:not )?an? (?:big |huge |lifelong |massive |great ){{0,2}}(?:fan of|lover of) {OF_SOMETHING}"),
    (None, rf"{IM} an? (?:[\w-]+ ){{0,2}}(?:introvert|extrovert|morning person|early bird|night owl|cat person|dog person|tea drinker|coffee drinker|mother|father|mom|mum|dad|parent|immigrant|refugee|veteran|survivor|atheist|agnostic|perfectionist|minimalist|twin|only child|trans woman|trans man|bookworm|widow|widower|orphan|smoker|non-smoker|grandmother|grandfather|(?:type \d )?diabetic)\b(?! of (?:this|that|the)\b)"),
    (None, rf"i(?:['’]ve| have) (?:always|long) (?:loved|liked|hated|enjoyed|disliked|wanted to (?:be|become|visit|learn)|had (?:a|an)) {OF_SOMETHING}\w+"),
    (None, rf"i(?:['’]ve| have) never (?:been to {CAPITAL}|eaten|smoked|flown|skied|driven|ridden|seen the (?:sea|ocean)|been (?:abroad|married|skiing)|owned|learned to|learnt to|liked|had (?:a|an) (?:pet|dog|cat|car))\b"),
    # Habits
    (None, rf"i (?:always|usually|often|rarely|regularly|never|typically|normally|only) {_PLAY}\b(?! (?:it|that|this|these|those|them|into|the (?:same|code|file|docs?))\b)"),
    (None, r"i (?:always|usually|normally|typically|generally|never|rarely) (?:get up|wake up|go to (?:bed|sleep|church|mass|the (?:gym|pool|market))|start work|finish work|skip (?:breakfast|lunch|dinner)|have (?:breakfast|lunch|dinner|coffee|tea)|sleep (?:late|in|until|with|on))\b"),
    (None, r"i (?:always|never|only) (?:wear|use|buy|drink|eat|take)\b (?!(?:it|that|this|them|the)\b)"),
    (None, rf"i {ADV}{_DO_REGULARLY}\b{_RUN_OF}\b{_REGULARLY}"),
    (None, rf"(?:{_REGULARLY}|most (?:days|mornings|evenings|weekends|nights|{WEEKDAY}s)|(?:on|at) (?:{WEEKDAY}s?|weekends|the weekend|weekdays|most days)(?: and {WEEKDAY}s)?(?: \w+)?)(?: (?:morning|evening|night|afternoon)s?)?,? {WE} {_DO_REGULARLY}\b"),
    (None, r"i (?:can )?(?:play|teach|coach|volunteer|collect|practi[cs]e|foster|tutor|knit|crochet|meditate|sing|juggle|brew|keep bees|paint|compose|restore|breed|grow my own)(?: (?!(?:it|that|this|these|those|them|the|into|in (?:the|this)|to|by|with|a role|others|together|well|along|fair|safe|nice|hard|better|more|less|around|people|you|my|an? (?:role|part)|around|along|data|information|feedback|evidence|metrics|logs?)\b)[\w'’-]+|[.!]|$)"),
    (None, rf"i {ADV}(?:can )?play (?:the )?(?:piano|guitar|violin|viola|cello|oboe|flute|clarinet|saxophone|trumpet|trombone|horn|drums|bass|harp|organ|accordion|banjo|ukulele|mandolin|bassoon|harmonica|bagpipes)\b"),
    (None, rf"i {ADV}(?:sing|play|dance|act) (?:\w+ ){{0,2}}in (?:an?|the|our|my) (?:[\w-]+ ){{0,2}}(?:choir|band|orchestra|team|club|theatre|theater|quartet|league)\b"),
    (None, rf"i(?:['’]ve| have) {ADV}been (?!(?:thinking|wondering|trying|meaning|told|looking|busy|feeling|seeing|hearing|having|getting|struggling|stuck|debugging|working on|using this|waiting)\b)[^,.;!?]{{0,80}}\b(?:for (?:about |over |almost |nearly |the (?:last|past) )?(?:\d+|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|many|several|a few|some) ?(?:years?|decades?|months?)|since (?:i was|\d{{4}}|childhood|high school|college)|for years|for ages|(?:all|most of) my life)\b"),
    (None, rf"i(?:['’]ve| have) {ADV}been (?:married|sober|into \w+|to {CAPITAL})\b"),
    (None, rf"i(?:['’]ve| have) {ADV}(?:had|known|owned|played|worked|studied|practi[cs]ed|collected|taught) (?!(?:this|that|these|the same|issues?|problems?|trouble)\b)[^,.;!?]{{0,80}}\b(?:for (?:\d+|an?|two|three|four|five|six|ten|many|over|about|almost)|since)\b"),
    # Tools and languages
    (None, rf"i (?:can )?speak (?:\w+ ){{0,2}}{LANGUAGE}\b"),
    (None, rf"my (?:native|first|second|mother) (?:language|tongue) is {CAPITAL}"),
    (None, rf"{IM} {ADV}(?:learning|taking (?:\w+ )?lessons in|practi[cs]ing) (?:to (?:play|speak|drive|swim|cook|knit|sew|sail|fly|code|dance|ski|paint|surf|weave|juggle)|how to (?:play|swim|drive|cook|sail)|the (?:piano|guitar|violin|cello|flute|drums|saxophone|ukulele|harp)|{CAPITAL}|sign language|piano|guitar|violin|chess|pottery|karate|judo|yoga|ballet)"),
    (None, rf"i {ADV}(?:use|run) {CAPITAL}(?!(?:This|That|It|I)\b){VALUE}"),
    (None, rf"{WEVE} {ADV}switched (?:from {CAPITAL}[\w .+#-]{{1,30}} )?to {CAPITAL}"),
    (None, rf"i {ADV}(?:write|code|program|develop|work) (?:\w+ )?(?:in|with) {CAPITAL}(?:[\w.+#-]+)(?=[,.!]| and\b| for\b| on\b|$)"),
    (None, rf"i (?:can )?{ADV}(?:write|code|program|develop) (?:\w+ )?(?:in )?{CODE}(?=[,.!]|$| and\b| for\b| at\b| or\b)"),
    (None, rf"{IM} {ADV}(?:on|using|running) (?-i:(?:\w+ )?Linux|Ubuntu|Debian|Fedora|Windows(?: \d+)?|macOS|Android|NixOS|FreeBSD|an iPhone|a Mac|a PC)(?=[,.!]|$| and\b)"),
    (None, rf"i {ADV}(?:work|code|write|draw|game) on (?:an?|my|two) (?:[\w-]+ ){{0,2}}(?-i:MacBook|Mac|iMac|iPad|ThinkPad|PC|Chromebook|Surface|Linux|Windows|Ubuntu|Fedora)\b"),
    (None, rf"(?:my|our) (?:(?:main|preferred|primary|go-to|default|daily|work|home|text|code|programming|window|current) ){{1,2}}(?:editor|ide|browser|shell|os|operating system|distro|distribution|keyboard|phone|laptop|computer|camera|language|stack|terminal|database|car|bike|machine) is (?:an? )?(?:\w+ )?(?:{CAPITAL}|{CODE})"),
    (None, rf"(?:all )?my (?:[\w-]+ ){{0,2}}(?:notes|files|photos|laptop|computer|phone|desktop|server|machine|editor|car|bike|tv|camera|tablet)(?: computer)? (?:all )?(?:live|lives|runs?|is an?|are in|are on) (?:\w+ )?{CAPITAL}"),
    # Possessions
    (None, rf"{WE} {ADV}have (?!no [^,.!?]* and\b){COUNTED}(?:[\w'’-]+ ){{0,3}}{_OWNED}\b(?! (?:in (?:my|the|this) (?:code|project|game|app|story|novel|data)|objects?|tables?|class(?:es)?|column|field))"),
    (None, rf"{WE} {ADV}have twin (?:boys|girls|sons|daughters|brothers|sisters)\b"),
    (None, rf"{WE}(?:['’]ve| have) got {COUNTED}(?:[\w'’-]+ ){{0,3}}{_OWNED}\b"),
    (None, rf"{WE} {ADV}(?:drive|ride|own) (?:an?|two|three|our|my) (?:[\w.-]+ ){{0,3}}(?:{CAPITAL}|{_THING}\b)"),
    (None, rf"{WE} own (?:an?|two|three|four|several) (?!(?:lot|bit|copy|few)\b)\w+"),
    (None, rf"{WEVE} {ADV}(?:bought|got|got myself|treated myself to|leased|inherited) (?:myself )?(?:an?|our|my|the) (?:[\w.-]+ ){{0,4}}{_THING}\b"),
    (None, rf"{WEVE} no longer (?:have|own) (?:the|my|our|an?|any) (?P<ends>[\w' -]{{3,30}}?)(?=[,.!]|$| since| because)"),
    (None, rf"{WE} (?:don['’]t|do not) (?:have|own) (?:the|my|our|an?|any) (?P<ends>[\w' -]{{3,30}}?) any ?more"),
    (None, rf"{WEVE}(?: just| recently| have| finally)? (?:sold|gave away|given away|got rid of|lost|crashed) (?:the|our|my) (?P<ends>(?!(?:way|mind|job|temper|train|patience|focus|code|keys|voice|streak)\b)[\w'-]+(?: [\w'-]+)?)\b"),
    # What holds no longer
    ("marital status", rf"(?:i|we|me and \w+|{NAME} and i|my \w+ and i)(?:['’]ve| have)? {ADV}(?P<value>broke|broken|split) up(?: with (?:my )?(?P<ends>[\w'-]+))?"),
    (None, r"i (?:no longer|don['’]?t|do not|stopped|quit|have stopped|gave up|['’]ve stopped|have given up|['’]ve given up) (?P<ends>(?!(?:think|know|want|need|believe|understand|see|care|remember|get|have)\b)[a-z]+(?: [\w'-]+){0,3}?)(?: any ?more)(?=[,.!]|$| because| since)"),
    (None, r"i (?:no longer|have stopped|['’]ve stopped|stopped|gave up|['’]ve given up) (?P<ends>(?:speak|play|us|smok|drink|eat|run|sing|work|driv|teach|cycl|swim|liv|wear|lik|go|studi|study|learn|train)\w*(?: [\w'-]+){0,5}?)(?=[,.!]|$| because| since)"),
)  # fmt: skip
# Plans and what happened: these may name a day that is soon over.
EVENTS: tuple[Row, ...] = (
    ("plan for {what}", rf"(?:correction[,:] |no, |actually,? |sorry,? )?(?:my|our) (?P<what>(?:[\w'’-]+ ){{0,2}}{_EVENT})(?: (?:to|with|at|for) [\w'’-]+)? {_TO_BE} (?:now )?(?=[^,.;!?]{{0,25}}{TIME}){VALUE}"),
    (None, rf"the (?P<what>(?:[\w'’-]+ ){{0,2}}{_EVENT}) (?:is|has been moved to|has moved to|was moved to) (?:now )?on (?=\d|{MONTH})"),
    (None, rf"(?:i|we)(?:['’]ve| have)?(?: got)? (?:have |got )?(?:an?|my|our|the) (?:[\w'’-]+ ){{0,2}}{_EVENT}\b(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WERE} {ADV}(?:flying|travell?ing|moving|heading|relocating|emigrating|sailing) (?:back )?to {CAPITAL}{NO_TOOL}"),
    (None, rf"{WERE} {ADV}(?:going|driving|off) (?:back )?to {CAPITAL}{NO_TOOL}(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WERE} {ADV}(?:getting married|having a (?:baby|party)|starting (?:a|my) new (?:job|school|course|position)|taking (?:my|a) (?:[\w-]+ ){{0,2}}(?:exam|test|sabbatical|holiday|course)|having (?:[\w-]+ ){{0,2}}(?:surgery|an operation)|running (?:a|the|my) (?:[\w-]+ ){{0,2}}(?:marathon|race|10k)|moving (?:house|in with|into|out)|expecting (?:a baby|twins|our|my)|getting (?:a|an) (?:[\w-]+ ){{0,2}}(?:dog|cat|puppy|kitten|divorce|new hip|new knee)|visiting (?:my|our|{CAPITAL}))"),
    (None, rf"{WERE} {ADV}(?:leaving|meeting|seeing|visiting|starting|hosting|having (?!(?:trouble|problems|issues|difficult|a hard)\b)|going|flying|taking|attending|presenting|playing|performing|running|hiking|camping|celebrating)(?! (?:it|this|that)\b)(?=[^.;!?]{{0,60}}{TIME})(?! to (?:use|try|be|do|add|make|write|need|start|have|implement)\b)"),
    (None, rf"{WE}(?:['’]ll| will| am going to| are going to|['’]m going to|['’]re going to) (?:start|visit|move|fly|travel|marry|run|go|attend|graduate|retire|meet|take|see|be in|be away|have|host|turn \d\d|be \d\d)\b(?=[^.;!?]{{0,60}}{TIME})(?! (?:it|this|that|a look|care)\b)"),
    (None, rf"i(?:['’]ll| will)? (?:turn|start|graduate|retire|fly|leave) (?!(?:it|this|that|the (?:server|app|code|process|script))\b)(?=[^.;!?]{{0,50}}{TIME})"),
    (None, rf"{WEVE} {ADV}(?:booked|reserved|rented) (?:an?|our|my|the|two|flights?|tickets?)\b(?! (?:it|time slot))"),
    (None, r"(?:i|we)(?:['’]d| would) (?:like|love) to (?:marry|get married|move|retire|have (?:a|another) (?:child|baby|dog|cat))\b"),
    (None, rf"{WE} (?:want|hope|plan|intend|aim|am planning|are planning) to (?:run|swim|finish|climb|walk|cycle|ride|hike|sail) (?:the|a|my) (?:[\w'-]+ ){{0,3}}(?:marathon|triathlon|race|camino|way|channel|alps|trail|10k|ironman|ultra)\b"),
    (None, rf"{WERE} {ADV}(?:saving (?:up )?for (?:an?|my|our) (?!(?:bit|while|few)\b)|training for (?:an?|my|the)|planning (?:a|my|our) (?:[\w-]+ ){{0,2}}(?:trip|wedding|vacation|move|holiday|road trip|honeymoon|party|retirement)|planning (?:on|to) {_LIFE}|writing (?:a|my) (?:[\w-]+ ){{0,2}}(?:novel|memoir|book|thesis|dissertation|phd|screenplay)\b|(?:opening|launching|starting|setting up) (?:an?|my|our)(?: own)? (?:[\w-]+ ){{0,2}}{_VENTURE}\b)"),
    (None, rf"i (?:plan (?:on|to)|intend to|aspire to|hope to|want to) {_LIFE}"),
    (None, r"(?:my|our) (?:[\w'’-]+ ){0,2}(?:plan|resolution|goal for [\w ]{3,20}) is\b (?!(?:that|this|not|so|due|too|still|good|bad|below)\b)(?=(?:a|an|to (?:run|learn|read|visit|stop|eat|move|swim|save|stay|lose|quit))\b)"),
    (None, rf"{WE} found (?:the|our|a) (?:wedding )?(?:venue|house|flat|apartment|school|nanny)\b"),
    (None, rf"{WEVE} {ADV}(?:finished|completed|ran|run|won) (?:the|my|a|an) (?:[\w'-]+ ){{0,3}}(?:marathon|race|triathlon|thesis|dissertation|degree|ph\.?d|10k|tournament|competition|championship|award|prize|scholarship|novel)\b"),
    (None, rf"{WEVE} {ADV}(?:passed|failed|defended) (?:the|my) (?:[\w'-]+ ){{0,3}}(?:exams?|driving test|driving exam|thesis|bar|finals|test for my)\b"),
    (None, rf"(?:i|{IVE}) {ADV}(?:graduated (?:from|in|with|last|this)|retired|got (?:promoted|hired|accepted (?:to|at|into|by)|my (?:degree|driving licen[cs]e|citizenship|visa))|quit (?:my|smoking|drinking)|lost my (?:mom|mum|mother|dad|father|wife|husband|dog|cat|brother|sister)|opened (?:a|my) (?:own )?(?:[\w-]+ )?{_VENTURE}|launched (?:a|my) (?:own )?(?:[\w-]+ )?{_VENTURE}|founded|started (?:my own|a new (?:job|business|hobby)|a business|learning|playing (?:the )?[a-z]+|volunteering|collecting|a (?:blog|band|podcast|company|book club))|joined (?:an?|the|my) (?:[\w'’-]+ ){{0,3}}(?:choir|band|club|team|gym|orchestra|group|class|league|church|brigade|army|navy|union|party|gang)|signed up for (?!(?:the free|a free trial|an account)\b)(?:a|an|the|my)|took up [a-z]+|picked up (?:painting|playing|the (?:guitar|piano|violin)))\b{_NOT_ELSEWHERE}"),
    (None, r"(?:please )?(?:remember|don['’]t forget|keep in mind|bear in mind|note)(?: that)? (?:my|i|we|our|i['’]m|i['’]ve) (?=\w+ \w+)"),
    (None, r"i earn (?:about |around |over )?(?:\$|€|£)?\d"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:{IM}|my name['’]s|this is) {NO_PEOPLE}(?P<value>{NAME})(?=[,.!]|$| and\b| from\b| here\b)"),
    ("name", rf"(?P<value>{ONE_NAME}) here\b(?=[,.!]|$)"),
)  # fmt: skip
ASSISTANT: tuple[Row, ...] = (
    ("name", rf"my name(?:['’]s| is) (?P<value>{NAME})"),
    ("name", rf"{IM} called (?P<value>{NAME})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME}), (?:your|an?) "),
    ("persona", rf"{IM} your (?:new |own |personal |strict |friendly )*(?P<value>(?:[\w-]+ ){{0,2}}(?:coach|assistant|tutor|guide|companion|trainer|secretary|butler|mentor|teacher|librarian|chef|helper|sous-chef|editor))\b"),
    (None, rf"{IM} (?:only |just )?an? (?:[\w-]+ ){{0,3}}(?:ai|language model|assistant|chatbot|bot)\b"),
    (None, r"i was (?:made|created|built|trained|developed) by \w+"),
    (None, r"i (?:recommended|suggested|advised|proposed|promised) (?!(?:it|that|this|these|those|them|earlier|above)\b)\w+"),
    (None, r"(?:i['’]ll|i will|i promise to|i promise i['’]ll) (?:always |never |also |definitely |gladly |make sure to )?(?:remind you (?!(?:of this|of that)\W)|remember (?:that you|your|you['’]re|to)|ask you (?:again |about |on |in |every |next |whether )|check (?:in|back)(?: with you)? (?:on|in|next|tomorrow|every|again|about)|keep (?:your|you company)|call you (?=(?-i:[A-Z]))|wake you|stop using|avoid using|answer in|reply in|follow up (?:on|with|next|in))\b(?! (?:updated|posted)? ?(?:on|if|how|what|which|when)\b)"),
    (None, r"i(?:['’]ll| will| promise to) (?:always|never) (?!(?:be|forget|remember|love|cherish|treasure|get|understand|have|think|see|know)\b)[a-z]+ (?!(?:it|that|this)\b)\w+"),
)  # fmt: skip
