"""Regular expressions that several tables of English patterns share."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import ANIMAL, MONTH, RELATION, ROLE, WEEKDAY

NOT_ELSEWHERE = r"(?! (?:it|that|this|these|those|them)\b)"
RUN_OF = r"[^,.;!?]{0,60}?"
REGULARLY = (
    rf"(?:every (?:(?:other |single |second )?(?:day|week|month|year|night|morning|evening|afternoon|weekend|summer|winter"
    rf"|spring|autumn|fall)|{WEEKDAY}|{MONTH})|each (?:day|week|month|year|night|morning|evening|summer|winter)|once (?:a"
    rf"|per) \w+|(?:twice|(?:two|three|four|five|\d) times) (?:a|per) (?:day|week|month|year)|on {WEEKDAY}s|{WEEKDAY}s"
    rf"|on (?:week(?:days|ends)|school days)|at (?:the )?weekends|in the (?:mornings|evenings|afternoons)|daily\b|weekly\b"
    r"|(?:\d+|an?|half an?|one|two|three|four|five|six|seven|eight|ten|twenty|thirty|several) [a-z]+(?: of [a-z]+)? (?:a|per"
    r"|each|every) (?:day|week|month|year|night|morning|evening)(?=[,.!]|$| and| before| after)"
    r"|(?:before|after) (?:breakfast|lunch|dinner|work|bed|school))"
)
PLAY = (
    r"(?:play|teach|coach|volunteer|collect|practi[cs]e|own|manage|lead|train|compete|perform|paint|draw|garden|knit|sew"
    r"|cook|bake|hike|camp|surf|swim|ski|cycle|bike|jog|meditate|dance|sing|blog|tutor|foster|commute|drive|eat|drink"
    r"|smoke|speak|wear|read|travel|run|walk|exercise|fast|nap|shop)"
)
DO_REGULARLY = (
    rf"(?:{PLAY}|go|work out|work|get up|wake up|do|attend|meet|call|visit|have|take|see|go to|make|study|stay|babysit"
    r"|lift|climb|box|row|donate|help|watch|listen to|tend|work from home|see my|take my|pray|journal|stretch|sleep)"
)
LIFE_STEP = (
    r"(?:becom(?:e|ing)|mov(?:e|ing) to|study(?:ing)?|retir(?:e|ing)|open(?:ing)? (?:a|my)|travel(?:l?ing)? to"
    r"|visit(?:ing)? (?=(?-i:[A-Z]))|adopt(?:ing)? a|marry(?:ing)?"
    r"|get(?:ting)? (?:married|engaged|a (?:dog|cat|degree))|buy(?:ing)? (?:a|an|my|our) (?:\w+ )?(?:house|flat|apartment"
    r"|home|car|boat|farm|bike|van)|learn(?:ing)? (?!about|how|more|from|the)[a-z]|quit(?:ting)? (?:my|smoking|drinking)"
    r"|start(?:ing)? (?:a|my) (?:own )?(?:family|business|career|company)|go(?:ing)? (?:back )?to (?:college|university"
    r"|school)|run(?:ning)? (?:a|the|my) (?:[\w-]+ )?marathon)"
)
VENTURE = (
    r"(?:studio|business|company|blog|book|novel|store|shop|restaurant|channel|podcast|band|foundation|charity|library"
    r"|caf[eé]|bakery|farm|pub|bar|hotel|kiosk|market stall|stall|etsy shop|workshop|barber ?shop|deli|butchery|kennel|stable|consultancy|law firm|firm|magazine|newsletter|record label|b&b|bed and breakfast|start-?up|practice|brewery|gallery|clinic|agency|bookshop|bookstore|garage|salon|vineyard"
    r"|guest ?house|hostel|dance school|food truck|nursery|yoga studio)"
)
THING = (
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
ILLNESS = (
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
FOOD = (
    r"(?:(?:tree |all |any |too much )?(?:nuts|peanuts|gluten|dairy|lactose|wheat|sugar|salt|caffeine|coffee|alcohol|wine|beer"
    r"|shellfish|seafood|fish|eggs?|soy|meat|red meat|pork|beef|spicy food|grapefruit|milk|cheese|onions?|garlic|tomatoes"
    r"|strawberries|sesame|celery|mushrooms|chocolate|bananas|apples|avocados?|yeast|fructose))"
)
OWNED = (
    rf"(?:{RELATION}|{ANIMAL}|{ILLNESS}|{THING}|boys|girls|(?:bachelor|master)['’]?s?(?: degree)?|degree|ph\.?d|mba"
    r"|fear of|motorcycle|garden|farm|bakery)"
)
EVENT = (
    r"(?:appointment|interview|exam|flight|operation|surgery|wedding|check-?up|scan|driving test|audition|concert|recital"
    r"|marathon|race|competition|tournament|conference|viva|defen[cs]e|graduation|party|holiday|vacation|trip|reunion"
    r"|birthday|anniversary|due date|deadline(?! to (?:meet|hit|keep|make)\b)|training|course|rehearsal|funeral|baptism|first day|date|dentist|match|game"
    r"|performance|exhibition|hearing|presentation|move|retreat|housewarming)"
)
TO_BE = r"(?:is|are|['’]s|was|will be|takes place|starts?|begins?|is scheduled for|has been moved to|has moved to|got moved to|leaves|departs|arrives|ends)"
CONDITION = (
    r"(?:allergic to(?! (?:\w+ )?(?:code|xml|json|java|javascript|php|python|windows|spreadsheets|excel|bureaucracy|jargon|hype|mornings?|mondays?|weekdays?|work|working|people|meetings?|effort|exercise|exercising"
    r"|nonsense|drama|commitment|fun|responsibilit\w+|housework|homework|chores|small talk|bugs|stupid\w*|adulting|mess)\b)"
    r"|vegetarian|vegan|pescatarian|lactose[- ]intolerant|gluten[- ]intolerant|intolerant (?:to|of)|coeliac"
    r"|celiac|diabetic|dyslexic|colou?r[- ]?blind|red-green blind|deaf|blind in|left-handed|bilingual|trilingual|asthmatic|haemophiliac|disabled|hard of hearing|visually impaired|partially sighted|wheelchair[- ]bound|in a wheelchair|neurodivergent|on the (?:autism )?spectrum|short of sight|perimenopausal|menopausal|postpartum|breastfeeding|immunocompromised|bipolar|teetotal|teetotaller|an?(?:a)emic"
    r"|low on iron|pregnant|expecting (?:a|my|our|twins)|retired|self-employed|transgender|gay|lesbian|bisexual|queer"
    r"|non-?binary|autistic|introverted|extroverted|short-sighted|near-?sighted|far-?sighted|epileptic|hypertensive"
    r"|not good with|good with my hands|passionate about|interested in (?!(?:a|the|an|how|learning|knowing|your|this|\w+ing (?:ways|how|more|the|a|my)|improving|understanding|using|implementing|exploring)\b)|really into|into|obsessed with"
    r"|afraid of|scared of|terrified of|fluent in|keen on|fond of|(?:addicted|sensitive) to|sober|halal|kosher"
    r"|claustrophobic|afraid to fly|adopted|(?:gluten|dairy|lactose|sugar|nut|alcohol|meat|smoke|tobacco)[- ]free|(?:crazy|mad|nuts|serious) about|hooked on|partial to|big on|musical|religious|more of an? \w+ person|an atheist|trained in|certified in|qualified as|new to (?=(?-i:[A-Z])))"
)
NATIONAL = (
    r"(?-i:[A-Z][a-z]{2,12}(?:ican|ish|ese|ian|ean|alian)|French|Dutch|Greek|German|Swiss|Thai|Arab|Czech|Iraqi|Pakistani"
    r"|Israeli|Welsh|Catholic|Muslim|Jewish|Buddhist|Hindu|Christian|Sikh|Korean|Mexican|Cuban|Filipino)"
)
WORK_FACT = rf"(?:[\w/&-]+ ){{0,3}}{ROLE}"
