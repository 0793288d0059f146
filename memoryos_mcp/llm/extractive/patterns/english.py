"""What durable statements begin with in English."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import (
    ADV,
    ANIMAL,
    CAPITAL,
    CODE,
    COUNTED,
    DIET,
    IM,
    IVE,
    KIN,
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
    r"|caf[eé]|bakery|farm|pub|bar|hotel|kiosk|market stall|stall|etsy shop|workshop|barber ?shop|deli|butchery|kennel|stable|consultancy|law firm|firm|magazine|newsletter|record label|b&b|bed and breakfast|start-?up|practice|brewery|gallery|clinic|agency|bookshop|bookstore|garage|salon|vineyard"
    r"|guest ?house|hostel|dance school|food truck|nursery|yoga studio)"
)
_THING = (
    r"(?:bikes?|bicycles?|cars?|motorbikes?|motorcycles?|scooters?|boats?|vans?|campers?|pianos?|guitars?|violins?|cellos?"
    r"|drum kit|laptop|macbook|ipad|iphone|telescope|camera|house|flat|apartment|cottage|cabin|allotment|greenhouse|farm"
    r"|caravan|kayak|canoe|e-bike|3d printer|sewing machine|espresso machine|synthesizer|tent|truck|garden|record player"
    r"|bathrooms?|bedrooms?|spare room|guest room|parking space|cellar|attic|basement|conservatory|thermomix|sourdough starter|sailboat|sailing boat|rowing boat|jet ski|snowboard|skis|surfboard|skateboard|treadmill|rowing machine|exercise bike|drone|projector|tablet|kindle|e-reader"
    r"|smartwatch|apple watch|(?:new |old |work |second )?phone|smartphone|desktop|computer|gaming pc|pc|mac|monitor|printer|ps[45]|playstation|xbox|nintendo switch"
    r"|steam deck|oven|slow cooker|pressure cooker|instant pot|air fryer|rice cooker|bread maker|microwave|hob|wok|blender|food processor|stand mixer|coffee machine"
    r"|espresso maker|freezer|fridge|dishwasher|washing machine|dryer|fireplace|wood stove|wood burner|bathtub|balcony|terrace|roof terrace|patio|yard|backyard|garage|shed|pond|pool|hot tub|sauna|hammock"
    r"|(?:\w+-)?bedroom (?:flat|apartment|house)|studio(?: flat| apartment)?|semi|bungalow|townhouse|condo|loft|houseboat|motorhome|campervan|trailer|pickup|suv|convertible|hybrid|electric car|ev|tesla|vespa|moped"
    r"|desk|sofa|armchair|bookcase|lenses|tripod|binoculars|microscope|ukulele|keyboard|synth|bass|harp|trumpet|saxophone|flute|clarinet|harmonica|accordion|loom|pottery wheel|kiln|easel|lathe|table saw|workshop|veg(?:etable)? patch|orchard|beehives?|solar panels|heat pump|driving licen[cs]e|licen[cs]e|pilot['’]s licen[cs]e"
    r"|collection of [\w ]+|tattoos?|swimming pool|second home|holiday home|bank|account)"
)
_ILLNESS = (
    r"(?:allerg(?:y|ies)|diabetes|asthma|adhd|add|autism|arthritis|migraines?|insomnia|celiac disease|coeliac disease"
    r"|celiac|coeliac|depression|anxiety|epilepsy|eczema|psoriasis|endometriosis|pcos|ibs|crohn['’]s(?: disease)?|ms"
    r"|multiple sclerosis|tinnitus|hay fever|(?:low|high) blood pressure|high cholesterol|hypertension|hypothyroidism"
    r"|a heart condition|heart condition|pacemaker|scoliosis|sciatica|sleep apn(?:o?e)a|ocd|ptsd|bipolar disorder|dyslexia"
    r"|fibromyalgia|gout|lupus|an?(?:a)emia|intolerance|(?:bad|weak|injured|dodgy) (?:back|knees?|shoulder|hip|ankle|wrist)"
    r"|slipped disc|herniated disc|food allergies|fear of \w+|phobia|reflux|glaucoma|alzheimer['’]s(?: disease)?|dementia|parkinson['’]s(?: disease)?|down['’]s? syndrome|cerebral palsy|a stutter|stammer|rosacea|acne"
    r"|vertigo|chronic (?:pain|fatigue(?: syndrome)?|illness)|long covid|raynaud['’]s|tourette['’]s?|osteoporosis|kidney (?:disease|stones)|thyroid (?:problems?|disease)|hashimoto['’]s"
    r"|heart disease|arrhythmia|stroke|haemophilia|hemophilia|cystic fibrosis|carpal tunnel(?: syndrome)?|tennis elbow|plantar fasciitis|flat feet|a slipped disc|bad eyesight|cataracts|astigmatism"
    r"|hearing loss|motion sickness|gastritis|ulcers?|ulcerative colitis|diverticulitis|gallstones|sleepwalking|narcolepsy|restless legs|nut allergy|egg allergy|peanut allergy|allergy to \w+|learning disabilit(?:y|ies)"
    r"|hidradenitis|lactose intolerance|gluten intolerance|sensitive skin|dry skin|(?:bad|weak|injured|dodgy|sore|torn|broken) (?:meniscus|acl|rotator cuff)|hearing aid|prosthetic \w+|cancer)"
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
    r"|celiac|diabetic|dyslexic|colou?r[- ]?blind|red-green blind|deaf|blind in|left-handed|bilingual|trilingual|asthmatic|haemophiliac|disabled|hard of hearing|visually impaired|partially sighted|wheelchair[- ]bound|in a wheelchair|neurodivergent|on the (?:autism )?spectrum|short of sight|perimenopausal|menopausal|postpartum|breastfeeding|immunocompromised|bipolar|teetotal|teetotaller|an?(?:a)emic"
    r"|low on iron|pregnant|expecting (?:a|my|our|twins)|retired|self-employed|transgender|gay|lesbian|bisexual|queer"
    r"|non-?binary|autistic|introverted|extroverted|short-sighted|near-?sighted|far-?sighted|epileptic|hypertensive"
    r"|not good with|good with my hands|passionate about|interested in (?!(?:a|the|an|how|learning|knowing|your|this|\w+ing (?:ways|how|more|the|a|my)|improving|understanding|using|implementing|exploring)\b)|really into|into|obsessed with"
    r"|afraid of|scared of|terrified of|fluent in|keen on|fond of|(?:addicted|sensitive) to|sober|halal|kosher"
    r"|claustrophobic|afraid to fly|adopted|(?:gluten|dairy|lactose|sugar|nut|alcohol|meat|smoke|tobacco)[- ]free|(?:crazy|mad|nuts|serious) about|hooked on|partial to|big on|musical|religious|more of an? \w+ person|an atheist|trained in|certified in|qualified as|new to (?=(?-i:[A-Z])))"
)
_NATIONAL = (
    r"(?-i:[A-Z][a-z]{2,12}(?:ican|ish|ese|ian|ean|alian)|French|Dutch|Greek|German|Swiss|Thai|Arab|Czech|Iraqi|Pakistani"
    r"|Israeli|Welsh|Catholic|Muslim|Jewish|Buddhist|Hindu|Christian|Sikh|Korean|Mexican|Cuban|Filipino)"
)
_WORK_FACT = rf"(?:[\w/&-]+ ){{0,3}}{ROLE}"

USER: tuple[Row, ...] = (
    # Who: name, age, birthday, origin
    ("name", rf"my (?:full |first |real |given |last |middle |nick)?name(?:['’]s| is) (?!(?:not|on|in|too|spelt|spelled|misspel\w+|often|hard|pronounced|a|an|the|also|derived)\b){VALUE}"),
    ("name", rf"(?:it['’]?s|this is) (?P<value>{NAME}) (?:here|again|speaking)\b"),
    ("name", rf"(?=[\w-]+(?: [\w-]+){{0,2}} (?:here|speaking)\b)(?!(?:\w*(?:ican|ish|ese|ian|ist)|French|Dutch|Greek|German|Swiss|Thai|Student|User|Parent|Teacher|Long|Same|Nothing|Newbie|Noob|Beginner|Everything|Nobody|Someone|Something|Guest|Dad|Mom|Mum|Almost|Rain|First)\b)(?!{ROLE}\b)(?P<value>{NAME}) (?:here|speaking)(?=[,!:])"),
    ("name", rf"this is {NO_PEOPLE}(?P<value>{NAME})(?=, (?:we|i)\b)"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?=,? (?:by the way|btw|but (?:everyone|people|friends|you can) )|, (?:nice|pleased|good|great|happy|lovely|short for) )"),
    ("name", rf"the name['’]s (?P<value>{NAME})(?=[,.!]|$)"),
    ("name", r"(?:you can |everyone |people |friends |my friends |they )(?:usually |just |all )?calls? me (?P<value>(?!(?:a|an|the|back|crazy|out|if|when|at|on|in|to|and|weird|lazy|mad)\b)[a-z]{2,12})(?=[,.!]|$)"),
    ("name", rf"(?:i['’]?m called|i am called|i go by|(?:you can |(?:everyone|everybody|people|they|(?:my )?(?:friends|family|colleagues|mates|kids|students)) (?:just |all |usually |mostly )?)calls? me) (?P<value>{NAME})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?=, (?:an?|the|your|from|\d\d)\b| and {IM} )"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>(?-i:[A-Z][a-z]+ [A-Z][a-z]+))(?=[,.!]|$)"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?= from {CAPITAL})"),
    ("name", rf"{IM} {NO_PEOPLE}(?P<value>{NAME})(?=,? (?:and )?(?:i (?:work|live|am|have|study|teach|run|own|need|want|would|like|love)|i['’]?(?:m|d|ve)|my|we)\b)"),
    ("age", rf"{IM} (?P<value>[1-9]\d)(?= years?[ -]old| ?(?:yo|y/o|yrs?)\b|[,.!]| (?:and|but|now|so|already|with|living|from|going|next|in|at) ?\b(?! (?:minutes?|hours?|percent|km|miles))| \(|$)"),
    ("age", rf"{IM} {ADV}(?:an? )?(?P<value>[1-9]\d) ?[fm]\b"),
    ("age", rf"{IM} (?P<value>(?:turning|almost|nearly|about to turn|going on|over|just over|only|just) [1-9]\d)(?= years? old|[,.!]| (?:and|but|now|so|in|next|this|soon)\b|$)"),
    ("age", r"as an? (?P<value>[1-9]\d)[ -]?(?:years?[ -]?old|yo)\b"),
    ("age", r"(?:my age is|at the age of|at age|at) (?P<value>[1-9]\d)(?=,? i(?:['’]m| am| still| can| have)\b|[.!,]? ?$)"),
    ("age", rf"{IM} an? (?P<value>[1-9]\d)[ -]?(?:years?[ -]?old|yo)\b"),
    ("age", rf"{IM} (?P<value>(?:(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?)(?= years? old\b|[.!]|$| and\b)"),
    ("age", rf"(?:i|{IVE}) {ADV}turned (?P<value>[1-9]\d)\b"),
    ("age", rf"{IM} {ADV}(?P<value>in my (?:early |mid[ -]?|late )?(?:teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|[2-9]0s))\b"),
    ("birthday", rf"my birthday(?:['’]s| is) (?=[^,.;!?]*(?:\d|{MONTH})){VALUE}"),
    ("birthday", rf"i was born (?:on|in) (?=\d|['’]\d|{MONTH}|the (?:\d|late|early|\w+ties)){VALUE}"),
    ("from", rf"i was born (?:and (?:raised|bred) )?in (?!(?:the|a|an)\b){VALUE}"),
    ("from", rf"{IM} (?:originally )?from (?:the )?(?=(?-i:[A-Z]))(?!(?:Monday|Tuesday|January|Marketing|Sales|HR|IT)\b){VALUE}"),
    (None, r"(?:i come from|i['’]m from|i grew up in) (?:an? (?:[\w-]+ ){1,3}(?:family|town|village|city|country|island|farm)|the (?:north|south|east|west|countryside|coast)\b)"),
    ("from", rf"i (?:originally )?come from (?:the )?{CAPITAL}{VALUE}"),
    (None, r"i (?:grew up|was (?:born and )?raised|was brought up) (?!(?:thinking|believing|watching)\b)\w+"),
    ("nationality", rf"{IM} {ADV}(?:half |an? )?(?P<value>{_NATIONAL}(?: citizen)?)(?=[,.!]| and\b| but\b| by\b| living\b|$)"),
    # Where
    ("lives", rf"{WE} {ADV}(?:live|reside) (?:\w+ )?in (?:central |downtown |north |south |east |west |northern |southern |eastern |western |rural )?{NO_TOOL}(?!(?:a|an|the|this|that|my|fear)\b){VALUE}"),
    ("lives", rf"{WE} {ADV}live (?:just |right )?(?P<value>outside (?:of )?{CAPITAL}[^,.;:!?]+)"),
    ("lives", rf"{WERE} {ADV}(?:living|based|located|settled|residing|staying|stationed) (?:here |down |up |over |out |alone )?in (?:the )?{NO_TOOL}(?!(?:a|an|the|this|that|my)\b){VALUE}"),
    ("lives", rf"{WEVE} {ADV}(?:moved|relocated|emigrated|immigrated|moved house) (?:back |over |here |up |down |out )?(?:home )?(?:from (?-i:[A-Z])[\w ]{{1,30}} )?to {CAPITAL}{NO_TOOL}{VALUE}"),
    ("lives", rf"{WEVE} {ADV}(?:been living|lived) in {CAPITAL}(?P<value>[^,.;:!?]+?) (?:since|for (?!a while))\b"),
    (None, rf"{WE} {ADV}live (?:in (?:a|an|the)|at|on|with|near|by|alone|together|next)\b"),
    (None, rf"{IM} {ADV}(?:living|staying) (?:with my|alone|on my own|at (?:home|my)|on a)\b"),
    (None, rf"{IM} (?:here )?in (?:the )?(?-i:UK|USA?|Netherlands|Philippines|Germany|Austria|Switzerland|France|Spain|Italy|Portugal|Ireland|Scotland|Wales|England|Belgium|Sweden|Norway|Denmark|Finland|Poland|Canada|Australia|New Zealand|India|Japan|Brazil|Mexico|Kenya|Nigeria|Ghana|South Africa)(?=[,.!]|$| so\b| and\b| where\b)"),
    (None, r"(?:my|our) (?:home ?town|city|country|address|time ?zone|pronouns|phone number|e-?mail(?: address)?|height|weight|blood type|mobile number|star sign|ring size|shoe size|iq|salary|commute) (?:is|are) (?!(?:a|an|the|not|so|too|very|wrong|invalid|it|this|that|undefined|null|empty|in the)\b)[\w+]"),
    (None, rf"{IM} (?:in|on) (?:the )?(?-i:UTC|GMT|CET|CEST|EST|EDT|PST|PDT|CST|MST|IST|JST|BST|AEST|Eastern|Pacific|Central|Mountain)\b"),
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
    ("work", rf"as an? (?P<value>(?:[\w-]+ ){{0,2}}{ROLE}),? (?:i (?:work|spend|have|often|see|deal|know|earn|travel|get|teach)|i['’]m|i am|my)\b"),
    ("work", rf"{IM} {ADV}(?:training|studying|learning|qualified|apprenticing|an apprentice) (?:to be|to become|as) (?:an? )?{VALUE}"),
    ("work", rf"{IM} {ADV}an? (?P<value>(?:[\w-]+ ){{0,2}}\w{{2,12}}(?:maker|smith|wright|keeper|fitter|layer|monger|worker|operator|officer|manager|assistant|inspector|planner|clerk|agent|handler|dealer|owner|technician|specialist|engineer|apprentice|trainee|student|intern))\b(?! (?:of (?:my|this|that)|mindset)\b)"),
    ("work", rf"{IM} {ADV}in (?P<value>(?:(?:my|the) (?:first|second|third|fourth|final|last|1st|2nd|3rd|4th) (?:year|semester) (?:of|at) [^,.;!?]+|(?:HR|IT|marketing|sales|finance|banking|insurance|real estate|construction|hospitality|healthcare|education|logistics|advertising|publishing|journalism|law|consulting|retail|academia|procurement|customer service|film|the (?:army|navy|military|air force|police)|(?:IT|tech|customer) support|medical school|law school|grad school|high school|year \d+|\d+th grade)))(?=[,.!]|$| and\b| so\b| but\b| at\b| for\b)"),
    ("employer", rf"{IM} {ADV}at (?=(?-i:[A-Z]))(?P<value>[\w&. -]{{2,40}}?)(?=, (?:doing|working|leading|as|in|on) | as (?:an?|the) | (?:doing|leading) )"),
    ("employer", rf"(?:i|{IVE}) {ADV}(?:started(?: working| a new job| work)?|been working|got (?:hired|a job|an internship)|joined|landed a job|work(?:ed)?) (?:at|for|with|by) {CAPITAL}{NO_TOOL}(?P<value>[^,.;:!?]+?)(?=[,.!]|$| (?:last|this|in|on|as|for|since|and|two|\w+ (?:weeks|months|years) ago))"),
    (None, rf"{IM} {ADV}(?:working|employed|interning|volunteering|temping|freelancing) (?:part[- ]time |full[- ]time |nights |remotely )?(?:at|for|in|as) {NO_TOOL}(?!(?:it|this|that|the (?:same|background|code)|my (?:code|project))\b)\w+"),
    (None, r"(?:my|our) (?:company|firm|shop|team|start-?up|employer|department|lab|office|business|school) (?:makes|sells|builds|does|has(?! (?:been|just|to|gone|become))|employs|works|uses|offers|runs|designs|is an?|is (?:in|based))\b (?!(?:not|no|to|it|this|that|trouble|problems|issues)\b)\w+"),
    (None, rf"i {ADV}do (?!(?:it|this|that|not|the|my|what|you|these|something|everything)\b)[\w -]{{3,30}}? (?:for|at) (?:an?|the|small|local|big) (?:[\w-]+ ){{0,2}}(?:firm|company|business|businesses|shops?|hospital|school|bank|charity|agency|startup|start-up|university|clinic|hotel|factory|clients)\b"),
    (None, rf"i {ADV}(?:clean|drive|deliver|cook|teach|tutor|wait tables|bartend|sell|code|write|paint|babysit)(?: [\w-]+){{0,3}} (?:at night|at weekends|on (?:the )?weekends|part[- ]time|on the side|full[- ]time|during the (?:day|week))\b"),
    (None, rf"(?:my (?:family|parents)|we) (?:run|own|have) (?:an?|the) (?:[\w-]+ ){{0,2}}{_VENTURE}\b"),
    (None, r"i (?:split|divide) my time between \w+"),
    (None, rf"{IM} {ADV}an? (?:[\w-]+ )?(?:expat|immigrant|refugee|foreigner|exchange student|resident|local|native|citizen|digital nomad)(?: living)? (?:in|of|from) {CAPITAL}"),
    (None, rf"{IM} {ADV}living (?:in (?:an?|my|the)|at|near|on|alone|by)\b"),
    (None, rf"{WEVE} {ADV}(?:switched|changed) (?:careers?|jobs?|schools?|majors?|fields?)\b"),
    (None, rf"i {ADV}(?:do|work|have) (?:shift work|shifts|nights|odd hours|part[- ]time|a desk job|an office job|two jobs|a nine-to-five|a 9-to-5)\b"),
    (None, rf"i {ADV}(?:sell|fix|repair|design|translate|tune|deliver|groom|train|import|export|review|proofread|tutor|coach|teach|raise|breed|grow|farm|brew|bake|make|build) (?!(?:it|that|this|these|those|them|up|out|sure|sense|the|an?|my|your|our|me|some|any|more|in|to|into|on|getting|use|for|fun|money|mistakes|progress|decisions|friends|time|models?|apps?|code|software|everything|something|things|all)\b)[\w-]+(?:(?: and| or)? [\w-]+)?(?=,|\.|!|$| mostly| part[- ]time| as a hobby| on the side| for)"),
    (None, rf"greetings from {CAPITAL}"),
    (None, rf"{WERE} (?:here )?in (?=(?-i:[A-Z])){NO_TOOL}(?P<value>{NAME})(?=,? so\b|, (?-i:[A-Z]))"),
    (None, rf"we['’]?(?: a)?re an? (?:[\w-]+ ){{0,3}}(?:{CODE} )?(?:startup|start-up|company|nonprofit|non-profit|charity|team of|family of|agency|shop|studio|couple|band|household)\b"),
    (None, rf"{WE} {ADV}(?:lead|manage|supervise|head(?: up)?|run|coordinate|direct|oversee|chair) (?:an?|the|our|my|two|three) (?:[\w'’-]+ ){{0,3}}(?:teams?|department|group|staff|lab|laboratory|school|office|shop|store|clinic|practice|ward|kitchen|unit|division|charity|farm|hotel|club|b&b|studio|business|company|choir|orchestra|crew|branch|nursery|bakery|caf[eé]|pub|bar|restaurant)\b(?! (?:meeting|build)\b)"),
    (None, rf"i {ADV}(?:freelance|moonlight|lecture|bartend|wait tables|tend bar|consult|drive (?:an? )?(?:taxi|cab|bus|truck|lorry|tram|train|ambulance|uber|tractor|forklift)|(?:sell|repair|fix|build|restore|make|design|translate|write|deliver|clean|install|breed|grow|raise|keep) (?!(?:it|that|this|these|those|them|up|out|sure|sense|the|an?|my|your|me|some|any|more|in|to|into|on|getting|track|going|trying|use|for)\b)[\w-]+(?: and [\w-]+)?(?: for (?:a living|work|(?-i:[A-Z])\w+|an? \w+)| at (?:an?|the) \w+)|teach (?:at|in) (?:an?|the) \w+)\b"),
    (None, rf"i {ADV}(?:do|take on|have|work|take|pull) (?:the )?(?:night|early|late|day|weekend|rotating|split|twelve-hour|12-hour) shifts?\b"),
    (None, rf"my (?:boss|manager|employer|company|team|school|university|office|landlord|firm) is (?:called |based in |in |at )?{CAPITAL}"),
    ("work", rf"i {ADV}(?:do )?(?P<value>(?!(?:do )?(?:what|this|that|it|nothing)\b)[^,.;!?]{{3,50}}) for a living\b"),
    ("work", rf"my (?:current )?(?:job(?: title)?|profession|occupation|role|position) is (?!(?:to|so|very|not|really|too|boring|stressful|hard|in)\b){OF_SOMETHING}{VALUE}"),
    ("work", rf"{IM} {ADV}(?P<value>retired|unemployed|self-employed|out of work|between jobs|on (?:maternity|paternity|parental) leave)\b"),
    ("work", rf"(?:i|{IVE}) {ADV}(?P<value>retired|(?:was|been|got|am being|am) (?:just |recently )?(?:made redundant|let go|furloughed)|lost my job|got laid off|was laid off|been laid off|got fired|was fired|quit my job|(?:left|quit) my job)\b"),
    ("employer", rf"i {ADV}work (?:at|for) (?!(?:a|an|the|this|that|my|me|it|him|her|free|fun|myself|hours|now|home|night|\d+)\b){VALUE}"),
    (None, rf"i {ADV}work (?:(?:at|for|in) (?!(?:it|this|that|the same|my (?:code|project))\b)|from home|with (?:kids|children|people|animals)|full[- ]time|part[- ]time|nights|remotely|night shifts|on {WEEKDAY}s)"),
    (None, r"my (?:hobby|hobbies|dream|life goal|long-term goal|passion|passions|nationality|native language|mother tongue|hometown|home town|major|religion|blood type|favou?rites?|new year['’]s resolution|shoe size|size|zodiac sign|star sign|height) (?:is|are) " + OF_SOMETHING),
    ("studies", rf"{IM} {ADV}(?:studying|majoring in|doing (?:a|my) (?:degree|master['’]?s|ph\.?d|bachelor['’]?s)(?: in)?) (?!(?:this|that|the|for|it|how|hard|a|to|more)\b){VALUE}"),
    ("studies", rf"{IM} {ADV}(?:doing|on|finishing|writing up|halfway through|starting|taking) (?:an?|my|the) (?P<value>(?:part-time |online |second )?(?:apprenticeship|internship|(?:ph\.?d|mba|master['’]?s|masters|bachelor['’]?s|degree|a-levels|gcses|bootcamp|residency|traineeship|diploma)(?: degree)?)(?: (?:in|at|as|on|with) [^,.;!?]+)?)"),
    ("studies", rf"i {ADV}study (?!(?:this|that|the|for|it|how|hard|a|to|more|best|at night|every|in the)\b){VALUE}"),
    (None, rf"i {ADV}(?:studied|graduated|majored) (?:\w+ ){{0,3}}(?:in|at|from) {CAPITAL}"),
    (None, rf"{WE} (?:run|own|have|manage|founded|co-?founded|co-?own|started) (?:an?|my(?: own)?|our(?: own)?) (?:[\w-]+ ){{0,2}}{_VENTURE}\b"),
    # Family, friends
    ("family:{who}", rf"(?:my|our) {RELATION_WORDS}{ONLY_ONE},? (?!(?:is|and)\b)(?P<value>{ONE_NAME})\b(?!['’]s)"),
    ("family:{who}", rf"(?:my|our) {RELATION_WORDS}{ONLY_ONE}(?:['’]s (?:first )?name is| is (?:called|named)|['’]s (?:called|named)) (?P<value>{ONE_NAME})"),
    ("family:{who}:{value}", rf"(?:my|our) {RELATION_WORDS}{ONE_OF_SEVERAL},? (?P<value>{ONE_NAME})\b(?!['’]s)"),
    ("family:{who}:{value}", rf"(?:my|our) {RELATION_WORDS}{ONE_OF_SEVERAL}(?:['’]s (?:first )?name is| is (?:called|named)|['’]s (?:called|named)) (?P<value>{ONE_NAME})"),
    ("family:{who}:{value}", rf"{WE}(?:['’]?ve| have)?(?: got)? (?:have |had )?(?:an?|one) {RELATION_WORDS}{ONE_OF_SEVERAL},? (?:called |named |whose name is )?(?P<value>{ONE_NAME})\b"),
    ("family:{who}", rf"(?P<value>{ONE_NAME}) is my {RELATION_WORDS}{ONLY_ONE}\b"),
    ("family:{who}:{value}", rf"(?P<value>{ONE_NAME}) is my {RELATION_WORDS}{ONE_OF_SEVERAL}\b"),
    ("marital status", rf"{IM} {ADV}(?P<value>single|married|divorced|engaged|widowed|separated)(?: to {ONE_NAME})?\b(?! to (?:this|that|the|an?|my|our|it|your|its)\b)(?! (?:with|in|by|from|out) (?:the|this|that|a)\b)(?! (?:with(?! (?:\w+ ){{1,2}}(?:kids?|children|daughters?|sons?|boys|girls)\b)|parent|mom|mum|dad|mother|father|point)\b)"),
    ("marital status", rf"{WERE} {ADV}getting (?P<value>divorced|separated)\b"),
    (None, rf"{IM} {ADV}(?:going through|in the middle of) an? (?:divorce|break-?up|separation)\b"),
    (None, r"my (?:partner|boyfriend|girlfriend|husband|wife|fianc[eé]e?|ex) (?:broke up with|left|dumped|divorced|cheated on|proposed to) me\b"),
    ("marital status", rf"(?:{WEVE}|my (?:partner|boyfriend|girlfriend|husband|wife) and i) {ADV}(?:got|are getting|been|are) (?P<value>married|divorced|engaged|separated)\b(?! to (?:the|this))"),
    (None, rf"(?:(?:my|our) {RELATION_WORDS})(?:(?:kids?|children|sons|daughters|brothers|sisters|twins|siblings|parents|cats|dogs|hens|chickens)) are (?:called|named) {CAPITAL}"),
    (None, rf"(?!\w+ly,){NAME}, (?:my|our) {RELATION_WORDS}{RELATION}(?=,| who| from)"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} (?:is|are) (?:an? (?:[\w-]+ ){{0,2}}{ROLE}|called|named|from|allergic|vegetarian|vegan|my|\d+|expecting|pregnant|getting (?:married|a new)|diabetic|from|retired|in hospital)\b"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} {ADV}(?:starts? (?:school|kindergarten|nursery|college|university)|started (?:school|kindergarten|nursery|college|university)|(?:is|are) due (?:on|in|next|this)|works?\b(?! (?:fine|well|great|on (?:this|the|it))\b)|wants? to (?:be|become|study|move|learn|go)|taught me|raised me|left me|had (?:an?|twins|another|surgery)|lives? (?:in|with|near|next)|loves?|likes?|hates?|plays?|studies|teaches|died|passed away|got married|goes to|was born|was diagnosed|are called|turns? \d|turned \d|has (?:an?|two|three|four|\d)|have (?:an?|two|three|four|\d)|speaks?|can['’]t eat|proposed|comes? from|moved to|collects?)\b{_NOT_ELSEWHERE}"),
    (None, rf"(?:my|our) {RELATION_WORDS}{RELATION} and i (?:have|are|live|love|met|got|always|often|enjoy|run|go)\b{_NOT_ELSEWHERE}"),
    (None, rf"(?:my|our) {RELATION_WORDS}{KIN}(?:,? [\w-]+)? (?:is|are|was|were) {ADV}(?:not |no longer )?(?:{_CONDITION}|{_NATIONAL}|an? (?:[\w-]+ ){{0,2}}{ROLE}|deaf|blind|ill|disabled|dead|alive|adopted|married|divorced|widowed|single|{DIET}|studying|working|living|learning|teaching|recovering|in (?:hospital|a wheelchair|a care home|year \d+|(?:first|second|third|\d+(?:st|nd|rd|th)) grade|the (?:army|navy)|high school|college|(?-i:[A-Z]))|at (?:university|college|uni|school)\b|[1-9]\d?\b(?! (?:percent|minutes))|from|on (?:maternity|paternity) leave|born)\b{_NOT_ELSEWHERE}"),
    (None, rf"(?:my|our) {RELATION_WORDS}{KIN}(?:,? [\w-]+)? {ADV}(?:has|have|had|['’]s got|suffers? from|lives? with|was diagnosed with|were diagnosed with)(?: got)? (?:{COUNTED})?(?:[\w'’-]+ ){{0,2}}{_ILLNESS}\b"),
    (None, rf"(?:my|our) {RELATION_WORDS}{KIN}(?:,? [\w-]+)? {ADV}(?:(?:does|do|has|have|is)(?:n['’]?t| not)|can(?:['’]?t|not| not)|won['’]?t) {ADV}(?:eat|drink|like|speak|drive|live|work|have|smoke|tolerate|walk|see|hear|swim|sleep|stand|celebrate|cook|read|fly|own|touch|had|eaten) {OF_SOMETHING}?(?!(?:it|that|this|to)\b)\w+"),
    (None, rf"(?:my|our) {RELATION_WORDS}{KIN}(?:,? {ONE_NAME})? {ADV}(?:never|only|always|no longer) (?:eats?|drinks?|speaks?|wears?|drives?|works?|sleeps?|cooks?|smokes?|reads?|buys?|plays?|goes|go) (?!(?:it|that|this)\b)\w+"),
    (None, rf"(?:my|our) {RELATION_WORDS}{KIN}(?:,? [\w-]+)? {ADV}(?:loves|hates|likes|lives|works|plays|studies|teaches|adores?|dislikes?|prefers?|owns?|drives? (?:an?|to)|runs? (?:an?|the|mara)|rides?|paints?|sings?|swims?|cooks?|bakes|wears?|collects?|dances?|practi[sc]es|attends?|goes to|joined|retired|got (?:engaged|divorced|married|promoted|a new|an?)|graduated|bought an?|lost (?:his|her|their) (?:job|husband|wife)|broke (?:his|her|their)|became|moved|turned|visits (?:us|me)|comes to stay|is getting|snores|uses a (?:wheelchair|hearing)|takes (?:insulin|care of|ballet|piano|\w+ lessons)|grew up|served|runs)\b{_NOT_ELSEWHERE}"),
    (None, rf"{IM} {ADV}(?:the|one of) (?:(?:youngest|oldest|eldest|middle|second|third|only|first) (?:of (?:two|three|four|five|six|seven|eight|nine|ten|\d+)|child|one|kid|daughter|son|girl|boy|sister|brother|sibling)|(?:two|three|four|five|six|seven|eight|nine|\d+) (?:siblings|children|kids|brothers|sisters|boys|girls))\b"),
    (None, rf"{IM} {ADV}an? (?:[\w-]+ ){{0,2}}(?:mum|mom|mother|dad|father|parent|grandparent|grandma|grandpa|carer|foster parent|aunt|uncle) (?:of|to) (?:an?|two|three|four|five|six|\d)\b"),
    (None, rf"{WEVE} {ADV}had (?:our|a|my|another) (?:(?:first|second|third|fourth|baby|new|little) ){{0,2}}(?:kid|child|baby|son|daughter|boy|girl)\b"),
    (None, rf"(?:our|my) (?:first|second|third|fourth|new|newborn) (?:kid|child|baby|son|daughter)\b(?:,? (?:little )?{ONE_NAME}| (?:was|is|arrived|came))"),
    (None, r"i (?:look after|care for|take care of|support|live with|share (?:a|the|my) (?:flat|house|home|apartment|room) with) (?:my|our|two|three|an? (?:flatmate|roommate|friend)) ?\w*"),
    (None, rf"i {ADV}(?:lost|buried) my (?:{KIN})\b"),
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
    (None, rf"(?:my|our) {RELATION_WORDS}{ANIMAL}(?:,? {ONE_NAME})? {ADV}(?:(?:is|was|turns|turned) (?:an? |\d|almost|very old|blind|deaf|diabetic|pregnant)|(?:does|has|is|can)(?:n['’]?t| not|not) |only |always |keeps |refuses|barks|bites|scratches|follows|jumps|chews|chases|comes from|weighs|turned|turns|needs|snores)"),
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
    (None, rf"{WE}['’]?(?:ve| have) {ADV}got (?:{COUNTED}){{0,1}}(?:[\w'’-]+ ){{0,2}}(?:{_ILLNESS}|sweet tooth|green thumb|green fingers|twins|time off)\b"),
    (None, rf"{IM} {ADV}(?:\w+ (?:months?|weeks?) (?:pregnant|along|postpartum))\b"),
    (None, rf"(?:i (?:weigh|measure) (?:about |around )?\d|{IM} (?:about |around |only )?\d[\d.,'’]{{0,6}}\s?(?:cm|m|ft|feet|foot|kg|kilos|lbs?|pounds|stone)\b)"),
    (None, rf"{WE} {ADV}(?:have|suffer from|live with|was born with) (?:{COUNTED}){{0,1}}(?:[\w'’-]+ ){{0,2}}{_ILLNESS}\b"),
    (None, rf"i {ADV}(?:can['’]?t|cannot|can not|must not|mustn['’]?t|am not allowed to|may not) (?:eat|drink|have|tolerate|digest|take) {OF_SOMETHING}(?!(?:off|on|away|up|a (?:look|break)|fun|access)\b)"),
    (None, r"i (?:can['’]?t|cannot) (?:hear|walk|smell|taste) (?:very )?(?:well|properly|anything|far|without|with|on|in)\b"),
    (None, rf"{IM} {ADV}recovering from (?:[\w'’-]+ ){{0,3}}(?:surgery|operation|injury|stroke|cancer|covid|illness|accident|concussion|burnout|heart attack)\b"),
    (None, rf"{IM} {ADV}trying to (?:(?:eat|drink|smoke) (?:less|more|fewer) |quit (?:smoking|drinking)|lose weight|gain weight)"),
    (None, rf"{IM} {ADV}on (?:an? )?(?:[\w-]+ ){{0,3}}(?:diet|fodmap|keto|crutches|dialysis|chemo(?:therapy)?|hrt|beta ?blockers|ssris|steroids|warfarin|metformin|medication|meds|antidepressants|insulin|blood thinners|statins|the pill|painkillers)\b"),
    (None, rf"(?:{_FOOD}|spicy food|[a-z]+ food) (?:does(?:n['’]?t| not)|do(?:n['’]?t| not)) (?:agree|sit well) with (?:me|my)\b"),
    (None, rf"(?:i (?:have to|must|need to) (?:avoid|stay away from)|i {ADV}avoid) {_FOOD}\b"),
    (None, rf"{_FOOD} (?:makes?|gives?) me (?:sick|ill|itchy|bloated|sneeze|hives|cramps|an? (?:rash|headache|migraine|stomach ache))\b"),
    (None, rf"{WE} {ADV}(?:keep|eat|follow) (?:an? )?(?:strictly |mostly |strict )?(?:kosher|halal|vegan|vegetarian|plant-based|gluten-free|dairy-free|keto|low-carb|low-salt|low-sodium|paleo|mediterranean|fodmap|low-fodmap|organic)\b"),
    (None, rf"{WE} {ADV}(?:fast|keep the fast|observe|keep|celebrate) (?:during |for |the |in |on )?(?:Ramadan|Lent|Shabbat|the Sabbath|sabbath|Diwali|Hanukkah|Passover|Eid|Nowruz|Lunar New Year)\b"),
    (None, r"my (?:\w+ )?(?:knees?|back|hips?|shoulders?|eyes|eyesight|hearing|ankles?|wrists?|heart|stomach|lungs|joints|skin|blood pressure|cholesterol|blood sugar|vision|memory|teeth|feet) (?:is|are) (?:(?:really|very|quite|pretty|a bit|too|always) ){0,2}(?:bad|weak|terrible|poor|sensitive|high|low|shot|dodgy|dry|stiff|failing|gone|not great|messed up)\b"),
    (None, rf"i {ADV}need (?:(?:reading |new )?glasses|a wheelchair|hearing aids|insulin|an inhaler|an epipen|step-free access)\b"),
    (None, rf"i {ADV}(?:don['’]?t|do not|can['’]?t) (?:do well with|tolerate|digest|handle|get enough of|live without|function without) {OF_SOMETHING}(?!(?:the|this)\b)\w+"),
    (None, r"i(?: always| usually)? (?:get|break out in) (?:hives|a rash|migraines|seasick|carsick|hay fever|nosebleeds|panic attacks)\b"),
    (None, rf"(?:i|{IVE}) {ADV}(?:was|been|got) (?:diagnosed with|vaccinated|prescribed)\b"),
    (None, r"i (?:take|took|am on|use) (?:\d+ ?(?:mg|ml|units|mcg|µg)|(?:metformin|insulin|ibuprofen|statins?|antidepressants?|beta ?blockers?|blood thinners|vitamin \w+|iron tablets|thyroxine|levothyroxine|lisinopril|sertraline|ritalin|an inhaler|antihistamines|medication|magnesium|omeprazole))\b"),
    (None, r"my (?:\w+ ){0,2}(?:doctor|gp|dentist|physio|cardiologist|therapist|optician|allergist|neurologist|dermatologist|midwife) (?:says|said|told me|found|confirmed)(?: that)? i(?:['’]m| am| have| should not| must not| can['’]t)\b"),
    (None, r"i (?:tore|broke|sprained|dislocated|fractured|twisted|pulled|strained) (?:an?|my) (?!(?:build|code|record|promise|streak|test|sweat)\b)"),
    (None, r"i(?:['’]m| am|['’]ve| have)? (?:recently |just )?(?:had|having|getting|scheduled for) (?:a (?:root canal|(?:\w+ )?transplant|(?:\w+ )?bypass|stroke|heart attack|miscarriage|baby|hip replacement|knee replacement|c-section)|(?:\w+ )?surgery|an operation|my (?:appendix|tonsils|gallbladder|wisdom teeth) (?:out|removed))\b"),
    (None, rf"i {ADV}(?:wear glasses|wear contacts|wear contact lenses|wear (?:a )?hearing aids?|wear braces|use a wheelchair|smoke\b|don['’]?t smoke|don['’]?t drink(?: alcohol)?\b|(?:never|do not) (?:drink|smoke)\b|haven['’]t (?:smoked|drunk)|quit smoking|quit drinking|stopped smoking|stopped drinking)"),
    # Likes
    ("favourite {kind}", rf"my (?:all-time |absolute |current |personal )?fav(?:ou?rite|e|orite)? (?!(?:part|thing|memory|moment|time|one|way|bit|option|version|variant|answer|suggestion|choice|solution|idea|draft|design|approach|candidate|line|sentence|title)s?\b)(?P<kind>\w+(?: \w+)?) (?:is|are) (?!(?:that|this|these|when|how|it|the one|probably)\b){VALUE}"),
    (None, rf"i {ADV}(?:(?:love|like|enjoy|adore|relish)(?! the\b| to (?:think|know|see|keep|make sure|focus)\b)|hate|dislike|prefer|loathe|despise|detest) {OF_SOMETHING}"),
    (None, rf"i (?:(?:really|absolutely|just) )?(?:can['’]?t (?:stand|bear)|don['’]?t (?:really )?(?:like|eat|drink|enjoy)|do not (?:like|eat|drink|enjoy)|never (?:eat|drink|touch)) {OF_SOMETHING}"),
    (None, rf"{IM} {ADV}(?:not )?an? (?:big |huge |lifelong |massive |great ){{0,2}}(?:fan of|lover of) {OF_SOMETHING}"),
    (None, rf"{IM} (?:{ADV})(?:not )?(?:really |much of )?an? (?:[\w-]+ ){{0,2}}(?:introvert|extrovert|morning person|early bird|night owl|cat person|dog person|tea drinker|coffee drinker|mother|father|mom|mum|dad|parent|immigrant|refugee|veteran|survivor|atheist|agnostic|perfectionist|minimalist|twin|only child|trans woman|trans man|bookworm|widow|widower|orphan|smoker|non-smoker|grandmother|grandfather|(?:type \d )?diabetic)\b(?! of (?:this|that|the)\b)"),
    (None, rf"i['’]?(?:d| would) (?:much |always )?rather {OF_SOMETHING}(?!(?:not|be|just|do|use|say|go with|see|have|keep|put|make|try|get|let)\b)[a-z]+ [^.;!?]{{2,60}}? than [a-z]"),
    (None, rf"i {ADV}(?:don['’]?t|do not) (?:care for|get on with|get along with|watch|listen to|play|wear|own|celebrate|follow|believe in|do (?:spicy|mornings|social media|small talk)) {OF_SOMETHING}(?![^.!?]*\bany ?more)\w+"),
    (None, rf"{IM} {ADV}(?:not )?(?:an? )?(?:big |huge |much of an? |really an? |keen |avid |die-?hard |passionate |amateur |hobby |competitive |serious |casual |former |professional |recreational )(?:fan of|[\w-]+ (?:fan|lover|person|drinker|eater)|coffee lover|person|drinker|eater|reader|gamer|cook|baker|hiker|runner|cyclist|swimmer|climber|gardener|knitter|painter|photographer|traveller|birder|birdwatcher|collector|sailor|skier|surfer|chess player|tennis player|footballer|player|dancer|musician|singer|listener|camper|angler|beekeeper|enthusiast|nerd|buff|geek)\b(?! of (?:this|that|the idea|your)\b)"),
    (None, rf"{IM} {ADV}an? (?:[\w-]+ ){{0,2}}(?:gamer|runner|hiker|cyclist|swimmer|climber|knitter|birder|birdwatcher|bookworm|foodie|vegetarian|vegan|sailor|skier|surfer|chess player|tennis player|coffee snob|metalhead|homebody|night person|people person|lefty|left-hander|non-drinker|lark|dog lover|cat lover|(?:[A-Z]\w+ )?supporter)\b(?! of (?:this|that|the)\b)"),
    (None, r"(?!(?:this|that|it|which|what|here|there)\b)[a-z][\w' -]{1,30}? (?:is|are)(?:n['’]?t| not)? (?:really )?my (?:thing|cup of tea|jam|comfort food|passion|guilty pleasure|happy place|weakness|favou?rite (?:sport|food|season|drink|band|film|book|subject|animal|colou?r|hobby|flower|fruit|cheese))\b"),
    ("favourite {kind}", rf"my (?:go-to|usual) (?P<kind>(?!(?:approach|solution|way|method|option|answer)\b)[\w-]+(?: \w+)?) is (?!(?:that|this|to|when)\b){VALUE}"),
    (None, rf"{_FOOD} (?:is|are) (?:not for me|disgusting|my (?:favou?rite|weakness|guilty pleasure|comfort food))\b"),
    (None, rf"i(?:['’]?ve| have) (?:always|long) (?:loved|liked|hated|enjoyed|disliked|wanted to (?:be|become|visit|learn)|had (?:a|an)) {OF_SOMETHING}\w+"),
    (None, rf"i(?:['’]?ve| have) never (?:been to {CAPITAL}|eaten|smoked|flown|skied|driven|ridden|seen the (?:sea|ocean)|(?:used|tried|played|cooked|worked with|touched|run|broken) (?!(?:it|this|that|these|the|an?|before)\b)\w+|been (?:abroad|married|skiing)|owned|learned to|learnt to|liked|had (?:a|an) (?:pet|dog|cat|car))\b"),
    # Habits
    (None, rf"i (?:always|usually|often|rarely|regularly|never|typically|normally|only) {_PLAY}\b(?! (?:it|that|this|these|those|them|into|the (?:same|code|file|docs?))\b)"),
    (None, r"i (?:always|usually|normally|typically|generally|never|rarely) (?:get up|wake up|go to (?:bed|sleep|church|mass|the (?:gym|pool|market))|start work|finish work|skip (?:breakfast|lunch|dinner)|have (?:breakfast|lunch|dinner|coffee|tea)|sleep (?:late|in|until|with|on))\b"),
    (None, rf"{WE} {ADV}(?:cycle|bike|walk|drive|commute|run|scooter|take the (?:train|bus|tram|metro|subway|tube|ferry|car)|travel)(?: \w+)? (?:to|into|from) (?:the office|work|school|uni(?:versity)?|college|campus|(?-i:[A-Z])\w+ (?:for work|every))\b"),
    (None, rf"{WE} {ADV}(?:always|usually|often|never|rarely|mostly|normally|typically|generally|try to) (?:eat|cook|drink|spend|go|visit|have (?:breakfast|lunch|dinner|coffee|tea|brunch)|take (?:the|a)|watch|listen to|read|walk|sleep|wake|work|shop|buy|travel|speak|celebrate|play|meet|bake) (?!(?:it|that|this|these|those|them|for the code|the (?:same|code|file|docs?))\b)[\w'’-]+(?: [\w'’-]+){{0,8}}?(?= (?:on|at|in|for|with|together|every|before|after|to)\b|[,.!]|$)"),
    (None, r"i (?:always|never|only) (?:wear|use|buy|drink|eat|take)\b (?!(?:it|that|this|them|the)\b)"),
    (None, rf"i {ADV}(?:always|never|often|rarely|usually|tend to|constantly) (?:forget|lose|misplace|oversleep|skip|burn|wake|fall asleep|cry|blush|sneeze|procrastinate|hum|nap|snack|eat|sleep|read|walk|cook|buy|carry|keep) (?!(?:it|that|this|these|those|them|the|to|about|getting)\b)[\w'’-]+"),
    (None, rf"{WE} {ADV}(?:have|eat|drink) (?!(?:it|this|that|the)\b)[\w -]{{2,30}}? (?:for|with|at) (?:breakfast|lunch|dinner|supper|brunch|dessert)(?! (?:today|tonight|tomorrow))\b"),
    (None, r"i (?:always |usually |also )?(?:bake|brew|make|grow|sew|roast|cure|cut|mill|fix|pickle|ferment|cook|knit) (?:all )?(?:of )?my own \w+"),
    (None, rf"i {ADV}(?:listen to|watch|read|knit|play|do|study|work|snack|nap)(?: [\w-]+){{1,3}} (?:while|before (?:bed|sleeping|work|breakfast)|on my commute|on the (?:train|bus|way to work)|in bed)\b"),
    (None, rf"{WE} {ADV}(?:eat|have) (?:breakfast|lunch|dinner|supper|brunch) (?:at|around|late|early|together|before|after|in front)\b"),
    (None, rf"i {ADV}(?:fast|nap|jog|stretch|journal|pray|snack|garden|swim|run|cycle|walk|read|work out|exercise) (?:until|from|for|before|after|during|between|around|in the|at) (?!(?:it|this|that|now|the (?:code|file|loop|tests?))\b)\w+"),
    (None, rf"{WE} {ADV}{_DO_REGULARLY}\b(?! to (?:save|be|do|make)\b){_RUN_OF}\b{_REGULARLY}"),
    (None, rf"(?:{_REGULARLY}|most (?:days|mornings|evenings|weekends|nights|{WEEKDAY}s)|(?:on|at) (?:{WEEKDAY}s?|weekends|the weekend|weekdays|most days)(?: and {WEEKDAY}s)?(?: \w+)?)(?: (?:morning|evening|night|afternoon)s?)?,? (?:{WE}|my {KIN} and i) {ADV}(?:usually |always |often |like to |tend to )?{_DO_REGULARLY}\b"),
    (None, r"i (?:can )?(?:play|teach|coach|volunteer|collect|practi[cs]e|foster|tutor|knit|crochet|meditate|sing|juggle|brew|keep bees|paint|compose|restore|breed|grow my own)(?: (?!(?:it|that|this|these|those|them|the|into|in (?:the|this)|to|by|with|a role|others|together|well|along|fair|safe|nice|hard|better|more|less|around|people|you|my|an? (?:role|part)|around|along|data|information|feedback|evidence|metrics|logs?)\b)[\w'’-]+|[.!]|$)"),
    (None, rf"i {ADV}(?:can )?play (?:the )?(?:piano|guitar|violin|viola|cello|oboe|flute|clarinet|saxophone|trumpet|trombone|horn|drums|bass|harp|organ|accordion|banjo|ukulele|mandolin|bassoon|harmonica|bagpipes)\b"),
    (None, rf"i {ADV}(?:sing|play|dance|act) (?:\w+ ){{0,2}}in (?:an?|the|our|my) (?:[\w-]+ ){{0,2}}(?:choir|band|orchestra|team|club|theatre|theater|quartet|league)\b"),
    (None, rf"i(?:['’]?ve| have) {ADV}been (?!(?:thinking|wondering|trying|meaning|told|looking|busy|feeling|seeing|hearing|having|getting|struggling|stuck|debugging|working on|using this|waiting)\b)[^,.;!?]{{0,80}}\b(?:for (?:about |over |almost |nearly |the (?:last|past) )?(?:\d+|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|many|several|a few|some) ?(?:years?|decades?|months?)|since (?:i was|\d{{4}}|childhood|high school|college)|for years|for ages|(?:all|most of) my life)\b"),
    (None, rf"i(?:['’]?ve| have) {ADV}been (?:married|sober|into \w+|to {CAPITAL})\b"),
    (None, rf"i(?:['’]?ve| have) {ADV}(?:had|known|owned|played|lived|run|taught|sung|driven|ridden|worn|used|worked|studied|practi[cs]ed|collected|taught) (?!(?:this|that|these|the same|issues?|problems?|trouble)\b)[^,.;!?]{{0,80}}\b(?:for (?:\d+|an?|two|three|four|five|six|ten|many|over|about|almost)|since)\b"),
    # Tools and languages
    (None, rf"i can (?:also |only )?(?:read|understand|write|speak|code in)(?: \w+)? (?:{LANGUAGE}|{CODE})"),
    (None, rf"{IM} {ADV}(?:teaching myself|self-taught in|picking up) (?!(?:it|this|that|the|where|on)\b)\w+"),
    (None, rf"{WE} (?:can )?{ADV}speak (?:\w+ ){{0,2}}{LANGUAGE}\b"),
    (None, rf"my (?:native|first|second|mother) (?:language|tongue) is {CAPITAL}"),
    (None, rf"{IM} {ADV}(?:learning|taking (?:\w+ )?lessons in|practi[cs]ing) (?:to (?:play|speak|drive|swim|cook|knit|sew|sail|fly|code|dance|ski|paint|surf|weave|juggle)|how to (?:play|swim|drive|cook|sail)|the (?:piano|guitar|violin|cello|flute|drums|saxophone|ukulele|harp)|{CAPITAL}|sign language|piano|guitar|violin|chess|pottery|karate|judo|yoga|ballet)"),
    (None, rf"i {ADV}(?:use|run) {CAPITAL}(?!(?:This|That|It|I)\b){VALUE}"),
    (None, rf"{WE} {ADV}(?:use|run|work with|deploy (?:to|on|with)|host on|ship) {CAPITAL}(?!(?:This|That|It|I)\b)[^;!?]{{1,60}}? (?:at (?:work|home|the office|school|uni|my (?:job|company)|our (?:company|office))|in (?:my|our) (?:team|company|lab|office|studio|kitchen)|in production|for (?:everything|all our|work|my (?:notes|research|photos|music|studies)|our (?:backend|frontend|builds)))\b"),
    (None, rf"(?:at work|at home|at the office|in my team|at my (?:job|company)),? {WE} {ADV}(?:use|run|work with|speak|write|code in|have) (?:(?:an?|two|three) )?{CAPITAL}"),
    (None, rf"i {ADV}(?:don['’]?t|do not) (?:really )?(?:know|speak|understand|write|code in|use|read) (?:any |much |a word of |enough )?(?:{CODE}|{LANGUAGE})"),
    (None, rf"i {ADV}(?:only )?(?:know|understand|read|write) (?:a (?:bit|little)(?: of)? |some |basic |only |just |enough |decent |fluent )?(?:{CODE}(?= well\b|,| and\b| but\b|[.!]|$)|{LANGUAGE}(?= well\b|,| and\b| but\b|[.!]|$))"),
    (None, rf"my (?:\w+ )?(?:{LANGUAGE}|{CODE}) is (?:(?:very|pretty|quite|a bit|really|still) ){{0,2}}(?:good|bad|rusty|basic|fluent|poor|terrible|weak|ok|okay|decent|better|intermediate|non-existent|at)\b"),
    (None, rf"{IM} {ADV}(?:comfortable|fluent|proficient|experienced|good|at home|(?:an? )?beginner|new) (?:with|in|at|to) (?:{CODE}|{LANGUAGE})"),
    (None, r"(?:english|german|french|spanish) (?:is not|isn['’]?t|is) my (?:first|second|third|native|mother) (?:language|tongue)\b"),
    (None, rf"{WE} {ADV}(?:use|run|am on|work in|write everything in|write my \w+ in|do my \w+ in|deploy on) (?:google )?(?:vim|neovim|nvim|emacs|vscode|vs code|obsidian|notion|evernote|onenote|firefox|chrome|brave|safari|linux|ubuntu|debian|arch|fedora|mint|nixos|windows|macos|excel|sheets|docs|libreoffice|photoshop|lightroom|figma|blender|slack|jira|trello|asana|todoist|anki|duolingo|gmail|outlook|zotero|scrivener|markdown|latex|postgres|mysql|mongodb|redis|docker|kubernetes|terraform|aws|azure|gcp|github|gitlab|an? (?:iphone|android|mac|pc|pixel|samsung|thinkpad|chromebook|kindle))\b(?! (?:to|in this|error|command|function|commands|file)\b)"),
    ("lives", rf"{WEVE} {ADV}(?:moved|relocated) (?:from \w+ )?to {NO_TOOL}(?!(?:an?|the|my|our|this|that|these|it|be|use|using|another|new|next|other|different|do|see|where|what|one|two|bed|tears|action|production)\b)(?P<value>[a-z]{{3,}})(?= from\b| for (?:work|my|a job|uni)| last\b| in (?:\w+day|january|\d{{4}})| (?:two|three|\d+|a few) (?:weeks|months|years) ago| recently)"),
    (None, rf"{WERE} {ADV}(?:flying|moving|relocating|going|travelling|traveling|emigrating) to {NO_TOOL}(?!(?:an?|the|my|our|this|that|these|it|be|use|using|another|new|next|do|see|try|need|have|get|make)\b)[a-z]{{3,}}(?=[^.;!?]{{0,40}}{TIME})"),
    (None, rf"{WEVE} {ADV}switched (?:from {CAPITAL}[\w .+#-]{{1,30}} )?to {CAPITAL}"),
    (None, rf"i {ADV}(?:write|code|program|develop|work) (?:\w+ )?(?:in|with) {CAPITAL}(?:[\w.+#-]+)(?=[,.!]| and\b| for\b| on\b|$)"),
    (None, rf"i (?:can )?{ADV}(?:write|code|program|develop) (?:\w+ )?(?:in )?{CODE}(?=[,.!]|$| and\b| for\b| at\b| or\b)"),
    (None, rf"{IM} {ADV}(?:on|using|running) (?:(?:\w+ )?Linux|Ubuntu|Debian|Fedora|Windows(?: \d+)?|macOS|Android|NixOS|FreeBSD|Arch|Mint|an? (?:(?:new|old|M\d) )?(?:iPhone|Mac|MacBook(?: (?:Air|Pro))?|PC|Chromebook|Pixel|Galaxy|ThinkPad|Linux (?:box|machine)|Windows (?:machine|laptop|PC)|iPad))(?: \w+)?(?=[,.!:]|$| and\b| \(| so\b| with\b| but\b| at\b)"),
    (None, rf"(?:i|we|i['’]?ve) {ADV}(?:(?:work|code|write|draw|game|type|use) on|use|have|own|bought|got) (?:an?|my|two) (?:[\w-]+ ){{0,2}}(?-i:MacBook|Mac|iMac|iPad|ThinkPad|PC|Chromebook|Surface|Pixel|iPhone|Galaxy|Kindle|GoPro|Garmin|Raspberry Pi|Steam Deck|Fairphone|Dell|Lenovo|Samsung|Sony|Canon|Nikon|Fuji\w*|Leica|Linux|Windows|Ubuntu|Fedora)\b(?! (?:problem|question|issue|error|script|setup|server))"),
    (None, r"(?:my|our) (?:(?:\w+ )?(?:editor|ide|shell|operating system|distro|tech stack|stack|backend|frontend|database|note app|window manager|build system|infra(?:structure)?)) (?:is|runs on|is built (?:on|with)|uses) (?!(?:not|slow|broken|crashing|down|showing|set|too|very|so|giving|freezing|stuck|the|failing|currently|connected|configured|working|dead|old|new|full|now|going|what|that|this|it)\b)\w+"),
    (None, rf"{WE} {ADV}(?:deploy|host|ship|run everything|run) (?:everything |our \w+ )?(?:on|to|with) {CAPITAL}"),
    (None, rf"i {ADV}(?:do|keep|write|track|plan|make|edit|manage|store|take|draw|record|read) (?:all |most of )?(?:my \w+|everything)(?: \w+)? (?:in|with|on|using) (?:an? )?{CAPITAL}"),
    (None, rf"(?:my|our) (?:(?:main|preferred|primary|go-to|default|daily|work|home|text|code|programming|window|current) ){{1,2}}(?:editor|ide|browser|shell|os|operating system|distro|distribution|keyboard|phone|laptop|computer|camera|language|stack|terminal|database|car|bike|machine) is (?:an? )?(?:\w+ )?(?:{CAPITAL}|{CODE})"),
    (None, rf"(?:all )?my (?:[\w-]+ ){{0,2}}(?:notes|files|photos|laptop|computer|phone|desktop|server|machine|editor|car|bike|tv|camera|tablet)(?: computer)? (?:all )?(?:live|lives|runs?|is an?|are in|are on) (?:\w+ )?{CAPITAL}"),
    # Possessions
    (None, rf"{WE} {ADV}have (?!no [^,.!?]* and\b){COUNTED}(?:[\w'’-]+ ){{0,3}}{_OWNED}\b(?! (?:problem|issue|question|error|in (?:my|the|this) (?:code|project|game|app|story|novel|data)|objects?|tables?|class(?:es)?|column|field))"),
    (None, rf"{WE} {ADV}(?:only |just |now )?have (?:solar panels|underfloor heating|air conditioning|chickens|bees|hens|kids|children|grandchildren|siblings|bad eyesight|roommates|flatmates)\b(?! (?:who|that) )"),
    (None, rf"{WE} {ADV}(?:only |just |now )?have (?!no [^,.!?]* and\b)(?:only |just )?(?!no [^,.!?]* and\b){COUNTED}(?:[\w'’-]+ ){{0,3}}{_THING}s?\b(?! (?:in (?:my|the|this) (?:code|project|game|app|story|novel|data)|issue|problem|question|error))"),
    (None, rf"{WE} {ADV}(?:don['’]?t|do not) (?:have|own) (?:an?|any) (?:[\w'’-]+ ){{0,2}}(?:{_THING}|{ANIMAL}|kids|children|siblings)\b"),
    (None, rf"{WE} {ADV}have no (?:kids|children|siblings|pets|tv|oven|car|driving licen[cs]e|sense of smell)\b(?! and\b)"),
    (None, rf"{WE} {ADV}have twin (?:boys|girls|sons|daughters|brothers|sisters)\b"),
    (None, rf"{WE}(?:['’]?ve| have) got {COUNTED}(?:[\w'’-]+ ){{0,3}}{_OWNED}\b"),
    (None, rf"{WE} {ADV}(?:drive|ride|own) (?:an?|two|three|our|my) (?:[\w.-]+ ){{0,3}}(?:{CAPITAL}|{_THING}\b)"),
    (None, r"(?:my|our) (?:[\w-]+ ){0,2}(?:car|oven|house|flat|apartment|kitchen|garden|garage|balcony|bike|phone|laptop|tv|fridge|piano|guitar|boat|van|bathroom|stove|camera|watch) (?:is an? (?!(?:mess|bit|problem|little|disaster)\b)|has (?:an?|no|two|only|\d)|does(?:n['’]?t| not) have|only has|faces|came with|overlooks|(?:got|was) (?:stolen|totalled|towed))\b ?\w*"),
    (None, rf"(?:my|our) (?:[\w-]+ ){{0,2}}(?:boat|car|house|bike|van|company|business|band|team|cottage|farm|shop|start-?up|caf[eé]|cat|village|street|school|network|sourdough(?: starter)?) is (?:called|named) {CAPITAL}"),
    (None, rf"{WEVE} {ADV}inherited (?:my|an?|some|the|our) \w+"),
    (None, rf"{WE} own (?:an?|two|three|four|several) (?!(?:lot|bit|copy|few)\b)\w+"),
    (None, rf"{WEVE} {ADV}(?:bought|got|inherited|built|restored|ordered|upgraded to|picked up|got myself|treated myself to|leased|inherited) (?:myself )?(?:an?|our|my|the) (?:[\w.-]+ ){{0,4}}{_THING}\b"),
    (None, rf"{WEVE} {ADV}(?:bought|ordered|upgraded to|got (?:myself )?a new|got (?:myself )?a used) (?:myself )?(?:(?:an?|my|our) )?(?:(?:new|used|second-hand|first|old) )?(?:[\w.-]+ ){{0,2}}(?:(?-i:[A-Z])[\w.-]+|car|phone|bike|laptop|camera|watch|tv|sofa|house|flat)\b(?! (?:error|message|question|from (?:the|my) (?:code|server|compiler)))"),
    (None, rf"i {ADV}(?:wear|take) (?:an? )?(?:size|shoe size|\w+ size) \w+"),
    (None, rf"{WEVE} no longer (?:have|own) (?:the|my|our|an?|any) (?P<ends>[\w' -]{{3,30}}?)(?=[,.!]|$| since| because)"),
    (None, rf"{WE} (?:don['’]?t|do not) (?:have|own) (?:the|my|our|an?|any) (?P<ends>[\w' -]{{3,30}}?) any ?more"),
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
    (None, rf"(?:i|we)(?:['’]?ve| have)?(?: got)? (?:have |got )?(?:an?|my|our|the) (?:[\w'’-]+ ){{0,2}}{_EVENT}\b(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WERE} {ADV}(?:flying|travell?ing|moving|heading|relocating|emigrating|sailing) (?:back )?to {CAPITAL}{NO_TOOL}"),
    (None, rf"{WERE} {ADV}(?:going|driving|off|cycling|walking|hiking|taking the (?:train|ferry|bus)) (?:back )?to (?:the )?{CAPITAL}{NO_TOOL}(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WERE} {ADV}(?:getting married|having a (?:baby|party)|starting (?:a|my) new (?:job|school|course|position)|taking (?:my|a) (?:[\w-]+ ){{0,2}}(?:exam|test|sabbatical|holiday|course)|having (?:[\w-]+ ){{0,2}}(?:surgery|an operation)|running (?:a|the|my) (?:[\w-]+ ){{0,2}}(?:marathon|race|10k)|moving (?:house|in with|into|out)|expecting (?:a baby|twins|our|my)|getting (?:a|an) (?:[\w-]+ ){{0,2}}(?:dog|cat|puppy|kitten|divorce|new hip|new knee)|visiting (?:my|our|{CAPITAL}))"),
    (None, rf"{WERE} {ADV}moving (?:back )?to (?:an?|our|my|another|the) (?:[\w-]+ ){{0,2}}(?:flat|apartment|house|city|country|countryside|place|town|village|suburbs|coast|studio|farm)\b"),
    (None, rf"{WERE} {ADV}getting (?:an?|my|our|new|the) (?!(?:error|warning|problem|message|issue|bit|lot|feeling)\b)[\w-]+(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WERE} {ADV}(?:looking after|caring for|raising|taking care of) (?:my|our|two|three|an?) \w+"),
    (None, rf"{WERE} {ADV}(?:leaving|meeting|seeing|visiting|starting|hosting|having (?!(?:trouble|problems|issues|difficult|a hard)\b)|going|flying|taking|attending|presenting|playing|performing|running|hiking|camping|celebrating)(?! (?:it|this|that)\b)(?=[^.;!?]{{0,60}}{TIME})(?! to (?:use|try|be|do|add|make|write|need|start|have|implement)\b)"),
    (None, rf"{WE}(?:['’]?ll| will| am going to| are going to|['’]?m going to|['’]?re going to) (?:start|visit|move|fly|travel|celebrate|emigrate|study|sit|perform|marry|run|go|attend|graduate|retire|meet|take|see|be in|be away|have|host|turn \d\d|be \d\d)\b(?=[^.;!?]{{0,60}}{TIME})(?! (?:it|this|that|a look|care)\b)"),
    (None, rf"i(?:['’]?ll| will)? (?:turn|start|graduate|retire|fly|leave) (?!(?:it|this|that|the (?:server|app|code|process|script))\b)(?=[^.;!?]{{0,50}}{TIME})"),
    (None, rf"{WEVE} {ADV}(?:booked|reserved|rented) (?:an?|our|my|the|two|flights?|tickets?)\b(?! (?:it|time slot))"),
    (None, r"(?:i|we)(?:['’]?d| would) (?:like|love) to (?:marry|get married|move|retire|have (?:a|another) (?:child|baby|dog|cat))\b"),
    (None, rf"{WE} (?:want|hope|plan|intend|aim|am planning|are planning) to (?:run|swim|finish|climb|walk|cycle|ride|hike|sail) (?:the|a|my) (?:[\w'-]+ ){{0,3}}(?:marathon|triathlon|race|camino|way|channel|alps|trail|10k|ironman|ultra)\b"),
    (None, rf"{WERE} {ADV}(?:saving (?:up )?for (?:an?|my|our) (?!(?:bit|while|few)\b)|training for (?:an?|my|the)|planning (?:a|my|our) (?:[\w-]+ ){{0,2}}(?:trip|wedding|vacation|move|holiday|road trip|honeymoon|party|retirement)|planning (?:on|to) {_LIFE}|writing (?:a|my) (?:[\w-]+ ){{0,2}}(?:novel|memoir|book|thesis|dissertation|phd|screenplay)\b|(?:opening|launching|starting|setting up) (?:an?|my|our)(?: own)? (?:[\w-]+ ){{0,2}}{_VENTURE}\b)"),
    (None, rf"i (?:plan (?:on|to)|intend to|aspire to|hope to|want to) {_LIFE}"),
    (None, r"(?:my|our) (?:[\w'’-]+ ){0,2}(?:plan|resolution|goal for [\w ]{3,20}) is\b (?!(?:that|this|not|so|due|too|still|good|bad|below)\b)(?=(?:a|an|to (?:run|learn|read|visit|stop|eat|move|swim|save|stay|lose|quit))\b)"),
    (None, rf"{WEVE} {ADV}(?:got|have|bought|booked) (?:\w+ ){{0,2}}tickets (?:to|for) \w+"),
    (None, rf"{WERE} {ADV}due (?:on|in|next|this|any) \w+|my (?:visa|passport|lease|contract|licen[cs]e|insurance|residence permit|green card|probation|notice period|maternity leave|internship|semester|term) (?:expires|ends|runs out|is up|starts|begins) (?:on|in|at|next|this|after|\w+ (?:weeks|months|days))\b"),
    (None, rf"{WEVE} {ADV}decided to {_LIFE}"),
    (None, rf"{WERE} {ADV}(?:throwing|hosting|having|organi[sz]ing|planning) (?:an?|my|our) (?:[\w-]+ ){{0,2}}(?:party|wedding|bbq|barbecue|baby shower|reunion|dinner party|hen do|stag do|housewarming)\b"),
    (None, rf"{WE} found (?:the|our|a) (?:wedding )?(?:venue|house|flat|apartment|school|nanny)\b"),
    (None, rf"{WEVE} {ADV}(?:finished|completed|ran|run|won) (?:the|my|a|an) (?:[\w'-]+ ){{0,3}}(?:marathon|race|triathlon|thesis|dissertation|degree|ph\.?d|10k|tournament|competition|championship|award|prize|scholarship|novel)\b"),
    (None, rf"{WEVE} {ADV}(?:passed|failed|defended) (?:the|my) (?:[\w'-]+ ){{0,3}}(?:exams?|driving test|driving exam|thesis|bar|finals|test for my)\b"),
    (None, rf"(?:i|{IVE}) {ADV}(?:graduated (?:from|in|with|last|this)|retired|got (?:promoted|hired|accepted (?:to|at|into|by)|my (?:degree|driving licen[cs]e|citizenship|visa))|quit (?:my|smoking|drinking)|lost my (?:mom|mum|mother|dad|father|wife|husband|dog|cat|brother|sister)|opened (?:a|my) (?:own )?(?:[\w-]+ )?{_VENTURE}|launched (?:a|my) (?:own )?(?:[\w-]+ )?{_VENTURE}|founded|started (?:my own|a new (?:job|business|hobby)|a business|learning|playing (?:the )?[a-z]+|volunteering|collecting|a (?:blog|band|podcast|company|book club))|joined (?:an?|the|my) (?:[\w'’-]+ ){{0,3}}(?:choir|band|club|team|gym|orchestra|group|class|league|church|brigade|army|navy|union|party|gang)|signed up for (?!(?:the free|a free trial|an account)\b)(?:a|an|the|my)|took up [a-z]+|picked up (?:painting|playing|the (?:guitar|piano|violin)))\b{_NOT_ELSEWHERE}"),
    (None, r"(?:please )?(?:remember|don['’]?t forget|keep in mind|bear in mind|note|make a note|write down)(?: that)?:? (?:my|i|we|our|i['’]m|i['’]?ve) (?!(?:last|previous|first|earlier|next|other|original|latest) (?:message|question|prompt|point|answer|request|instruction|example|sentence)s?\b|(?:message|question|prompt|code|function|instructions?)\b|(?:said|asked|told|mentioned|want|need|am using|use) )(?=\w+ \w+)"),
    (None, r"(?:please )?(?:remember|don['’]?t forget|note to self|keep in mind|note)(?: that)?:? (?:the|there['’]s an?|there is an?) (?:[\w-]+ ){1,4}(?:is|are|lives?|goes|hangs?|(?<=there['’]s a )\w+) (?:kept |stored |hidden |always )?(?:with|in|at|under|on|behind|inside|above|next to|near|by) (?!(?:the |my |our |a )?(?:code|file|function|above|following|same|case|dict\w*|array|list|object|json|config\w*|headers?|table|database|response|request|url|map|log|class)\b)(?:the |my |our |a )?[\w'’-]+"),
    (None, r"(?:please )?(?:remember|don['’]?t forget|note to self|note|make a note|write down|save)(?: that)?:? (?:(?:my|our) )?(?:the )?(?:[\w-]+ ){0,2}(?:wi-?fi|password|pin|code|number|combination|key|keys|meeting|appointment|bins?|rubbish|dentist|plumber|electrician|cleaner|babysitter|birthday|anniversary|rent|recital|match|train|flight|vet)\b(?: \w+){0,2} (?:is|are|comes?|leaves|starts|goes)\b (?!(?:not|wrong|undefined|null|in (?:the|a|an|my|your) (?:code|function|dict\w*|array|object|json|config\w*|header\w*|table|database|response|map|file))\b)\w*"),
    (None, rf"(?:my|our) (?:{RELATION_WORDS})(?:{KIN})(?:,? {ONE_NAME})? (?:is|are) (?:visiting|coming|arriving|staying|flying|starting|getting (?:married|engaged|divorced|an? )|having (?:an?|surgery)|leaving for|moving|returning)\b(?! (?:around|along|up|together|to terms|from a)){_NOT_ELSEWHERE}"),
    (None, rf"{WE}['’]?(?:re|m)? (?:am |are )?(?:having|hosting|throwing|expecting) (?:an?|my|our|\w+) (?:[\w-]+ ){{0,2}}(?:party|wedding|bbq|barbecue|dinner|guests?|visitors?|baby shower|reunion|people over)\b(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"{WE} {ADV}(?:have|['’]ve got|got) (?:[\w-]+ ){{0,3}}(?:coming over|visiting|staying)(?=[^.;!?]{{0,60}}{TIME})"),
    (None, rf"(?:i|{IVE}) {ADV}(?:left|quit|resigned from|was let go by) {CAPITAL}{NO_TOOL}[\w&.-]+(?=[^.;!?]{{0,40}}(?:{TIME}|\bafter \w+ years))"),
    (None, rf"i {ADV}(?:got|received|have) (?:an? )?(?:offer|place|scholarship) (?:from|at|for|to) {CAPITAL}"),
    (None, rf"{WERE} {ADV}(?:buying|selling|renovating|redecorating|remodelling|remodeling|building|decorating|doing up) (?:an?|our|my|the) (?:[\w-]+ ){{0,2}}(?:house|flat|apartment|home|kitchen|bathroom|garden|cottage|cabin|shed|boat|van|barn|loft)\b"),
    (None, rf"{WERE} {ADV}(?:learning|building|restoring|knitting|sewing|writing|recording|making|composing|growing|brewing) (?:an?|my|our) (?:[\w-]+ ){{0,2}}(?:boat|guitar|novel|book|album|jumper|sweater|quilt|dress|dollhouse|treehouse|canoe|kayak|motorbike|car|memoir|thesis|dissertation|screenplay|cookbook|symphony|opera|vegetables|beer)\b"),
    (None, r"i earn (?:about |around |over )?(?:\$|€|£)?\d"),
)  # fmt: skip
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
