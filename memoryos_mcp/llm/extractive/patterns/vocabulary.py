"""Regular expressions that several tables of patterns share."""

Row = tuple[str | None, str]
"""The slot of a statement, or None, and a pattern for the beginning of the statement."""
VALUE = r"(?P<value>[^,.;:!?()。，！？；、]+)"
ONE_NAME = r"(?-i:(?:Mc|Mac|De|Di|Le|La|O['’]|D['’])?[A-ZÀ-ÖØ-ÞĀ-Ž](?:['’][A-ZÀ-Þ])?[a-zß-öø-ÿĀ-ž]+(?:-[A-ZÀ-ÖØ-ÞĀ-Ž]?[a-zß-öø-ÿĀ-ž]+)?)(?![\w’'])"
NAME = rf"(?:(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
CAPITAL = r"(?=(?-i:[A-ZÀ-ÖØ-ÞĀ-Ž]))"
IM = r"(?:i['’]?m|i am)"
IVE = r"(?:i['’]?ve|i have)"
WE = r"(?:i|we)"
WEVE = r"(?:i['’]?ve|i have|we['’]?ve|we have|i|we)"
WERE = r"(?:i['’]?m|i am|we['’]?re|we are)"
ADV = (
    r"(?:(?:also|basically|happily|currently|nearly always|almost always|as well|myself|strictly|mostly|proudly|newly|sadly|rather|a bit|somewhat|highly|fairly|still|just|really|actually|currently|now|recently|always|absolutely|truly|honestly|both|already|finally"
    r"|usually|mostly|mainly|even|definitely|totally|genuinely|typically|generally|kinda|kind of|sort of|so|very|super"
    r"|pretty|quite|officially|originally|normally|primarily|temporarily|permanently|fully|completely|soon|especially|particularly|deeply|only|severely|badly|slightly|mildly|again) ){0,3}"
)
# Put after a pattern for a like or habit. Excludes texts that are unclear without context, such as "I love it".
OF_SOMETHING = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|how|what|when|where|why|the (?:way|idea|fact|thought|feeling"
    r"|look|sound|vibe|colou?rs?|new|one|ones|first|last|second|concept|approach|suggestions?)|to (?:hear|see|know|say"
    r"|get|be|think|use|help)|seeing|hearing|knowing|being|getting|waiting|having|paying|losing|feeling|when|one|all|both|its"
    r"|their|his|everything|every|some|any|much|many|working with you|if|a good|the previous|option|not)\b)"
)
# Family members and other close people.
KIN = (
    r"(?:mom|mum|mother|mama|dad|daddy|father|papa|parents|step-?(?:mother|father|mom|dad|son|daughter|brother|sister)|wife|husband|hubby"
    r"|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|(?:mother|father|brother|sister|son|daughter)s?[- ]in[- ]law|in-laws|sons?|daughters?"
    r"|kids?|child(?:ren)?|toddler|bab(?:y|ies)|newborn|teenager|twins?|brothers?|sisters?|siblings?|family"
    r"|grand-?(?:ma|pa|mother|father|son|daughter|kids|parents|children|child)|nan|nana|granny|auntie|aunt|uncle|cousins?|niece|nephew"
    r"|roommates?|housemates?|flatmates?|best friend|godson|goddaughter|ex(?:-(?:husband|wife))?)"
)
DIET = r"(?:vegetarian|vegan|pescatarian|flexitarian|veggie)"
RELATION = rf"(?:{KIN}|parent|friend|mentor|boss|coach|colleague|co-?worker|neighbou?r)"
# Relatives of whom a person has only one at a time. For others, the slot contains the name.
ONLY_ONE = (
    r"(?P<who>mom|mum|mother|dad|father|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|boss"
    r"|mother[- ]in[- ]law|father[- ]in[- ]law|stepmother|stepfather|best friend)"
)
ONE_OF_SEVERAL = (
    r"(?P<who>brother|sister|son|daughter|kid|child|baby|stepson|stepdaughter|brother[- ]in[- ]law|sister[- ]in[- ]law|son[- ]in[- ]law"
    r"|daughter[- ]in[- ]law|grandma|grandpa|grandmother|grandfather|grandson|granddaughter|aunt|uncle|cousin|niece|nephew"
    r"|godson|goddaughter)"
)
RELATION_WORDS = (
    r"(?:(?:own|youngest|second|third|elderly|deaf|little|older|younger|elder|little|big|late|two|three|four|five|\d|close|good|old|long-?time|romantic|new|first"
    r"|eldest|oldest|youngest|former|twin|childhood|middle|baby|half|teenage|adult|grown|dear|beloved) ){0,3}"
)
ANIMAL = (
    r"(?:dogs?|cats?|pup(?:py|pies)?|kittens?|kitty|horses?|pon(?:y|ies)|rabbits?|bunn(?:y|ies)|turtles?|tortoises?"
    r"|parrots?|budgies?|canar(?:y|ies)|hamsters?|guinea pigs?|ferrets?|rats?|gerbils?|snakes?|gecko"
    r"|lizards?|iguana|fish|goldfish|birds?|chickens?|hens?|goats?|sheep|donkeys?|pets?|greyhounds?|labradors?|beagles?"
    r"|poodles?|dachshunds?|collies?|corgis?|pugs?|bulldogs?|terriers?|retrievers?|shepherds?|spaniels?|husk(?:y|ies)"
    r"|boxers?|dalmatians?|mutt|tabby|siamese|ragdoll|maine coon|rottweilers?|chihuahuas?|whippets?|labradoodles?)"
)
COUNTED = (
    r"(?:(?:an?|one|two|three|four|five|six|\d{1,2}|some|several|my own|our own|no|over|more than|severe|another|mild"
    r"|type \d|got) ){1,3}"
)
ROLE = (
    r"(?:nurse|teacher|doctor|engineer|developer|programmer|lawyer|attorney|solicitor|accountant|architect|artist|musician"
    r"|writer|author|journalist|editor|designer|photographer|chef|cook|baker|barista|waiter|waitress|bartender|farmer"
    r"|carpenter|electrician|plumber|mechanic|pilot|driver|police officer|firefighter|paramedic|soldier|pharmacist|dentist"
    r"|veterinarian|vet|psychologist|\w{3,12}therapist|therapist|counsell?or|\w{2,14}ologist|\w{3,14}grapher|scientist"
    r"|researcher|physicist|chemist|mathematician|economist|analyst|consultant|manager|director|producer|banker|broker"
    r"|realtor|librarian|professor|lecturer|tutor|translator|interpreter|student|technician|administrator|admin|secretary"
    r"|cashier|salesperson|salesman|saleswoman|sales rep|entrepreneur|founder|freelancer|actor|actress|dancer|singer"
    r"|personal trainer|surgeon|social worker|midwife|caregiver|carer|butcher|tailor|welder|builder|gardener|florist"
    r"|hairdresser|barber|beautician|receptionist|pastor|priest|rabbi|imam|judge|sailor|fisherman|optician|radiographer"
    r"|postdoc|intern|trainee|apprentice|ceo|cto|cfo|data scientist|product owner|project lead|team lead|composer"
    r"|illustrator|animator|filmmaker|potter|blacksmith|goldsmith|stay[- ]at[- ]home (?:mom|mum|dad|parent)|homemaker"
    r"|housewife|civil servant|copywriter|recruiter|surveyor|statistician|physician|dietitian|nutritionist|yoga instructor"
    r"|instructor|flight attendant|conductor|courier|janitor|cleaner|security guard|bookkeeper|auditor|paralegal|roofer|plasterer|bricklayer|mason|joiner|cabinet ?maker|painter|decorator|glazier|locksmith|upholsterer|cobbler|jeweller?|watchmaker"
    r"|beekeeper|winemaker|brewer|distiller|cheesemaker|pastry chef|sous[- ]chef|sommelier|caterer|chocolatier|confectioner|fishmonger|greengrocer"
    r"|shepherd|rancher|forester|arborist|landscaper|zookeeper|groom|farrier|jockey|dog walker|dog groomer|vet nurse|veterinary nurse"
    r"|postman|postwoman|mail carrier|bus driver|taxi driver|truck driver|lorry driver|train driver|conductor|dispatcher|stevedore|docker|skipper|captain"
    r"|cabin crew|steward|stewardess|air traffic controller|astronaut|astronomer|geographer|historian|linguist|philosopher|theologian|curator|archivist"
    r"|conservator|restorer|auctioneer|sculptor|ceramicist|weaver|seamstress|dressmaker|stylist|makeup artist|tattooist|tattoo artist|nail technician"
    r"|masseur|masseuse|physio|osteopath|chiropractor|acupuncturist|doula|nanny|au pair|childminder|babysitter|housekeeper|concierge|porter|bellhop|butler"
    r"|headteacher|head teacher|principal|teaching assistant|kindergarten teacher|school counsell?or|invigilator|phd|doctoral candidate|undergrad(?:uate)?|grad student"
    r"|undergraduate|freshman|sophomore|trader|actuary|underwriter|claims adjuster|tax adviser|tax advisor|financial advis[eo]r|notary|bailiff|magistrate|barrister"
    r"|detective|policeman|policewoman|cop|prison officer|customs officer|border guard|firefighter|fireman|lifeguard|coastguard|marine|officer|sergeant|veteran"
    r"|politician|councill?or|mayor|diplomat|ambassador|lobbyist|campaigner|organi[sz]er|fundraiser|missionary|monk|nun|chaplain|vicar|reporter|columnist|blogger|vlogger|youtuber|streamer|podcaster|influencer"
    r"|publisher|proofreader|screenwriter|playwright|poet|novelist|comedian|magician|juggler|acrobat|ballerina|choreographer|pianist|violinist|cellist|guitarist|drummer|bassist|organist|dj|sound engineer|cameraman|camerawoman"
    r"|coder|dev|sysadmin|devops engineer|web designer|game designer|ux researcher|scrum master|agile coach|product manager|tester|qa|webmaster|hacker|pentester"
    r"|marketer|strategist|buyer|merchandiser|salesclerk|shop assistant|sales assistant|store clerk|clerk|call cent(?:er|re) agent|telemarketer|estate agent|letting agent|travel agent|tour guide|event planner|wedding planner|coordinator"
    r"|supervisor|foreman|team leader|shift leader|operator|machinist|fitter|toolmaker|miner|driller|oil worker|steelworker|factory worker|warehouse worker|forklift driver|packer|picker|mover|handyman|caretaker|dustman|window cleaner|chimney sweep"
    r"|support worker|care worker|care assistant|healthcare assistant|carer|hospice nurse|orderly|phlebotomist|anaesthetist|anesthesiologist|paediatrician|pediatrician|gp|dermatologist|orthodontist|hygienist|dental nurse|optometrist|audiologist|dietician"
    r"|personal assistant|executive assistant|office manager|typist|headhunter|hr manager|trainer|coach|referee|umpire|athlete|footballer|boxer|skier|climber|mountain guide|ski instructor|diving instructor|driving instructor|fitness instructor|swimming teacher"
    r"|quantity surveyor|town planner|urban planner|draughtsman|drafter|geodesist|meteorologist|volcanologist|botanist|agronomist|ecologist|entomologist|ornithologist|oceanographer|pathologist|epidemiologist|biostatistician|data analyst|data engineer"
    r"|full-time (?:mom|mum|dad|parent)|house husband|stay-at-home (?:mother|father)|pensioner|retiree|business owner|shop owner|small business owner|landlord|landlady|partner at|director|vp|cfo|coo|ciso|board member|trustee)(?![\w-])"
)
WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
MONTH = (
    r"(?:january|february|(?-i:March|May)|(?<=\bin )(?:march|may)\b|(?<=\d )(?:march|may)\b|april|june|july|august|september|october"
    r"|november|december)"
)
# A time. Every statement about an event must contain a time.
TIME = (
    rf"(?:\b(?:today|tonight|tomorrow|yesterday|(?:this|next|last) (?:week|weekend|month|year|spring|summer|autumn|fall"
    rf"|winter|{WEEKDAY}|{MONTH})|(?:on|this) {WEEKDAY}|(?:in|on|by|until|from|since|of|early|late|mid) {MONTH}|{MONTH}"
    rf" \d{{1,4}}|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}|(?:in|since|by) (?:19|20)\d\d|the \d{{1,2}}(?:st|nd|rd|th)|"
    rf"in (?:the |early |late )?(?:spring|summer|autumn|fall|winter)|in (?:\d{{1,2}}|an?|two|three|four|five|six|a few|a"
    rf" couple of) (?:days?|weeks?|months?|years?)|(?:\d{{1,2}}|an?|two|three|four|five|six|ten|a few|a couple of)"
    rf" (?:days?|weeks?|months?|years?) ago|at \d{{1,2}}(?::\d\d| ?[ap]m)|\d{{4}}-\d\d-\d\d)\b)"
)
LANGUAGE = (
    r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Czech|Danish|Swedish|Norwegian"
    r"|Finnish|Greek|Turkish|Arabic|Hebrew|Hindi|Urdu|Bengali|Punjabi|Tamil|Mandarin|Cantonese|Chinese|Japanese|Korean"
    r"|Vietnamese|Thai|Indonesian|Malay|Swahili|Hungarian|Romanian|Bulgarian|Croatian|Serbian|Catalan|Basque|Welsh|Irish"
    r"|Latin|Persian|Farsi|Esperanto|Icelandic|Flemish|Afrikaans|Tagalog)"
)
CODE = (
    r"(?-i:Python|JavaScript|TypeScript|Java|Rust|Go|Golang|C|C\+\+|C#|Ruby|PHP|Kotlin|Swift|Scala|Haskell|Elixir|Erlang"
    r"|python|javascript|typescript|java|kotlin|scala|haskell|php|sql|html|css|react|vue|angular|django|flask|golang|rust|ruby|matlab|latex"
    r"|docker|kubernetes|linux|excel|c\+\+|c#|wordpress|photoshop|blender|figma"
    r"|Clojure|Perl|Lua|R|Julia|SQL|COBOL|Fortran|OCaml|F#|Dart|Zig|Nim|Lisp|Scheme|MATLAB|Bash|Groovy|Prolog|Ada|HTML5?|CSS|React|Vue|Svelte|Angular|Django|Flask|FastAPI|Rails|Laravel|Node(?:\.js)?|Next\.js|LaTeX|Excel|VBA|Pandas|NumPy|PyTorch|Docker|Kubernetes|Terraform|Ansible"
    r"|Linux|Git|Photoshop|Blender|Unity|Godot|WordPress|Figma|AutoCAD|Power BI|Tableau|Postgres\w*|MySQL|SQLite|MongoDB|Redis|AWS|Azure|GCP|Spark|Kafka|GraphQL|Solidity|Assembly|Delphi|Pascal|VB\.NET|\.NET|Spring|Objective-C)(?![\w+#])"
)
# Words that look like a name but are not, as in "I'm French, a nurse", and tools that look like a place, as in "moved to
# Rust".
NO_PEOPLE = (
    r"(?!(?:\w+ )?(?:\w*(?:ican|ish|ese|ian|ist)|french|dutch|greek|german|swiss|thai|arab|czech|muslim|catholic|hindu"
    r"|black|white|type|ok|okay|sure|sorry|done|fine|good|back|ready|here|not|so|in|on|at|very|just|really|late|sick|tired"
    r"|happy|glad|busy|lost|stuck|new|team|gemini|aries|leo|virgo|libra|pisces|taurus|cancer|iron|captain|lord|king)\b)"
)
NO_TOOL = (
    r"(?!(?:python|java\w*|typescript|rust|golang|go|kotlin|swift|scala|ruby|php|react|vue|angular|svelte|flask|django"
    r"|fastapi|node|next|postgres\w*|mysql|sqlite|mongo\w*|redis|aws|azure|gcp|docker|kubernetes|linux|ubuntu|windows"
    r"|mac\w*|android|ios|github|gitlab|jira|notion|slack|vs|vim|neovim|cursor|claude|chatgpt|gpt\S*|openai|google|gmail"
    r"|step|part|phase|slide|page|question|task|stage|number|item|line|room|row|table|round|mode|excel|powerpoint|word|outlook|teams|figma|photoshop|microservices?|serverless|monorepo|graphql|rest|tailwind|terraform|agile|scrum|kanban|spring|laravel|rails|supabase|firebase|vercel|heroku|netlify|obsidian|emacs|nvim|arch|debian|fedora|nixos|bash|zsh|powershell|unity|unreal|godot|minecraft|safari|firefox|chrome|edge|zoom|discord|telegram|whatsapp|spotify(?! [a-z])|version|plan|v\d\S*|chapter|section|level|day|week|option)\b)"
)
