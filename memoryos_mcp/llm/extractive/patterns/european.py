"""What statements and wishes begin with in German, French, Spanish, Italian and Portuguese: the core, a table each."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE

Row = tuple[str | None, str]

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"

_DE_ONE = r"(?P<who>mutter|mama|vater|papa|mann|frau|ehemann|ehefrau|partner|partnerin|freund|freundin|verlobter?|chefin|chef)"
_DE_SOME = r"(?P<who>schwester|bruder|sohn|tochter|oma|opa|großmutter|großvater|tante|onkel|cousine?|nichte|neffe|schwager|schwägerin)"
_DE_PET = r"(?:hund|hündin|katze|kater|pferd|kaninchen|hamster|vogel|papagei|meerschweinchen)"
_DE_NEVER = r"(?!(?:es|das|dich|sie|ihn|diese[rsmn]?|wie|wenn|dass|deine?n?|euch|nicht)\b)"
GERMAN: tuple[Row, ...] = (
    ("name", rf"(?:ich heiße|ich heisse|mein name ist|ich werde) {_NAME}(?! genannt \w)"),
    ("name", rf"ich bin (?:der |die )?{_NAME}(?=,? (?:und )?(?:ich|arbeite|wohne|komme)\b|, \d\d\b)"),
    ("age", r"ich bin (?P<value>\d\d)(?: jahre alt|(?=[,.!]| und\b|$))"),
    ("birthday", r"(?:mein geburtstag ist|ich habe|ich bin) (?:am )?(?P<value>\d{1,2}\. ?(?:\w+|\d{1,2}\.))(?: \d{4})?(?: geburtstag| geboren)?"),
    ("lives", rf"(?:ich|wir) (?:wohnen?|leben?) (?:jetzt |derzeit |zurzeit |mittlerweile |inzwischen |seit [\w ]{{1,12}} )?in (?!(?:einem|einer|der|dem)\b){_PLACE}"),
    ("lives", rf"(?:ich bin|wir sind) (?:[\w]+ ){{0,2}}nach (?P<value>{ONE_NAME}) (?:um)?gezogen"),
    ("from", rf"ich (?:komme|stamme) (?:ursprünglich )?aus (?:der |dem )?{_PLACE}"),
    ("from", rf"ich bin in {_NAME} (?:geboren|aufgewachsen)"),
    ("work", rf"ich arbeite (?:jetzt |derzeit |seit \w+(?: \w+)? )?als {VALUE}"),
    ("work", r"ich bin (?:von beruf )?(?:eine? )?(?P<value>(?-i:[A-ZÄÖÜ])[\w-]*(?:lehrer|arzt|ärztin|pfleger|ingenieur|entwickler|anwalt|anwältin|koch|köchin|bäcker|techniker|berater|student|therapeut|leiter|forscher|designer|musiker|schreiner|elektriker|verkäufer|kaufmann|kauffrau|schwester|rentner|richter|polizist|journalist|architekt|psychologe|psychologin)(?:in)?)\b"),
    ("employer", rf"ich arbeite (?:jetzt |derzeit )?(?:bei|für) (?:der |dem )?{_PLACE}"),
    ("family:{who}", rf"meine? {_DE_ONE}(?: heißt| heisst|,)? {_NAME}"),
    ("family:{who}:{value}", rf"meine? (?:kleine |große |älteste |ältere |jüngere |jüngste )?(?:\w+r )?{_DE_SOME}(?: heißt| heisst|,)? {_NAME}"),
    ("pet:{value}", rf"(?:meine?|unsere?) {_DE_PET}(?: heißt| heisst|,)? {_NAME}"),
    (None, rf"(?:ich habe|wir haben) (?:eine?n?|zwei|drei|vier) (?:\w+ )?(?:{_DE_PET}\w*|hunde|katzen|kinder|kind|sohn|söhne|tochter|töchter|bruder|brüder|schwestern?|geschwister|allergie|\w+allergie|\w+unverträglichkeit)\b"),
    (None, rf"ich (?:mag|liebe|hasse|bevorzuge) (?:sehr |besonders )?{_DE_NEVER}\w+"),
    (None, rf"ich (?:esse|trinke|vertrage) (?:\w+ )?kein(?:en|e|s)? \w+|ich (?:esse|trinke|spiele|spreche|fahre|koche|lese) (?:sehr )?(?:gerne?|ungern) {_DE_NEVER}\w+|ich spreche (?=(?-i:[A-Z]))\w+"),
    (None, r"ich bin (?:\w+ )?(?:allergisch (?:gegen|auf)|vegetarier(?:in)?|veganer(?:in)?|verheiratet|geschieden|ledig|verlobt|schwanger|laktoseintolerant|diabetiker(?:in)?|linkshänder(?:in)?)\b"),
    (None, r"mein(?:e|en)? lieblings\w+ (?:ist|sind) (?!(?:das|es)\b)\w+"),
    (None, rf"meine? (?:{_DE_ONE}|schwester|bruder|sohn|tochter|eltern|kinder|{_DE_PET}) (?:ist|sind|wohnt|lebt|arbeitet|liebt|mag|hat|spielt|wird) \w+"),
)  # fmt: skip

_FR_ONE = r"(?P<who>mère|maman|père|papa|mari|femme|épouse|époux|copine|copain|compagne|compagnon|fiancée?)"
_FR_SOME = (
    r"(?P<who>sœur|soeur|frère|fils|fille|grand-mère|grand-père|tante|oncle|cousine?|nièce|neveu|beau-frère|belle-sœur)"
)
_FR_PET = r"(?:chien|chienne|chat|chatte|cheval|lapin|hamster|perroquet)"
_FR_NEVER = r"(?!(?:ça|cela|bien|ton|ta|tes|votre|te|vous|quand|que|la façon|l['’]idée|pas)\b)"
FRENCH: tuple[Row, ...] = (
    ("name", rf"(?:je m['’]appelle|mon (?:pré)?nom est|mon prénom,? c['’]est) {_NAME}"),
    ("name", rf"(?:je suis|moi,? c['’]est) {_NAME}(?=,? (?:et )?(?:je|j['’]\w+)\b|, \d\d\b)"),
    ("age", r"j['’]ai (?P<value>\d\d) ans"),
    ("birthday", r"(?:mon anniversaire est|je suis née?) le (?P<value>\d{1,2}(?:er)? \w+)"),
    ("lives", rf"(?:j['’]habite|je vis|nous habitons|nous vivons|on habite) (?:maintenant |actuellement |désormais )?(?:à|en|au|aux|dans le) {_PLACE}"),
    ("lives", rf"(?:j['’]ai déménagé|nous avons déménagé|on a déménagé|je viens de déménager) (?:\w+ )?(?:à|en|au) {_PLACE}"),
    ("from", rf"(?:je viens|je suis originaire) (?:de |d['’]|du ){_PLACE}"),
    ("from", rf"je suis née? (?:à|en|au) {_PLACE}"),
    ("work", rf"je travaille (?:actuellement |maintenant )?(?:comme|en tant que?) (?:qu['’])?{VALUE}"),
    ("work", r"je suis (?:une? )?(?P<value>(?:infirmi|enseignant|institut|profess|médecin|ingénieur|développeu|avocat|cuisini|boulang|architect|journalist|étudiant|retrait|dentist|pharmacien|comptable|graphist|musicien|photograph|électricien|plombi|kinésithérap|psychologue|vétérinaire|traduct|bibliothécaire|chercheu|serveu|coiffeu)[\w-]*(?: [\w-]+){0,3})"),
    ("employer", rf"je travaille (?:chez|pour) (?!(?:moi|eux|elle|lui)\b){_PLACE}"),
    ("family:{who}", rf"(?:ma|mon) {_FR_ONE}(?: s['’]appelle|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:ma|mon) (?:petite? |grande? )?{_FR_SOME}(?: aînée?| cadette?)?(?: s['’]appelle|,)? {_NAME}"),
    ("pet:{value}", rf"(?:ma|mon|notre) {_FR_PET}(?: s['’]appelle|,)? {_NAME}"),
    (None, rf"(?:j['’]ai|nous avons|on a) (?:une?|deux|trois|quatre) (?:chiens?|chats?|{_FR_PET}|enfants?|fils|filles?|frères?|sœurs?|allergie)\b"),
    (None, rf"(?:j['’]aime|j['’]adore|je déteste|je préfère|je n['’]aime pas|je ne supporte pas) (?:beaucoup |vraiment )?{_FR_NEVER}\w+"),
    (None, r"je ne (?:mange|bois) (?:pas|plus|jamais) (?:de |d['’])\w+|je (?:parle|joue (?:du|de la|au)) \w+"),
    ("diet", r"je suis (?P<value>végétarienn?e?|végétalienn?e?|végane?)\b"),
    (None, r"je suis (?:\w+ )?(?:allergique (?:à|aux?)|mariée?|célibataire|divorcée?|enceinte|diabétique|intolérante?|gauch[eè]re?)\b(?! que\b)"),
    (None, rf"(?:ma|mon) (?:{_FR_ONE}|sœur|frère|fils|fille|chien|chat) (?:est|habite|vit|travaille|aime|adore|a) (?!(?:que|ça)\b)\w+"),
)  # fmt: skip

_ES_ONE = r"(?P<who>madre|mamá|padre|papá|esposo|esposa|marido|mujer|novia|novio|pareja|prometid[oa]|jef[ea])"
_ES_SOME = r"(?P<who>herman[oa]|hij[oa]|abuel[oa]|t[ií][oa]|prim[oa]|sobrin[oa]|cuñad[oa])"
_ES_PET = r"(?:perr[oa]|gat[oa]|caballo|conejo|hámster|loro|mascota)"
SPANISH: tuple[Row, ...] = (
    ("name", rf"(?:yo )?(?:me llamo|mi nombre es) {_NAME}"),
    ("name", rf"soy {_NAME}(?=,? (?:y )?(?:trabajo|vivo|tengo|soy|estudio)\b|, \d\d\b)"),
    ("age", r"(?:yo )?tengo (?P<value>\d\d) años"),
    ("birthday", r"(?:mi cumpleaños es|nací) el (?P<value>\d{1,2} de \w+)"),
    ("lives", rf"(?:yo |nosotros )?(?:ahora )?(?:vivo|vivimos) (?:ahora |actualmente )?en (?!(?:una?|el|los|las)\b){_PLACE}"),
    ("lives", rf"(?:me mudé|nos mudamos|me he mudado|nos hemos mudado) a {_PLACE}"),
    ("from", rf"(?:yo )?(?:soy|vengo) de {_PLACE}"),
    ("from", rf"nací en {_PLACE}"),
    ("work", rf"(?:yo )?trabajo (?:ahora )?(?:como|de) {VALUE}"),
    ("work", r"(?:yo )?soy (?:un |una )?(?P<value>(?:médic|enfermer|profesor|maestr|ingenier|abogad|estudiante|programador|desarrollador|cociner|arquitect|periodist|dentist|contador|diseñador|músic|fotógraf|electricist|fontaner|psicólog|veterinari|traductor|fisioterapeut|camarer|farmacéutic|jubilad|policía|bomber|peluquer)\w*)"),
    ("employer", rf"(?:yo )?trabajo (?:en|para) (?!(?:el|la|una?|casa)\b){_PLACE}"),
    ("family:{who}", rf"mi {_ES_ONE}(?: se llama|,)? {_NAME}"),
    ("family:{who}:{value}", rf"mi {_ES_SOME}(?: mayor| menor)?(?: se llama|,)? {_NAME}"),
    ("pet:{value}", rf"(?:mi|nuestr[oa]) {_ES_PET}(?: se llama|,)? {_NAME}"),
    (None, r"(?:a mí )?(?:no )?(?:me gustan?|me encantan?|odio|detesto|prefiero) (?:mucho |muchísimo )?(?!(?:eso|esto|tu|tus|que|cuando|cómo|la idea|la forma)\b)\w+"),
    (None, r"no (?:como|bebo|puedo (?:comer|beber|tomar)) \w+|hablo (?:\w+ )?(?:español|inglés|francés|alemán|italiano|portugués|catalán|chino|ruso|árabe)\b"),
    ("diet", r"(?:yo )?soy (?P<value>vegetarian[oa]|vegan[oa])\b"),
    (None, r"(?:yo )?(?:soy (?:alérgic[oa] (?:a|al)|celíac[oa]|diabétic[oa]|intolerante|zurd[oa])|estoy (?:casad|divorciad|embarazad|comprometid|solter)[oa]|soy (?:casad|divorciad|solter|viud)[oa])\b"),
    (None, r"(?:yo )?(?:tengo|tenemos) (?:una?|dos|tres|cuatro) (?:perr|gat|hij|herman|alergia|caballo)\w*"),
    (None, rf"mi (?:{_ES_ONE}|herman[oa]|hij[oa]|perr[oa]|gat[oa]) (?:es|está|vive|trabaja|ama|tiene) (?!(?:que|eso)\b)\w+"),
)  # fmt: skip

_IT_ONE = r"(?P<who>madre|mamma|padre|papà|marito|moglie|fidanzat[oa]|ragazz[oa]|compagn[oa]|cap[oa])"
_IT_SOME = r"(?P<who>fratello|sorella|figli[oa]|nonn[oa]|zi[oa]|cugin[oa]|nipote|cognat[oa])"
_IT_PET = r"(?:cane|cagnolin[oa]|gatt[oa]|cavallo|coniglio|criceto|pappagallo)"
ITALIAN: tuple[Row, ...] = (
    ("name", rf"(?:io )?(?:mi chiamo|il mio nome è) {_NAME}"),
    ("name", rf"(?:io )?sono {_NAME}(?=,? (?:e )?(?:lavoro|vivo|abito|ho)\b)"),
    ("age", r"(?:io )?ho (?P<value>\d\d) anni"),
    ("birthday", r"(?:il mio compleanno è|sono nat[oa]) (?:il|l['’]) ?(?P<value>\d{1,2} \w+)"),
    ("lives", rf"(?:io )?(?:ora |adesso )?(?:abito|vivo|abitiamo|viviamo) (?:ora |adesso |attualmente )?(?:a|ad|in) {_PLACE}"),
    ("lives", rf"(?:mi sono|ci siamo) trasferit[oaie] (?:a|ad|in) {_PLACE}"),
    ("from", rf"(?:vengo (?:da|dalla|dal|dall['’]) ?|sono (?:di|originari[oa] di) |sono nat[oa] (?:a|in) ){_PLACE}"),
    ("work", rf"(?:io )?(?:lavoro come|faccio (?:il|la|l['’])) ?{VALUE}"),
    ("work", r"(?:io )?sono (?:un |una |un['’])?(?P<value>(?:medic|infermier|insegnant|maestr|professor|ingegner|avvocat|student|programmator|sviluppat|cuoc|architett|giornalist|dentist|contabil|grafic|musicist|fotograf|elettricist|idraulic|psicolog|veterinari|traduttor|traduttric|fisioterapist|cameriere|pensionat|farmacist|parrucchier)\w*)"),
    ("employer", rf"(?:io )?lavoro (?:presso|per|alla|da) {_PLACE}"),
    ("family:{who}", rf"(?:mi[oa]|il mio|la mia) {_IT_ONE}(?: si chiama|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:mi[oa]|il mio|la mia) {_IT_SOME}(?: maggiore| minore)?(?: si chiama|,)? {_NAME}"),
    ("pet:{value}", rf"(?:il mio|la mia|il nostro|la nostra) {_IT_PET}(?: si chiama|,)? {_NAME}"),
    (None, r"(?:a me )?(?:non )?(?:mi piac(?:e|ciono)|amo|adoro|odio|detesto|preferisco|sopporto) (?:molto |tanto )?(?!(?:quando|come|che|questo|quello|il tuo|la tua|l['’]idea)\b)\w+"),
    (None, r"non (?:mangio|bevo|posso (?:mangiare|bere|prendere)) \w+|parlo (?:\w+ )?(?:italiano|inglese|francese|tedesco|spagnolo|portoghese|cinese|russo)\b"),
    ("diet", r"(?:io )?sono (?P<value>vegetarian[oa]|vegan[oa])\b"),
    (None, r"(?:io )?sono (?:\w+ )?(?:allergic[oa] (?:a|ai|al|alle|alla|agli)|celiac[oa]|diabetic[oa]|intollerante|sposat[oa]|divorziat[oa]|single|incinta|fidanzat[oa]|mancin[oa])\b"),
    (None, r"(?:ho|abbiamo) (?:un['’]?|una|due|tre|quattro) ?(?:can[ei]|gatt[oiae]|figli[oae]?|fratell[oi]|sorell[ae]|cavallo|allergia)\b"),
    (None, rf"(?:mi[oa]|il mio|la mia) (?:{_IT_ONE}|fratello|sorella|figli[oa]|cane|gatt[oa]) (?:è|vive|abita|lavora|ama|ha) (?!(?:che|questo)\b)\w+"),
)  # fmt: skip

_PT_ONE = r"(?P<who>mãe|pai|marido|esposa|esposo|mulher|namorad[oa]|noiv[oa]|companheir[oa]|chef[ea])"
_PT_SOME = r"(?P<who>irmã|irmão|filh[oa]|avó|avô|ti[oa]|prim[oa]|sobrinh[oa]|cunhad[oa])"
_PT_PET = r"(?:cão|cachorr[oa]|cadela|gat[oa]|cavalo|coelho|papagaio)"
PORTUGUESE: tuple[Row, ...] = (
    ("name", rf"(?:(?:eu )?(?:me chamo|chamo-me)|o meu nome é|meu nome é) {_NAME}"),
    ("name", rf"(?:eu )?sou (?:o |a )?{_NAME}(?=,? (?:e )?(?:trabalho|moro|vivo|tenho)\b)"),
    ("age", r"(?:eu )?tenho (?P<value>\d\d) anos"),
    ("birthday", r"(?:(?:o )?meu aniversário é|nasci) (?:em|no dia|a|dia) (?P<value>\d{1,2} de \w+)"),
    ("lives", rf"(?:eu )?(?:agora )?(?:moro|vivo|moramos|vivemos) (?:agora |atualmente )?(?:em|no|na) {_PLACE}"),
    ("lives", rf"(?:eu )?(?:me mudei|mudei-me|nos mudamos|mudámo-nos) para (?:o |a )?{_PLACE}"),
    ("from", rf"(?:eu )?(?:sou|venho) (?:de|do|da) {_PLACE}"),
    ("from", rf"(?:eu )?nasci (?:em|no|na) {_PLACE}"),
    ("work", rf"(?:eu )?trabalho (?:agora )?como {VALUE}"),
    ("work", r"(?:eu )?sou (?:um |uma )?(?P<value>(?:médic|enfermeir|professor|engenheir|advogad|estudante|programador|desenvolvedor|cozinheir|arquitet|jornalist|dentist|contador|contabilist|designer|músic|fotógraf|eletricist|psicólog|veterinári|tradutor|fisioterapeut|aposentad|reformad|farmacêutic|cabeleireir)\w*)"),
    ("employer", rf"(?:eu )?trabalho (?:na|no|para a|para o|para) {_PLACE}"),
    ("family:{who}", rf"(?:o |a )?(?:meu|minha) {_PT_ONE}(?: se chama| chama-se|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:o |a )?(?:meu|minha) {_PT_SOME}(?: mais velh[oa]| mais nov[oa])?(?: se chama| chama-se|,)? {_NAME}"),
    ("pet:{value}", rf"(?:o |a )?(?:meu|minha|nosso|nossa) {_PT_PET}(?: se chama| chama-se|,)? {_NAME}"),
    (None, r"(?:eu )?(?:não )?(?:gosto (?:muito )?d[eoa]s?|adoro|odeio|detesto|prefiro) (?!(?:isso|isto|que|quando|como|seu|teu|sua|tua)\b)\w+"),
    (None, r"(?:eu )?não (?:como|bebo|posso (?:comer|beber|tomar)) \w+|(?:eu )?falo (?:\w+ )?(?:português|inglês|francês|alemão|espanhol|italiano)\b"),
    ("diet", r"(?:eu )?sou (?P<value>vegetarian[oa]|vegan[oa])\b"),
    (None, r"(?:eu )?(?:sou (?:alérgic[oa] (?:a|ao|à|aos|às)|celíac[oa]|diabétic[oa]|intolerante|canhot[oa]|casad[oa]|divorciad[oa]|solteir[oa])|estou (?:grávida|noiv[oa]))\b"),
    (None, r"(?:eu )?(?:tenho|temos) (?:uma?|dois|duas|três|quatro) (?:cães|cão|cachorr|gat|filh|irm|cavalo|alergia)\w*"),
    (None, rf"(?:o |a )?(?:meu|minha) (?:{_PT_ONE}|irmã|irmão|filh[oa]|cachorr[oa]|gat[oa]) (?:é|está|mora|vive|trabalha|ama|tem) (?!(?:que|isso)\b)\w+"),
)  # fmt: skip

GREETED: tuple[Row, ...] = (
    ("name", rf"(?:ich bin (?:der |die )?|je suis |moi,? c['’]est |soy |sono |sou (?:o |a )?){_NAME}(?=[,.!]|$| und\b| et\b| y\b| e\b)"),
)  # fmt: skip

WISHES: tuple[Row, ...] = (
    # German
    ("called", rf"nenn(?:e|en sie)? mich (?:bitte |einfach |ab jetzt ){{0,2}}(?P<value>{ONE_NAME})"),
    (None, r"(?:bitte )?(?:antworte|schreib|schreibe|sprich|erkläre?|benutze?|verwende?|gib|nenne?|sag|nutze?|duze|sieze|frag)\b[^.?!:]{0,60}\b(?:immer|nie|niemals|grundsätzlich|künftig|ab jetzt|nicht mehr)\b"),
    (None, r"(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig) (?:bitte )?(?:immer |nie |keine?n? |nur )?\w+"),
    (None, r"(?:bitte )?(?:immer|nie|niemals|nie wieder|keine) (?:\w+ ){1,5}(?:verwenden|benutzen|antworten|schreiben|nutzen|geben|nennen|in (?:deinen|den) antworten)\b"),
    (None, r"(?:bitte )?(?:merk dir|denk daran|vergiss nicht),? (?:bitte ,?)?dass (?:ich|mein|wir|unser)\w* "),
    # French
    ("called", rf"(?:appelle|appelez)[- ]moi (?P<value>{ONE_NAME})"),
    (None, r"(?:s['’]il te plaît,? |s['’]il vous plaît,? )?(?:réponds|répondez|écris|utilise|utilisez|explique|donne|parle|tutoie|vouvoie)\b[^.?!:]{0,60}\b(?:toujours|jamais|désormais|dorénavant)\b"),
    (None, r"(?:désormais|dorénavant|à partir de maintenant|à l['’]avenir),? (?!(?:je|il|elle|on|nous)\b)\w+"),
    (None, r"n['’](?:utilise|utilisez|emploie|ajoute|écris) (?:jamais|plus)\b|ne (?:\w+ )?(?:réponds|mets|fais|donne|parle)\w* (?:jamais|plus)\b"),
    (None, r"(?:souviens-toi|rappelle-toi|retiens|n['’]oublie pas) (?:bien )?que (?:je|j['’]|mon|ma|mes|nous)"),
    # Spanish
    ("called", rf"(?:llámame|dime) (?P<value>{ONE_NAME})(?=[,.!]|$)"),
    (None, r"(?:por favor,? )?(?:responde|contesta|escribe|usa|utiliza|explica|da|habla|háblame|respóndeme|tutéame)\b[^.?!:]{0,60}\b(?:siempre|nunca)\b"),
    (None, r"(?:por favor,? )?(?:siempre|nunca|no) (?:me )?(?:responde|contestes|respondas|uses|utilices|escribas|usa|utiliza|des|pongas)\b[^?]{0,60}"),
    (None, r"(?:a partir de ahora|de ahora en adelante|en adelante),? (?!(?:yo|voy|soy)\b)\w+"),
    (None, r"(?:recuerda|ten en cuenta|no olvides) que (?:yo |mi|mis|no |soy|tengo|nosotros)"),
    # Italian
    ("called", rf"chiamami (?:pure )?(?P<value>{ONE_NAME})"),
    (None, r"(?:per favore,? )?(?:rispondi(?:mi)?|scrivi|usa|utilizza|spiega|dammi|parla(?:mi)?)\b[^.?!:]{0,60}\bsempre\b"),
    (None, r"(?:per favore,? )?non (?:usare|rispondere|scrivere|aggiungere|mettere|darmi) (?:mai|più)\b"),
    (None, r"(?:d['’]ora in poi|da ora in poi|da adesso in poi|in futuro),? (?!(?:io|sarò)\b)\w+"),
    (None, r"(?:ricorda(?:ti)?|tieni presente|non dimenticare) che (?:io |mi|il mio|la mia|i miei|non |sono|ho)"),
    # Portuguese
    ("called", rf"(?:me chame de|chama-me|me chama de|chame-me) (?P<value>{ONE_NAME})"),
    (None, r"(?:por favor,? )?(?:responda|responde|escreva|escreve|use|usa|explique|fale)\b[^.?!:]{0,60}\bsempre\b"),
    (None, r"(?:por favor,? )?(?:sempre|nunca) (?:responda|use|escreva|responde|usa|utilize|coloque)\b"),
    (None, r"(?:a partir de agora|de agora em diante|daqui em diante),? (?!(?:eu|vou)\b)\w+"),
    (None, r"(?:lembre-se|lembra-te|lembre|não se esqueça) (?:de )?que (?:eu |o meu|meu|minha|a minha|não |sou|tenho)"),
)  # fmt: skip
