"""Patterns for statements and wishes in German."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE, Row

# Every statement or wish in this language contains one of these words.
NEEDS = frozenset(
    (
        "ich wir mein meine meinen meinem meiner meines unser unsere unseren unserem unserer mich mir du dir deine "
        "deinen hier bitte immer nie niemals keine kein keinen ab von in künftig zukünftig antworte schreib "
        "schreibe sprich benutz benutze verwend verwende nutz nutze duz duze sieze nenn nenne wenn merk merke denk "
        "vergiss erinner notier notiere"
    ).split()
)

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"
_MONTH = r"(?:januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)"
_SINCE = r"seit (?:(?:fast|über|etwa|rund|einem|einer|dem|der|letzte[mnr]|kurzem|\w+) ){0,2}\w+"
_TIME = (
    rf"\b(?:am \d{{1,2}}|am (?:mon|diens|donners|frei|sams|sonn)tag|am mittwoch|(?:im|ab|seit|bis|anfang|mitte|ende) (?:{_MONTH}|frühling|frühjahr|sommer|herbst|winter)"
    rf"|nächste[nrsm]? \w+|kommende[nrsm]? \w+|diese[nrsm]? (?:sommer|winter|herbst|frühling|jahr|monat|wochenende)|übermorgen|morgen\b|{_MONTH} \d{{4}}"
    r"|in (?:\d+|einer|einem|zwei|drei|vier|fünf|sechs) (?:tagen?|wochen?|monat(?:en)?|jahr(?:en)?)|(?:letzte[nrsm]?|vorige[nrsm]?) \w+|vor (?:\d+|einem|einer|zwei|drei) \w+|gestern"
    r"|(?:zu|an|über) (?:weihnachten|ostern|pfingsten|silvester)|20\d\d)\b"
)
FRONT = (
    rf"(?:jetzt|nun|aktuell|derzeit|zurzeit|momentan|im moment|mittlerweile|inzwischen|seit (?:\d{{4}}|kurzem|langem|jahren|(?:\w+ ){{1,2}}(?:jahr(?:en)?|monat(?:en)?|wochen?|tagen)|{_MONTH})|ursprünglich|beruflich|von beruf|hauptberuflich|nebenbei|nebenberuflich|privat"
    r"|leider|außerdem|übrigens|am liebsten|normalerweise|meistens|manchmal|oft|gerade|demnächst|bald|in meiner freizeit|in der freizeit|nach der arbeit|jeden \w+(?: \w+)?"
    rf"|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|morgens|abends|am wochenende|am (?:\d{{1,2}}\. ?\w+|\w+tag)|im {_MONTH}|nächste[nrsm]? \w+|in (?:zwei|drei|\d+) \w+|in (?=(?-i:[A-ZÄÖÜ]))[\w-]+)"
)
_ADV = (
    rf"(?:(?:jetzt|nun|aktuell|derzeit|zurzeit|momentan|mittlerweile|inzwischen|schon|noch|auch|gerade|eigentlich|wirklich|total|sehr|besonders|überhaupt|einfach|immer|oft|meistens"
    rf"|normalerweise|gern|gerne|lieber|am liebsten|ursprünglich|leider|nur|gar|ganz|echt|hauptsächlich|übrigens|{_SINCE}|mit meine[rm] \w+|zusammen) ){{0,3}}"
)


def _i(verbs: str) -> str:
    """Return a pattern that matches any of the verbs with "ich" or "wir", as in "seit 2010 wohne ich"."""
    return rf"(?:(?:ich|wir) (?:{verbs})|(?<=\w )(?:{verbs}) (?:ich|wir)) {_ADV}"


_ONE = r"(?P<who>mutter|mama|mutti|vater|papa|mann|frau|ehemann|ehefrau|partnerin|partner|freundin|freund|verlobte[r]?|lebensgefährt(?:e|in)|chefin|chef|schwiegermutter|schwiegervater|bester freund|beste freundin)"
_SOME = r"(?P<who>schwester|bruder|sohn|tochter|oma|opa|großmutter|großvater|tante|onkel|cousine?|nichte|neffe|schwager|schwägerin|enkelin|enkel|stiefsohn|stieftochter)"
_KIN = r"(?:mutter|mama|mutti|vater|papa|mann|frau|ehemann|ehefrau|partnerin|partner|freundin|freund|verlobte[r]?|schwester|bruder|sohn|tochter|kleiner?|große[r]?|oma|opa|großmutter|großvater|tante|onkel|cousine?|nichte|neffe|schwager|schwägerin|schwieger\w+|eltern|großeltern|kinder|kind|söhne|töchter|zwillinge|geschwister|brüder|schwestern|baby|mitbewohner(?:in)?)"
_PET = r"(?:hündin|hund|katze|kater|pferd|kaninchen|hamster|vogel|papagei|meerschweinchen|wellensittich|schildkröte|welpe|dackel|labrador|pudel|pony|huhn|esel|ziege|ratte|schlange)"
_PETS = r"(?:hunde?|katzen?|kater|pferde?|kaninchen|hamster|vögel|papageien?|meerschweinchen|wellensittiche?|schildkröten?|hühner|welpen?|ponys?|esel|ziegen|ratten|schafe|bienen|fische)"
_NOT = r"(?!(?:es|das|dich|dir|sie|ihn|ihm|diese[rsmn]?|wie|wenn|dass|deine?[nrs]?|euch|nicht|beide[s]?|alles|nichts|was|mir|mich|keine ahnung|hilfe|eine frage|an|zu|auf)\b)"
_ILL = (
    r"(?:\w*allergie|\w+unverträglichkeit|\w+intoleranz|zöliakie|asthma|diabetes|neurodermitis|schuppenflechte|rheuma|arthrose|arthritis|migräne|epilepsie|adhs|ads|autismus|depressionen|angststörung|heuschnupfen"
    r"|bluthochdruck|krebs|demenz|alzheimer|parkinson|multiple sklerose|ms|morbus crohn|reizdarm|rückenprobleme|knieprobleme|höhenangst|flugangst|legasthenie|schilddrüsen\w+|endometriose|tinnitus|gicht|schlafapnoe|bandscheibenvorfall|einen? \w+(?:bruch|riss))"
)
_JOB = (
    r"(?-i:[A-ZÄÖÜ]?[a-zäöüß-]*)(?:lehrer|arzt|ärzt|pfleger|ingenieur|entwickler|anwalt|anwält|koch|köch|bäcker|techniker|berater|student|therapeut|leiter|forscher|designer|musiker|schreiner|tischler|elektriker|verkäufer"
    r"|kaufmann|kauffrau|schwester|rentner|pensionär|richter|polizist|journalist|architekt|psycholog|erzieher|friseur|maler|maurer|dachdecker|zimmermann|klempner|installateur|mechaniker|mechatroniker|landwirt|bauer|bäuer|winzer|gärtner"
    r"|florist|metzger|konditor|kellner|barkeeper|fahrer|pilot|schaffner|lokführer|postbot|briefträger|feuerwehrmann|soldat|sanitäter|hebamme|apotheker|physio|logopäd|zahn\w+|optiker|hausmann|hausfrau|sekretär|assistent|beamt|buchhalter"
    r"|controller|manager|informatiker|programmierer|admin|analyst|wissenschaftler|physiker|chemiker|biolog|geolog|historiker|mathematiker|übersetzer|dolmetscher|schriftsteller|autor|redakteur|fotograf|grafiker|schauspieler|sänger|tänzer|regisseur"
    r"|trainer|coach|makler|notar|steuerberater|bibliothekar|buchhändler|händler|schneider|goldschmied|uhrmacher|schlosser|schweißer|monteur|handwerker|freiberufler|unternehmer|gründer|azubi|auszubildende|praktikant|schüler|doktorand|professor|dozent|werkstudent"
    r"|sozialarbeiter|pädagog|pfarrer|imker|förster|tierarzt|tierärzt|landschaftsgärtner|kassierer|putzkraft|reinigungskraft|altenpfleger|stewardess|flugbegleiter|vertriebler|referent)(?:e|en|in|innen)?"
)
_LANG = r"(?:deutsch|englisch|französisch|spanisch|italienisch|portugiesisch|polnisch|russisch|türkisch|arabisch|niederländisch|schwedisch|dänisch|norwegisch|griechisch|chinesisch|japanisch|koreanisch|ungarisch|tschechisch|latein|ukrainisch|kroatisch|persisch)"

USER: tuple[Row, ...] = (
    ("name", rf"(?:ich hei(?:ß|ss)e|mein (?:name|vorname) ist|man nennt mich|alle nennen mich|meine freunde nennen mich) (?:übrigens )?{_NAME}(?! genannt \w)"),
    ("name", rf"ich werde (?:von \w+ |meist(?:ens)? )?{_NAME} genannt\b"),
    ("name", r"(?:ich hei(?:ß|ss)e|mein name ist) (?!(?:das|es|dich|sie|nicht|so|alle|wie|ein\w*|der|die|alles|jeden)\b)(?P<value>[a-zäöüß-]{2,15})(?=[,.!]| und\b|$)"),
    ("name", rf"ich bin (?:der |die )?{_NAME}(?=,? (?:und )?(?:ich|arbeite|wohne|komme|lebe|habe|brauche|suche)\b|, \d\d\b| aus (?-i:[A-Z]))"),
    ("age", rf"{_i('bin')}(?P<value>\d\d)(?: jahre(?: alt)?\b(?! (?!und\b|aber\b)\w)|(?=[,.!]| und\b| geworden|$))"),
    ("age", r"ich (?:bin|werde) (?P<value>(?:bald|fast|anfang|mitte|ende|gerade) (?:\d\d|zwanzig|dreißig|vierzig|fünfzig|sechzig|siebzig|achtzig))\b"),
    ("birthday", r"(?:mein geburtstag ist|ich habe|ich hab|ich bin|ich wurde) (?:am )?(?P<value>\d{1,2}\. ?(?:\w+|\d{1,2}\.))(?: \d{4})?(?: geburtstag| geboren)?"),
    ("birthday", r"ich (?:bin|wurde) (?P<value>(?:jahrgang )?(?:19|20)\d\d)(?: geboren| in\b|(?=[,.!]|$))"),
    ("lives", rf"{_i('wohnen?|leben?')}(?:hier )?in (?!(?:miete|scheidung|trennung|angst|frieden|harmonie|armut|rente|beziehung|ehe|sünde|sorge|freiheit|wohlstand|untermiete|wgs?|partnerschaft|hoffnung|stille|zweisamkeit|panik|saus|gefahr|erinnerung|eine[mr]|der|dem|meine[mr]|unsere[mr]|diese[mr]|der nähe)\b){VALUE}"),
    ("lives", rf"{_i('wohnen?|leben?')}in (?:der |dem |den )(?:nähe von |umgebung von )?{_PLACE}"),
    ("lives", rf"in (?P<value>{ONE_NAME}) (?:wohne|lebe) ich\b"),
    ("lives", r"(?:ich bin|wir sind) (?:[\w]+ ){0,4}nach (?!(?:draußen|oben|unten|hause)\b)(?P<value>[\w-]+(?: [\w-]+)?) (?:um)?gezogen"),
    (None, rf"{_i('wohnen?|leben?')}(?!in (?:angst|armut|frieden|gefahr|sorge|panik)\b)(?:in|auf|bei|mit|allein|alleine|zu zweit|zu dritt|am|im|an)\b"),
    ("from", rf"{_i('komme|stamme')}aus (?!(?:Versehen|Spaß|Zeitmangel|Interesse|Neugier)\b){_PLACE}"),
    ("from", rf"{_i('komme|stamme')}aus (?:der |dem |den )(?P<value>(?:schweiz|türkei|ukraine|slowakei|mongolei|usa|niederlanden|iran|irak|jemen|libanon|sudan|kongo|pfalz|eifel|oberpfalz|lausitz|uckermark|steiermark|toskana|bretagne|normandie|provence|ruhrgebiet|saarland|schwarzwald|allgäu|burgenland|emsland|sauerland|rheinland|münsterland|harz|vogtland|nähe von \w+)\b|(?:norden|süden|osten|westen) (?:von )?(?-i:[A-ZÄÖÜ])\w+)"),
    ("from", rf"{_i('komme|stamme')}aus (?!(?:der|dem|den|einem|einer|versehen|diesem|dieser|spaß|meinem|meiner|zeit)\b)(?P<value>[a-zäöüß-]+)(?=[,.!]|$| und\b| aber\b)"),
    ("from", rf"(?:ich bin|ich wurde) in (?P<value>{ONE_NAME}) (?:geboren|aufgewachsen)"),
    ("work", rf"{_i('arbeite')}als {VALUE}"),
    ("work", rf"{_i('bin')}(?:von beruf |gelernter? |selbstständige[r]? |angehende[r]? |freiberufliche[r]? |studierte[r]? )?(?:eine? )?(?P<value>{_JOB})\b(?! (?:von|der|des) (?:china|welt|lage)\b)"),
    ("work", rf"{_i('bin')}(?P<value>arbeitslos|selbstständig|selbständig|freiberuflich|in rente|in elternzeit|in ausbildung|pensioniert|verrentet|im ruhestand|in pension)\b"),
    ("work", r"mein (?:beruf|job) ist (?!(?:so|sehr|zu|nicht|echt|stressig|anstrengend|langweilig)\b)(?P<value>[^,.;!?]+)"),
    ("work", rf"(?:ich|ich habe|ich hab) (?:\w+ )?(?:mache|angefangen|begonnen|lerne) (?:eine |meine )?(?:ausbildung|lehre) (?:zur|zum|als) {VALUE}"),
    ("work", rf"ich mache (?:gerade )?(?:eine |meine )?(?:ausbildung|lehre) (?:zur|zum|als) {VALUE}"),
    ("employer", rf"{_i('arbeite|bin|schaffe|jobbe')}(?:bei|für) (?!(?:geld|wenig|gutes|mindestlohn|nichts|zwei|drei|vier|spaß|lau|der|dem|einem|einer|mir|dir|euch|uns|ihm|ihr|meine\w*|diese\w*|so|sowas|zu hause)\b){VALUE}"),
    ("employer", rf"{_i('arbeite')}(?:bei|für) (?:der |dem ){_PLACE}"),
    (None, rf"{_i('arbeite')}(?!für (?:geld|wenig|nichts|lau|zwei)\b)(?:in|im|an|am|bei|für|von zu hause|von zuhause|nachts|teilzeit|vollzeit|remote|schicht) ?\w*(?<!diesem)(?<!dem code)"),
    ("studies", rf"{_i('studiere')}(?!(?:das|es|die|an|in|gerade)\b){VALUE}"),
    (None, rf"{_i('leite|führe|betreibe|besitze|gründe')}(?:eine?n?|das|den|die|mein\w*|unser\w*) (?:\w+ ){{0,2}}(?:team|abteilung|laden|geschäft|restaurant|café|firma|unternehmen|hof|bauernhof|praxis|bäckerei|werkstatt|verein|chor|schule|kita|agentur|startup|hotel|pension|kneipe|bar)\b"),
    ("family:{who}", rf"meine? {_ONE}(?: hei(?:ß|ss)t|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:meine?|unsere?) (?:(?:kleine|große|älteste|ältere|jüngere|jüngste|neugeborene)[rs]? )?(?:\w+r )?{_SOME}(?: hei(?:ß|ss)t|,)? {_NAME}"),
    ("pet:{value}", rf"(?:meine?|unsere?) (?:\w+ )?{_PET}(?: hei(?:ß|ss)t|,)? {_NAME}"),
    ("pet:{value}", rf"(?:ich habe|ich hab|wir haben) (?:eine?n?) (?:\w+ )?{_PET}(?: namens|, die|, der)? {_NAME}"),
    (None, rf"{_i('habe?|haben')}(?:eine?n?|zwei|drei|vier|fünf|\d) (?:\w+ ){{0,2}}(?:{_PETS}|kinder|kind|sohn|söhne|tochter|töchter|bruder|brüder|schwestern?|geschwister|jungs|mädchen|enkel\w*|zwillinge|garten|schrebergarten|auto|boot|motorrad|wohnmobil|lastenrad|e-bike|klavier|gitarre|haus|wohnung|hof)\b"),
    (None, rf"{_i('habe?|haben')}(?:(?:eine?n?|starke|schwere|chronische|leichte|so) ){{0,2}}{_ILL}\b"),
    (None, rf"{_i('habe?|haben')}keine (?:kinder|geschwister|haustiere)\b"),
    (None, rf"{_i('mag|liebe|hasse|bevorzuge|mögen|lieben|hassen|verabscheue|vergöttere|genieße')}{_NOT}\w+"),
    (None, r"ich kann (?!(?:das|es|dich)\b)\w+ (?:\w+ )?nicht (?:ausstehen|leiden|ab)\b|ich bin (?:ein |eine )?(?:großer? |riesen)?\w*(?:fan|liebhaber(?:in)?) (?:von|der|des) \w+|ich stehe (?:total )?auf (?!(?:dem|der|dich)\b)\w+"),
    ("favourite {kind}", rf"mein(?:e|en)? lieblings(?P<kind>\w+) (?:ist|sind|hei(?:ß|ss)t) (?!(?:das|es|diese\w*)\b){VALUE}"),
    (None, rf"(?P<value>{ONE_NAME}) ist meine? lieblings\w+"),
    ("diet", rf"{_i('bin')}(?P<value>vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan|pescetarier(?:in)?)\b"),
    ("diet", rf"{_i('esse|ernähre mich')}(?P<value>kein(?:e)? (?:fleisch|tierischen produkte|fisch)(?: mehr)?|wieder fleisch|vegan|vegetarisch|pflanzlich|glutenfrei|koscher|halal|fleischlos)\b"),
    (None, rf"{_i('esse|trinke|vertrage|rauche|darf|kann|essen|trinken')}(?:\w+ )?kein(?:en|e|s)? {_NOT}\w+"),
    (None, rf"{_i('rauche|trinke|esse|fahre|lebe')}(?:nicht(?: mehr)?|nie|vegan|alkoholfrei)(?=[,.!]|$| und\b| mehr\b)"),
    (None, r"ich (?:esse|trinke|spiele|spreche|fahre|koche|lese|gehe|höre|schaue|tanze|male|reise|backe|wandere|schwimme|singe) (?:(?:sehr|wahnsinnig|total) )?(?:gerne?|ungern|am liebsten|lieber) " + _NOT + r"\w+"),
    (None, r"ich (?:koche|lese|wandere|schwimme|tanze|singe|male|reise|backe|stricke|nähe|jogge|klettere|gärtnere|zocke|fotografiere) (?:sehr )?(?:gerne?|oft|regelmäßig|viel)\b"),
    (None, rf"{_i('spreche|lerne|kann|verstehe')}(?:(?:fließend|etwas|ein bisschen|ein wenig|kaum|gut|nur|kein|auch|noch) ){{0,2}}{_LANG}\b|meine muttersprache ist \w+"),
    (None, rf"{_i('spiele|lerne|unterrichte|sammle|züchte|trainiere')}(?!(?:mit dem gedanken|das|es|gerne?|die rolle|eine rolle|ein spiel|dir|mir)\b)(?=(?-i:[A-ZÄÖÜ])|im |in )\w+"),
    (None, rf"{_i('gehe|laufe|jogge|schwimme|trainiere|meditiere|mache|spiele|koche|treffe|besuche|fahre|singe|backe')}[^.?!;]{{0,60}}?\b(?:jeden (?:tag|morgen|abend|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|(?:ein|zwei|drei|vier|\d) ?mal (?:pro|die|in der) woche|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|täglich|regelmäßig|am wochenende)\b"),
    (None, r"(?:jeden (?:tag|morgen|abend|\w+tag|mittwoch)|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|morgens|abends|am wochenende) (?:gehe|laufe|jogge|schwimme|trainiere|meditiere|mache|spiele|koche|treffe|besuche|fahre|singe|backe|esse|trinke|arbeite|habe) ich\b"),
    (None, rf"{_i('fahre|pendle|radle')}(?:mit dem|mit der|jeden tag|immer)? ?(?:\w+ )?(?:zur arbeit|ins büro|zur schule|zur uni)\b"),
    (None, rf"{_i('benutze|verwende|nutze|programmiere|entwickle|schreibe|fahre|besitze|arbeite')}(?:(?:in|mit|auf|unter|privat|beruflich|eine?n?|am|meistens) ){{0,2}}(?!(?:Sie|Ich|Du|Dich|Ihnen|Hilfe|Code|Funktion|Datei|Tabelle|Formel)\b){CAPITAL}[\w.+#-]+(?! (?:zur|ins|nach)\b)"),
    (None, r"ich bin (?:gegen|auf) (?P<what>[\w -]{3,40}?) allergisch\b"),
    (None, rf"{_i('reagiere')}allergisch auf \w+"),
    (None, rf"{_i('bin|sind')}(?:\w+ )?(?:allergisch (?:gegen|auf)|verheiratet|geschieden|ledig|verlobt|verwitwet|schwanger|laktoseintolerant|glutenintolerant|diabetiker(?:in)?|linkshänder(?:in)?|farbenblind|kurzsichtig|schwerhörig|taub|blind|autistisch|schwul|lesbisch|trans|single|alleinerziehend|frühaufsteher(?:in)?|nachteule|nichtraucher(?:in)?|raucher(?:in)?|muslim(?:a|in)?|christ(?:in)?|katholisch|evangelisch|jüdisch|atheist(?:in)?|legastheniker(?:in)?|österreicher(?:in)?|schweizer(?:in)?|deutsche?r?|türk(?:e|in)|pole|polin|einzelkind|introvertiert|mutter von|vater von)\b"),
    (None, rf"(?:meine?|unsere?) (?:(?:kleine|große|älteste|ältere|jüngere|jüngste|beste|beiden?|zwei|drei)[nrs]? ){{0,2}}(?:{_KIN}|{_PETS})(?: \w+)? (?:ist|sind|wohnt|wohnen|lebt|leben|arbeitet|arbeiten|liebt|lieben|mag|mögen|hasst|hat|haben|spielt|wird|werden|kommt|heiratet|studiert|lernt|geht|fährt|isst|trinkt|verträgt|spricht|heißt|heißen|zieht|besucht|bekommt|macht|kann|darf|schläft|starb|wurde) (?!(?:das|so|dir|dich|es|gerade|sehr müde)\b)\w+"),
    (None, r"(?:ich habe|ich hab|wir haben|ich bin) (?:\w+ ){0,3}(?:mit dem (?:rauchen|trinken) aufgehört|aufgehört zu \w+|aufgehört,? mit \w+)"),
    (None, rf"{_i('rauche|trinke|esse|arbeite|spiele|wohne|lebe|nutze|benutze|fahre|mache|gehe')}(?:[\w-]+ ){{0,4}}?(?:nicht|kein(?:e|en)?)(?: [\w-]+)?(?: [\w-]+)? mehr\b"),
    (None, r"(?:meine hobbys|mein hobby|meine hobbies) (?:sind|ist) \w+"),
    (None, r"meine? (?:zeitzone|adresse|telefonnummer|schuhgröße|blutgruppe|heimatstadt|sternzeichen|religion|hausarzt|zahnarzt|auto|handy|laptop|rechner) (?:ist|heißt) (?!(?:nicht|zu|so|das|kaputt|falsch)\b)\w+"),
)  # fmt: skip
EVENTS: tuple[Row, ...] = (
    (None, rf"{_i('fliege|fahre|reise|ziehe|fliegen|fahren|reisen|ziehen|wandere aus')}(?=[^.?!;]{{0,60}}(?:{_TIME}|\bnach (?-i:[A-ZÄÖÜ])))(?:[\w.]+ ){{0,6}}(?:nach|in|auf|an|zu|um|zusammen)\b"),
    (None, rf"{_i('heirate|heiraten|beginne|beginnen|starte|bekomme|bekommen|habe|hab|haben|mache|machen|gehe|gehen|besuche|besuchen|treffe|feiere|feiern|laufe|werde|fange|erwarte|erwarten|kaufe|kaufen|schreibe|eröffne|eröffnen|plane|planen|wechsle')}(?=[^.?!;]{{0,70}}{_TIME})(?!(?:das|es|dir|dich|ich)\b)[^.?!;]{{3,}}"),
    (None, rf"(?:mein|meine|unser|unsere) (?:\w+ )?(?:\w*(?:hochzeit|geburtstag|prüfung|termin|flug|urlaub|umzug|operation|op|abgabe|interview|vorstellungsgespräch|hochzeitstag|jubiläum|konzert|marathon|abschluss|reise)) (?:ist|findet|geht|beginnt|startet) (?=[^.?!;]{{0,40}}{_TIME})"),
    (None, r"(?:wir|ich) (?:erwarten?|bekommen?) (?:ein|unser|im \w+ ein|im \w+ unser) (?:\w+ )?(?:kind|baby)\b|wir heiraten\b|ich (?:trainiere|spare|lerne) (?:gerade )?(?:für|auf) (?:den|die|das|einen?|mein\w*) \w+"),
    (None, r"ich (?:habe|hab) (?:(?:gerade|vor kurzem|letzte[nsr]? \w+|gestern|endlich|heute|neulich|mir|im \w+) ){0,3}(?:(?:meine?n?|eine?n?|den|die|das) )?(?:\w+ ){0,2}(?:gekündigt|bestanden|geheiratet|adoptiert|gekauft|abgeschlossen|verkauft|verloren|gebrochen|angefangen|bekommen|gegründet)\b"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:ich bin(?:['’]?s)? (?:der |die )?|hier ist (?:der |die )?|hier (?:spricht|schreibt) ){_NAME}(?=[,.!]|$| und\b| hier\b| aus\b)"),
)  # fmt: skip
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:ab jetzt |bitte )?(?:nenn(?:e|en sie)?|sag) (?:mich|zu mir|einfach) (?:bitte |einfach |ab jetzt |künftig ){{0,2}}(?P<value>{ONE_NAME})"),
    ("called", rf"du (?:kannst|darfst) (?:mich (?:gerne? |einfach |auch )?(?P<value>{ONE_NAME}) nennen)"),
    (None, r"(?:bitte )?(?:antworte|schreib|schreibe|sprich|erkläre?|benutze?|verwende?|gib|nenne?|sag|nutze?|duze|sieze|frag|rechne|empfiehl|schlag|fang|beginn|beende|mach|formuliere|zitiere|verzichte|lass)\b[^.?!:]{0,60}\b(?:immer|nie|niemals|grundsätzlich|künftig|ab jetzt|nicht mehr|stets|in zukunft|jedes mal)\b"),
    (None, r"(?:bitte )?(?:duze|sieze|duz) mich\b|(?:bitte )?(?:antworte|schreib|sprich)(?: mir| mit mir)? (?:bitte )?(?:nur |immer )?(?:auf|in) (?:deutsch|englisch|hochdeutsch|einfacher sprache|kurzen sätzen|stichpunkten)\W*$"),
    (None, r"(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig|zukünftig)[,:]? (?:bitte )?(?:immer |nie |keine?n? |nur )?\w+"),
    (None, r"(?:bitte )?(?:immer|nie|niemals|nie wieder|keine) (?:\w+ ){1,5}(?:verwenden|benutzen|antworten|schreiben|nutzen|geben|nennen|anfangen|beginnen|vorschlagen|empfehlen|erwähnen|machen|in (?:deinen|den) antworten)\b"),
    (None, r"(?:bitte )?keine (?:emojis|floskeln|anglizismen|ausrufezeichen|aufzählungen|abkürzungen|entschuldigungen|fachbegriffe|smileys)(?: mehr| bitte|, bitte)?\W*$"),
    (None, r"(?:bitte )?(?:benutze?|verwende?|schreib|nutze?|mach) (?:bitte )?(?:keine|nie) (?:\w+ )?(?:emojis|floskeln|anglizismen|ausrufezeichen|abkürzungen|fachbegriffe|smileys)\b"),
    (None, r"wenn (?:du|ich) [^.?!:]{3,80}, (?:bitte )?(?:dann )?(?:bitte )?(?:immer |nie )?(?:antworte|schreib|benutze?|verwende?|gib|nutze?|nenn|erklär|füge?|mach|schlag|zeig|frag)\w*\b(?=[^.?!]*(?:\bimmer\b|\bnie\b|\bkeine?\b|\bstets\b))"),
    (None, r"(?:bitte )?(?:merk(?:e)? dir|denk (?:bitte )?(?:daran|dran)|vergiss (?:bitte )?nicht|erinner dich|notier(?:e)? dir),? (?:bitte,? ?)?(?:dass |: ?)?(?:ich|mein|wir|unser|am|jeden|der|die|das)\w* (?!(?:code|funktion|datei|tabelle)\b)"),
)  # fmt: skip
