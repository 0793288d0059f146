"""Patterns for the context of statements: lead-ins, ends of clauses, and signs that a text is not a statement."""

import re

from memoryos_mcp.llm.extractive.patterns import french, german, italian, portuguese, spanish
from memoryos_mcp.text.terms import stem

LEAD_IN = re.compile(
    r"(?:(?:well|yeah|yep|yup|yes|(?:no|nope|nah|nein|nee|non|não)(?=[,.!;:–—])|oh|ooh|wow|hey|hi|hello|hiya|greetings|good (?:morning|evening|afternoon)"
    r"|so|and|also|but|actually|honestly|anyway|anyways|btw|by the way|one more thing|another thing|correction"
    r"|plus|personally|thanks(?: a lot| so much)?|thank you|sure|ok|okay|totally|absolutely|definitely|exactly|cool|nice"
    r"|great|sorry|haha|lol|for me|to be honest|tbh|recently|lately|these days|nowadays|currently|right now|good news"
    r"|big news|news|update|guess what|fyi|for the record|just so you know|just fyi|for context|some context|as you know"
    r"|now|a bit about me|about me|quick update|first of all|to start|in my (?:free|spare) time|since|because|['’]cause|cuz"
    r"|as|considering(?: that)?|given(?: that)?|although|though|even though|while|especially(?: since)?|you know|i mean"
    r"|as for me|me too|same here|(?:[\w'’]+ ){0,3}(?:context|background|intro|introduction|update|situation|relevant|knowing|know|fact|confession|info|details?"
    r"|setup|disclaimer|reference|reminder|profile|question|short|goal|bio|facts|me|tl;dr|ps|important|news)(?=:)"
    r"|the thing is|(?:as|like) i (?:said|mentioned)|as mentioned|i think i (?:told you|mentioned)(?: this| it)?(?: already| before)?|fun fact|heads up"
    r"|for reference|long story short|in short|not sure if (?:this|it|that) (?:matters|helps|is relevant)|i don['’]t know if (?:this|it|that) (?:matters|helps)"
    r"|hmm+|well then|anyhow|for what it['’]s worth|in fact|basically|tbf|imo|note(?=:)|note to self(?=:)|side note|ps|unfortunately|sadly|luckily|fortunately|finally|like|(?:please )?(?:remember|keep in mind|note"
    r"|bear in mind|don['’]t forget)(?: that|,|:)|you should know that|i should (?:say|mention|add)(?: that)?|it turns out(?: that)?"
    r"|turns out|as of (?:today|now)|in case it matters|hallo|guten (?:tag|morgen|abend)|moin|servus|übrigens|also|und|ja|na ja|naja|aber|weil|außerdem|leider|zur info|bonjour"
    r"|salut|bonsoir|coucou|au fait|d['’]ailleurs|en fait|malheureusement|mais|et|oui|moi,|hola|buenas(?: tardes| noches)?|buenos días|por cierto|pero|porque|así que|además|bueno|pues|la verdad|y|sí|ciao|salve|buongiorno"
    r"|buonasera|comunque|ma|perché|quindi|allora|inoltre|purtroppo|sì|olá|oi|bom dia|boa (?:tarde|noite)|aliás|mas|porque|além disso|então|infelizmente|e|sim)"
    r"(?:,? (?:everyone|all|there|guys|folks|zusammen|à tous|a todos|(?-i:[A-Z][a-z]+)(?=[,!])))?[,!.:;–—-]*\s+){1,5}",
    re.IGNORECASE,
)
GREETING = re.compile(
    r"\W*(?:hi|hello|hey|hiya|greetings|good (?:morning|evening|afternoon)|nice to meet you|hallo|guten (?:tag|morgen|abend)"
    r"|moin|servus|bonjour|salut|bonsoir|hola|buenas|buenos días|ciao|salve|buongiorno|buonasera|olá|oi|bom dia|boa tarde)\b",
    re.IGNORECASE,
)
# "I live in Rome, right?" is a question; "I live in Rome, what can I see?" is a statement followed by a question.
_TAG = (
    r"(?:right|correct|yes|no|ok|okay|huh|eh|true|or not|or what|you know|oder(?: nicht)?|nicht wahr|ne|gell|non|n['’]est-ce pas"
    r"|hein|verdad|cierto|vero|giusto|né|não é|certo"
    r"|(?:am|are|is|do|does|did|have|has|was|were|would|can|should)(?:n['’]?t)? (?:i|we|you|they|he|she|it)(?: not)?)"
)
_DOUBTS = (
    r"(?:trying|thinking|looking|wondering|considering|hoping|hope|wish|would|could|should|need|curious|worried|unsure"
    r"|not sure|struggling|confused|terrified|nervous|want (?:to (?:know|learn|understand|build)|some|your|a)|was wondering)"
)
_ORDERS = (
    r"(?:please|pls|plz|suggest|recommend|give|any|help|tell|show|find|explain|write|make|keep|go easy|don['’]t (?:suggest|recommend|give)"
    r"|leave|use|skip|avoid|schedule|can|could|what|how|where|which|who|when|why|is there|are there)"
)
_ASKS = (
    r"(?:¿|qué|cómo|cuál(?:es)?|dónde|cuándo|puedes|podrías|dame|me (?:das|dá|puedes|recomiendas)|o que|que (?:puis|faire)|qual|quais|como"
    r"|onde|quando|pode|você|cosa|che cosa|come|quale|quali|dove|puoi|hai|potresti|quoi|quel(?:le)?s?|comment|où|tu (?:peux|as|connais)"
    r"|peux-tu|pouvez|des (?:conseils|idées)|une idée|was|wie|wo|welche[rsn]?|wann|kannst|könntest|hast du|gibt|weißt|idee|tipps"
    r"|irgendwelche|ideas|sugerencias|sugestões|idee|consigli)"
)
_FIRST_PERSON_DE = r"(?:ich|meine?|wir|unsere?|bin|habe?|wohne|arbeite|lebe|spreche|mag)"
_FIRST_PERSON_FR = r"(?:je|j['’]\w+|mon|ma|mes|nous|on (?:a|habite|est|vit|va|vient|mange|adore|aime)|notre)"
_FIRST_PERSON_ES = r"(?:yo|vivo|trabajo|tengo|mi|mis|me (?:llamo|gusta\w*|encanta\w*|mud\w+|dedico|dice\w*|opera\w*|jubil\w*)|soy|estoy|estudio|hablo|nos|nuestr[oa])"
_FIRST_PERSON_IT = r"(?:io|vivo|abito|lavoro|ho|mi|sono|il mio|la mia|mio|mia|studio|parlo|abbiamo|non mi)"
_FIRST_PERSON_PT = r"(?:eu|moro|vivo|trabalho|tenho|sou|estou|meu|minha|gosto|falo|estudo|a minha|o meu|temos)"
_SAID_SO = r"(?! (?:said|says|told me|asked|replied|claims|claimed|wrote|shouted|thinks|thought)\W*(?:$|[,.;]))"
_AFTER_COMMA = (
    r"(?:and|but|because|since|considering|although|though|which|maybe|can|could|would|should|will|shall|am|do|does|did|is|are"
    r"|how|what|where|when|why|so|any|please|pls|you know|(?:help|suggest|recommend|tell|give|show|find|plan|remind|write|draft|need|looking for|any(?:one|thing)|tips|thoughts|ideas|advice)(?: me| us| an?| some| the| my)?|i|i['’]\w+|im|ive|my|we|we['’]\w+|our|it|it['’]s|that|that['’]s|this"
    rf"|let['’]s|just|if|hobbies|there|(?:he|she|they)\b{_SAID_SO}|(?!{_TAG}\W*$)[^,?]{{1,120}}\?\W*$|{_ASKS}"
    rf"|{_FIRST_PERSON_DE}|aber|weil|also|daher|deshalb|idee|bitte|{_FIRST_PERSON_FR}|mais|donc|alors|peux"
    rf"|{_FIRST_PERSON_ES}|pero|así que|{_FIRST_PERSON_IT}|{_FIRST_PERSON_PT}|ma|quindi|perché|mas|então|porque|por isso)(?!\w)"
)
_AFTER_SPACE = (
    r"(?:(?:and|but|so|because|cuz|since|considering|although|though|even though|given that|which|while|especially since|as)"
    r" (?:now |since |because )?(?:i|i['’]\w+|im|ive|my|we|we['’]\w+|our|it|they|can|could|how|what)"
    rf"|(?:and|but|so) (?:(?:\w+ )?{_DOUBTS}|{_ORDERS})"
    rf"|(?:was|wo|welche[rsn]?|kannst|könntest|hast du|gibt es) [^,]{{1,120}}\?\W*$"
    rf"|(?:und|aber|weil|denn) (?:{_FIRST_PERSON_DE}|wie|kannst|was)|(?:et|mais|car|donc) {_FIRST_PERSON_FR}|parce que|depuis que"
    rf"|(?:y|pero|porque|así que) (?:no )?{_FIRST_PERSON_ES}"
    rf"|(?:e|ma|perché|quindi|mas|porque|então) (?:non |não )?(?:{_FIRST_PERSON_IT}|{_FIRST_PERSON_PT}))(?!\w)"
)
_DOUBTS_OWN = r"(?:i['’]?m|we['’]?re|i am|we are) (?:thinking|wondering|considering|looking|hoping|worried|not sure)\b"
CLAUSE_END = re.compile(
    r"(?=[\s,;—….，\U0001f300-\U0001faff\u2600-\u27bf-])(?:"
    rf",?\s+(?={_AFTER_SPACE})|,\s+(?={_AFTER_COMMA})|\s+(?=¿|{_DOUBTS_OWN})"
    r"|\s{0,3}(?:;|\s[-–—]{1,3}\s|—|…|\.\.\.)\s{0,3}|\s{0,3}[\U0001f300-\U0001f643\U0001f645-\U0001faff\u2600-\u27bf]{1,5}\ufe0f?\s{1,3}(?=\w)|，(?=我|但|所以|你|请|能|可以|想))",
    re.IGNORECASE,
)
# In "my wife and I" and "with my wife and our son", no clause ends before "and".
BEGINS_PAIR = re.compile(
    r"^\W*(?:(?:and|but|so|also|hi|hey|hello|und|aber|y|e|et),? )?(?:me|(?:my|our|meine?|unsere?|mi|mia|mio|minha|meu|mon|ma) [\w'’-]+(?: (?-i:[A-ZÀ-Ý])[\w'’-]+| in law)?)$",
    re.IGNORECASE,
)
ENDS_PAIR = re.compile(r"(?:and i|und ich|y yo|et moi|e io|e eu)\b", re.IGNORECASE)
ENDS_ON_PEOPLE = re.compile(
    r"\b(?:with|and|mit|con|com|avec) (?:my|our|meine[mrn]?|unsere[mrn]?|mi|mis|mia|mio|minha|meu|mon|ma|mes|notre) (?:[\w-]+ ){0,2}[\w'’-]+$",
    re.IGNORECASE,
)
MORE_PEOPLE = re.compile(
    r"(?:and|und|y|e|et) (?:my|our|meine[mrn]?|unsere[mrn]?|mi|mis|mia|mio|minha|meu|mon|ma|mes|notre|nos) (?:(?:\w+ )?(?:kids|children|dogs?|cats?|sons?|daughters?|baby|twins|hijos|hijas|hijo|hija|perro|gato|gatos"
    r"|kinder[nr]?|sohn|tochter|hund|katzen?|figli|figlia|figlio|cane|gatti|filhos?|filhas?|enfants|fils|fille|chien|chat)(?: (?-i:[A-ZÀ-Ý])\w+)?)(?: (?:in|at|near|en|a|em|à) .*)?\W*$",
    re.IGNORECASE,
)
# Two statements that share their subject.
SHARED_SUBJECT = re.compile(
    r",? (?:and|but) (?=(?:live|work|study|have|play|speak|own|drive|love|hate|am)\b(?! (?:to|been|in mind)\b))"
    r"| und (?=(?:wohne|lebe|arbeite|komme|habe|bin|mag|esse|trinke)\b)",
    re.IGNORECASE,
)
# Further facts in statements about a name or a job: "I'm Tom, 41", "I'm a nurse in Leeds".
AGE_BESIDE_NAME = re.compile(
    r"(?:i['’]?m|i am|my name is|my name['’]s) (?-i:[A-ZÀ-Ý])[\w'’ -]+, (?P<value>[1-9]\d)(?: years? old)?(?=\W*$|, | and )",
    re.IGNORECASE,
)
PLACE_OF_WORK = re.compile(
    r"^(?:I|i|I['’]m|i['’]m|We|we)\b(?!.*\b(?:student|studying|degree|phd|retired)\b).* in (?P<value>(?-i:[A-ZÀ-Ý])[\w'’-]*(?: (?:[a-z]{2,3} )?(?-i:[A-ZÀ-Ý])[\w'’-]+){0,2})"
    r"(?=\W*$|,| and | for | since | with )",
)
NEXT_WISH = re.compile(
    r",? (?:and|but|so) (?=(?:please |kindly )?(?:always|never|don['’]t|from now on|keep|stop|call me)\b|(?:please )?explain [^,.;]{2,40}, always)"
    r"|(?<=\w): (?=(?:please |always |never |no |keep ))",
    re.IGNORECASE,
)
HYPOTHETICAL = re.compile(
    r"^\W*(?:and |but |so |or )?(?:(?:if|imagine|suppose|supposing|pretend|assum(?:e|ing)|let['’]s say|hypothetically"
    r"|theoretically|in theory|for the sake of argument|say|what if|unless|whenever|when|once|until|in case(?! (?:it|that|this) (?:matters|helps))|(?:oh |yeah,? )?sure,? (?:and|i['’]m the)|yeah,? right|as if"
    r"|wenn|falls|angenommen|mal angenommen|(?:ja|na),? klar,? und|(?:mais|oui|bien) (?:oui|sûr|bien sûr),? et|sì,? certo,? e|sí,? claro,? y|(?:sim,? )?claro,? e|sagen wir|si|se|supongamos|supponiamo|suponha|supposons|mettons|quand|cuando|quando|если)\b"
    r"|如果|假如|要是|もし|만약)",
    re.IGNORECASE,
)
# Words that show that a text is not a statement but a question, a wish, a doubt or a report of what others said.
TAINT = re.compile(
    r"[?？؟]|\b(?:if(?! (?:(?:that|it|this) (?:matters|helps|is relevant|counts)|relevant|you (?:must|wondered?))\b)|unless|wish|guess|wonder|wondering|suppose|supposed to|supposedly|apparently|imagine|maybe|perhaps|probably"
    r"|possibly|someday|one day|might|would|could|should|i['’]d|can you|please|help me|need help|i need|not sure|trying to|having"
    r"|trouble|let me|let['’]s|i think|i thought|i believe|i hope|hopefully|hoping|says|said|told"
    r"|asked|asking|claims|suggested|suggests|recommended|recommends|advised|e\.g|for example|hypothetically|in theory|as if|kidding|joking|not really|yeah right|just like that|pretend|worried|curious"
    r"|considering|thinking (?:of|about)|depends|depending|tempted|almost|nearly (?:got|bought)|in case|in (?:my|the|a) (?:dreams?|game|novel|story|head|film|movie)|dreamt|dreamed|lyrics|(?-i:may))\b"
    r"|\b(?:how|what|where|why|which) (?:\w+ )?(?:do|does|can|should|is|are) (?:i|we|my|the|it)\b"
    r"|\bi (?:just )?want to (?:make sure|start|begin|focus|understand|improve|know|ensure|learn (?:about|how|more))\b"
    r"|/s\b|🙄|如果|假如|要是|也许|可能|吗|もし|かも|만약"
    r"|\b(?:wenn|falls|würde|würdest|hätte|wäre|könnte|möchte|vielleicht|wahrscheinlich|glaube|peut-être|je pense|je crois|creo que|penso che|credo che|acho que|si (?:je|tu|on)|aimerais|voudrais|quizás?|tal vez|ojalá|me gustaría|quisiera|gustaría"
    r"|forse|se (?:fossi|avessi|potessi)|vorrei|talvez|se eu|gostaria|если|бы|может быть|kannst du|können sie|sagte?|dit|dice|dijo|ha detto|dissi|disse|sagen|behauptet|meint|meinte|prétend|afferma|penso di|overo)\b",
    re.IGNORECASE,
)
# Words that show that a sentence is addressed to the assistant, and is therefore not about the user.
SPEAKS_TO = re.compile(r"\b(?:you|your|yours|you['’]\w+|ya)\b", re.IGNORECASE)
# Two statements, each with its own subject.
SEVERAL = re.compile(
    r"(?:,|,? and|,? but) (?:i|i['’]m|i['’]ve|my|we|we['’]re|our) (?:\w+ )?\w"
    rf"|(?:,| und| aber) {_FIRST_PERSON_DE} \w|(?:,| et| mais) {_FIRST_PERSON_FR} ?\w|(?:,| y| pero) {_FIRST_PERSON_ES} \w"
    rf"|(?:,| e| ma| mas) (?:{_FIRST_PERSON_IT}|{_FIRST_PERSON_PT}) \w",
    re.IGNORECASE,
)
# "Nadia, my neighbour, is a vet" has one subject.
APPOSITION = re.compile(r"(?-i:[A-ZÀ-Ý])[\w-]+, (?:my|our) |(?:my|our) (?:\w+ ){1,2}and i ", re.IGNORECASE)
# Words such as "tomorrow" show that a text is not about a durable like or habit.
PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening|time|one|weekend|week"
    r"|code|function|error|issue|project|approach|bug|file|script|task|essay|section|chapter|problem)"
    r"|right now|at the moment|so far)\b",
    re.IGNORECASE,
)
_TALK = (
    r"(?:file|function|class|method|module|repo|repository|project|codebase|code|script|example|exercise|task|idea|thread|chat"
    r"|conversation|document|doc|table|spreadsheet|formula|sheet|game|story|scene|novel|chapter|essay|question|problem|case"
    r"|context|scenario|version|approach|test|query|dataset|model|plan|design|draft|paragraph|sentence|section|page|slide"
    r"|step|point|part|variable|loop|line|column|row|api|app|feature|bug|error|recipe|quiz|puzzle|poem|email|message|answer|option)"
)
_DET = r"(?:die|der|den|das|dem|deine?[nrsm]?|la|le|les|el|los|las|il|lo|gli|i|o|a|os|as|d[aeo]s?|n[ao]s?|del|della|dello|dell['’]|du|des|al|alla|zu[mr]|d?ess[ae]|d?est[ae]|cette|ce|ta|ton|tes|tu|tus|tua|tuo|sua|seu|esta|este|questa|questo|essa|esse)"
OF_THE_TALK = re.compile(
    r"\bthe (?:code|function|error|script|query|file|above|following|example|suggestion|idea|advice|tips|format|look|api|app"
    r"|bug|feature|dataset|repo|repository|deployment|endpoint|problem|solution|steps|concept|formula|proof|theorem) ?\b"
    rf"|\b(?:in|for|to|on|with|of|at|about) (?:this|these) (?:\w+ )?{_TALK}s?\b"
    r"|\b(?:just for (?:this|today)|this (?:one|way)|in (?:the|this|a|my) (?:game|film|movie|simulation|sims|play|scenario|role))\b"
    r"|\b(?:option|version|variant|choice|answer|design|draft|title) (?:[a-d]|\d|one|two|three)\b"
    rf"|\b{_DET} (?:\w+ )?(?:variante|variant|version|versión|versione|versão|option|opción|opzione|opção|antwort|lösung|vorschlag|idee|code"
    r"|text|ansatz|formulierung|entwurf|réponse|proposition|idée|texte|respuesta|propuesta|idea|texto|código|solución|risposta|proposta"
    r"|testo|soluzione|codice|resposta|ideia|solução|sugestão|sugerencia|función|fonction|funzione|função|datei|fichier|archivo|arquivo)n?\b"
    rf"|\b{_DET} (?:erste|zweite|dritte|letzte|première|deuxième|seconde|troisième|dernière|premier|dernier|primer[oa]?|segund[oa]|tercer[oa]"
    r"|últim[oa]|prim[oa]|second[oa]|terz[oa]|primeir[oa]|terceir[oa])n?(?: (?:lieber|mieux|más|mejor|di più|mais|melhor))?\W*$",
    re.IGNORECASE,
)
# A wish for only one answer or one text.
FOR_ONCE = re.compile(
    rf"\b(?:in|for|on|with|to|of|about) (?:this|that|the (?:following|above|next|previous)) (?:\w+ )?{_TALK}s?\b"
    r"|\b(?:here|just this once|this time|for now|for today)\b(?! (?:in|at)\b)"
    r"|\b(?:in|para|per|für|dans|pour|em|en) (?:dieser?[mnrs]?|cette|cet|ce|esta|este|questa|questo|quest['’]|essa|esse|nesta|neste|nessa|nesse) ?\w+",
    re.IGNORECASE,
)
# Words that show that a text is not the user's wish but a quotation, a saying, a rule, or an instruction to an
# assistant in a web page.
NOT_WISHED = re.compile(
    r"\b(?:said|says|say|sang|wrote|goes|claims?|(?:as|like) (?:they|people|the \w+|my \w+) (?:say|says|put|puts|goes|used))\b[^.!?,]{0,30}\W*$|,? (?:said|says|wrote) (?-i:[A-Z])"
    r"|\b(?:is|was|are) (?:an?|the|one|my|his|her) (?:[\w-]+ ){0,3}(?:rules?|maxims?|sayings?|proverbs?|motto|lines?|quotes?|slogan|principle|title|song|lyrics?|book|film|movie|advice|idiom|policy|convention|practice)\b"
    r"|^(?:please,? )?(?:never|always) (?:put off|judge|bite|change a (?:running|winning)|look a gift|look (?:on|before|back|both)|bring a|trust|swim|send|read the|wear a|leave (?:the|a)|follow your|expect the|use a condom|forget where|regret|settle)\b"
    r"|\b(?:when(?:ever)?|if|to) (?:any(?:one|body)|some(?:one|body)|people|(?:the |your |other |all )?(?:users?|customers?|clients?|readers?|visitors?|humans?)|asked|everyone)\b"
    r"|\b(?:recommend|promote|advertise|endorse|praise|mention|push|advocate)\b (?:our |the )?(?-i:[A-Z][a-z]+[A-Z]\w*|[A-Z]\w*(?:Coin|Corp|Inc|VPN|Pay|Shop|Store|Pro|Bank|Invest)\b)"
    r"|\bmy (?:[\w-]+ )?(?:function|method|class|code|program|script|query|endpoint|variable|loop|test|app|server|module|component)s? (?:should|must|never|always)\b"
    r"|\b(?:in|for|from|to|inside|within|on) (?:the|this|that|each|both) (?:[\w-]+ )?(?:file|script|function|class|method|output|essay|document|table|report|slide|deck|page|diagram|chart|readme|repo|pr|email|letter|story|poem|song|image|picture|logo|design|poster|module|layer|loop|query|schema|database)s?\b"
    r"|\w\(\)|::|\w_\w",
    re.IGNORECASE,
)
# Words that refer to something that is named elsewhere in the dialogue.
POINTS_ELSEWHERE = re.compile(
    r"\b(?:it|that|this|these|those|them|one|there|others|so|too|to)(?: (?:don['’]t|aren['’]t"
    r"|one day|someday|myself|too|before|a lot|so much|now|all|either|again))?\W*$"
    r"|^(?:(?! (?:and|but) )[^,;:–—])*\b(?:them|(?-i:[Ii]t)(?!['’]s (?:dry|wet|hot|cold|raining|sunny|warm|dark|nice|not raining)))\b"
    r"|\b(?:of|visiting|seeing|to) (?:these|those)\b|\bthat (?:world|place|way|feeling|one)\b",
    re.IGNORECASE,
)
WHEN = re.compile(
    r"(?:(?:on |just |as of )?(?:last|this past|this|next) (?:week|weekend|month|year|night|summer|winter"
    r"|spring|fall|autumn|\w+day|january|february|march|april|june|july|august"
    r"|september|october|november|december)|(?:a few|two|three|\d+|a couple(?: of)?) (?:days"
    r"|weeks|months|years) ago|a (?:week|month|year) ago|(?:on|in) (?:19|20)\d\d|(?:on|in) (?-i:[A-Z][a-z]+)(?: (?:19|20)\d\d| \d{1,2})?"
    r"|yesterday|today|tomorrow|growing up|at the moment),?\s+"
    rf"|(?:(?:{german.FRONT}|{french.FRONT}|{spanish.FRONT}|{italian.FRONT}|{portuguese.FRONT}),?\s+){{1,2}}",
    re.IGNORECASE,
)
# A sentence that shows that the previous one is a quotation: "is the opening line of" after "Call me Ishmael."
ABOUT_A_LINE = re.compile(r"(?:is|was|are|means?|comes? from|appears?|translates?) \w")
_ASKED = r"(?:^\W*|[.!?:,;]\s{1,3}|\b(?:please|pls),? |\b(?:can|could|would|will) (?:you|u)(?: please| pls)? |\bhelp me (?:to )?|\b(?:to|and|then|so) )"
_OWN_PAPERS = (
    r"(?:\W+(?:up )?(?:an?|my|our|the|me an?|me my) (?:[\w-]+ ){0,3}(?:cv|r[ée]sum[ée]|cover letter|website|portfolio|photos?|videos?|podcast"
    r"|e-?mail|letter|message|text|reply|complaint|note|plan|budget|schedule|routine|application|pitch|post|ad|listing|invitation|speech|toast)\b(?! i\b))"
)
# The user requests a text. Statements before the request, and in the description of the text, are about the user.
ASKS_TEXT = re.compile(
    rf"{_ASKED}(?:draft|ghostwrite|edit|polish|reword|rewrite|improve|update|shorten){_OWN_PAPERS}(?! (?:for|from) (?:an?|my|our|the|his|her)\b)"
    rf"|{_ASKED}(?:write|compose|make|create|generate|give me|draft|i need) (?:me )?(?:an?|the|some|my|our|\d) [^.!?]{{0,60}}"
    r"\b(?:letter|e-?mail|speech|cover letter|post|caption|message|text|reply|complaint|toast|invitation)\b",
    re.IGNORECASE,
)
# The requested text is for somebody else or is fiction, so the description of the text says nothing about the user.
FOR_OTHERS = re.compile(
    r"\b(?:for|from|by|as|like|about|of) (?:an?|my|our|the|his|her|somebody|someone|(?-i:[A-Z]))\b|[:\n]|\b(?:character|narrator|he|she|they|his|her)\b",
    re.IGNORECASE,
)
# The user requests fiction or a change to a text. The text after the request is not a statement of the user.
SHOWS_WHAT_FOLLOWS = re.compile(
    rf"{_ASKED}(?:translate|rewrite|proofread|paraphrase|summari[sz]e|rephrase|edit|correct|polish|reword|draft|ghostwrite)\b"
    rf"|{_ASKED}(?:write|compose|make|create|generate|give me|tell(?: me)?|make up|invent) (?:me )?(?:an?|the|some|\d) [^.!?]{{0,60}}"
    r"\b(?:profile|story|poem|song|lyrics|haiku|limerick|dialogue|script|bio|monologue|diary|scene|sketch|rap|ballad|sonnet|verse|fairy ?tale|blurb|tweet|testimonial|persona)\b"
    rf"|\\b(?:something like|along the lines of|it (?:should|could|must) say|(?:starting|beginning) with|as follows|goes like)\\b",
    re.IGNORECASE,
)
# The user pastes a text or plays a role; nothing in the message is about the user.
SHOWS_TEXT = re.compile(
    rf"{_ASKED}(?:translate|rewrite|proofread|paraphrase|summari[sz]e|rephrase|edit|correct|polish|reword|improve|check)(?: up)?"
    r" (?:(?:all|each|any|some|both) (?:of )?)?(?:this|that|it|these|those|them|the (?:above|following|text|paragraph|sentence|email|letter|essay|message|passage|post)|what i wrote)\b"
    r"|\brole-?play|\bpretend|\bimagine (?:that |you|i)|\bact (?:as|like) (?:an?|my|the|if)\b|\bin the voice of\b|\bin character\b"
    r"|\blet['’]s play\b|\byou are (?:now )?an? (?:pirate|king|queen|wizard|character|detective|robot|knight)\b|\bfictional\b"
    r"|\bmy character\b|\bsong (?:goes|lyrics)|\blyrics\b"
    r"|\b(?:we are|we['’]re) (?:hiring|looking for an?|seeking an?)\b|\b(?:job description|responsibilities|requirements|qualifications):"
    r"|\b(?:übersetze|stell dir vor|tu so|traduis|imagine que|fais comme si|traduce|imagina que|finge|traduci|immagina|fai finta|traduza|imagine que|finja)\b"
    r"|(?:^|[.!?:]\s{1,3}|\b(?:bitte|per favore|por favor|s['’]il te plaît),? )(?:schreibe?|verfasse?|formuliere?|entwirf|erstelle?|écris|écrivez|rédige[rz]?|escribe|escríbeme|redacta|scrivi|scrivimi|redigi|escreva|escreve|redija|crie|crea|génère|genera) [^.!?]{0,60}"
    r"(?:mail|courriel|correo|brief|lettre|carta|lettera|gedicht|poème|poema|poesia|geschichte|histoire|historia|história|storia|bewerbung|candidature|anzeige|annonce|anuncio|annuncio|anúncio|rede|discours|discurso|discorso|dialog\w*|lied|chanson|canción|canzone|canção|post|biographie|biografía|biografia|nachricht|mensaje|messaggio|mensagem|texte?|texto|testo)\b"
    r"|\b(?:korrigiere|verbessere|fasse (?:das |den |diesen )?\w* ?zusammen|umformulieren|formuliere um|corrige[rz]?|reformule[rz]?|résume[rz]?|resume|reformula|corrija|correggi|riformula|riassumi|reescribe|reescreva|resuma)\b(?=[^.!?]{0,40}:)"
    r"|перевед|翻译|改写|翻訳|번역",
    re.IGNORECASE,
)
# A name or title in quotation marks, as in 'a dog called "Rex"'. It is not a quotation.
QUOTED_NAME = re.compile(
    r"(?<=[\w,] )[\"“„«](?!(?:[^\"”“»]*\W)?(?:i|i['’]\w+|we|my|you|ich|du|mein|je|tu|yo|mi|io|eu)\b)[\s\xa0]?"
    r"([^\"”“»?!,;:]{1,40}?)[.,]?[\s\xa0]?[\"”“»]",
    re.IGNORECASE,
)
# The end of a clause that is complete without the quotation after it.
OPEN_END = re.compile(r"[,;:.!]\s*$")
QUOTE_MARKS = re.compile("[\"“„«「『]|(?<!\\w)['‘](?=\\w[^'’]{3,}['’](?:\\W|$))")
PASTED_FROM = re.compile(r"[:：]\s*$")
LETTER = re.compile(
    r"^(?:dear|to whom it may concern|sincerely|subject(?=:)|from(?=:)|sent(?=:)|cc(?=:)|best regards|kind regards|warm regards|yours"
    r"|sehr geehrte|liebe[r]? (?-i:[A-Z])|mit freundlichen|cher|chère|estimad[oa]|gentile|prezad[oa]|on .{5,60} wrote(?=:))\b",
    re.IGNORECASE | re.MULTILINE,
)
ENDS_END = re.compile(
    r"\s+(?:(?:yesterday|today|any ?more|again|after|last|this|next|ago|because|since|and|but|when)"
    r"|(?:to|in|on|at|from)(?! (?-i:[A-Z])))\b.*$",
    re.IGNORECASE,
)
ASKS_NICELY = re.compile(r"(?:please|kindly|from now on|call me|don['’]t ever)\b", re.IGNORECASE)
NO_WISH = re.compile(
    r"^(?!\W*(?:can|could|would|will) you (?:please )?(?:(?:always|never|from now on)\b|.*\b(?:from now on|every time|each time|always|in (?:the )?future|going forward|so (?:much|often)|all the time)\W*$)).*\?\s*$"
    r"|\bnever (?:say never|mind)\b|\balways be there\b",
    re.IGNORECASE,
)
VALUE_END = re.compile(
    r"\s+(?:and|but|with|because|since|where|so|now|these days|nowadays|right now|currently"
    r"|for|which|who|when|while|as|after|before|though|at the"
    r"|from|who['’]s|just|last|this|about|ago|years?|in (?:19|20)\d\d|back in|und|aber|mit"
    r"|et|mais|avec|y|pero|con|и|но|с)\b.*$",
    re.IGNORECASE,
)
OVER = re.compile(
    r"\b(?:ago|when i was|as a (?:kid|child)|back in|used to|in (?:19|20)\d\d|after (?:college|school)|once)\b",
    re.IGNORECASE,
)
# Stems with the same meaning in statements about likes.
SAME_STEM = {stem(word): stem("like") for word in ("love", "enjoy", "adore")}
# Slots of people who are not family members.
NOT_FAMILY = {
    f"family:{who}": who
    for who in ("boss", "chef", "chefin", "cheffe", "jefe", "jefa", "best friend", "bester freund", "beste freundin")
}
SAME_NAME = {
    "color": "colour",
    "movie": "film",
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "kid": "child",
    "grandma": "grandmother",
    "grandpa": "grandfather",
}
