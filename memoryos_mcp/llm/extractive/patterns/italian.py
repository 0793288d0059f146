"""Patterns for statements and wishes in Italian."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE, Row

# Every statement or wish in this language contains one of these words. "-o" stands for any word that ends in "o".
NEEDS = frozenset(
    (
        "-o -mi mi mia miei mie ci ho non abbiamo siamo nostra nostre nostri gli tutti tutte ogni il la i sono "
        "preferisco qui per da sempre mai senza niente basta che puoi quando usa utilizza scrivi rispondi parla "
        "spiega cita inizia evita includi sappi abitiamo viviamo aspettiamo andiamo partiamo d l"
    ).split()
)

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"
_MONTH = r"(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre)"
_TIME = (
    rf"(?:\b(?:il (?:prossimo )?\d{{1,2}}\b|l['’](?:8|11)\b|(?:a|in|da|entro|ad) {_MONTH}|(?:questa|la prossima|in|quest['’]|l['’]) ?(?:estate|primavera|inverno|autunno)|(?:la settimana|il mese|l['’]anno|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica) prossim[oa]"
    r"|(?:la|il) prossim[oa] \w+|domani|dopodomani|(?:tra|fra) (?:\d+|una?|un|due|tre|qualche|pochi) \w+|(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)\b|questo (?:weekend|fine settimana)|a (?:natale|pasqua|capodanno)|nel 20\d\d|ieri|(?:la settimana|il mese|l['’]anno|l['’]estate) scors[oa]|(?:\d+|una?|un|due|tre) (?:giorni|settimane?|mesi|mese|anni|anno) fa))"
)
_ADV = r"(?:(?:ora|adesso|attualmente|anche|ancora|sempre|già|solo|davvero|molto|tanto|tantissimo|soprattutto|appena|da poco|recentemente|da (?:\w+ )?\w+ (?:anni|mesi|anno)|qui|quasi|abbastanza|normalmente|spesso|originariamente|proprio|più|mai|da solo|da sola|particolarmente) ){0,3}"
FRONT = r"(?:(?:io|noi|a me|ora|adesso|attualmente|oggi|in questo periodo|da (?:\w+ )?\w+ (?:anni|mesi)|dal \d{4}|inoltre|ultimamente|di solito|ogni \w+|tutti i \w+|tutte le \w+|il (?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato)|la domenica|nel weekend|nel fine settimana|la (?:mattina|sera)|nel tempo libero|con mi[oa] \w+|di mestiere|di professione|per lavoro))"
_MY = r"(?:mi[oa]|il mio|la mia|nostr[oa]|il nostro|la nostra)"
_ONE = r"(?P<who>madre|mamma|padre|papà|marito|moglie|fidanzat[oa]|ragazz[oa]|compagn[oa]|cap[oa]|suocer[oa]|miglior[e]? amic[oa])"
_SOME = (
    r"(?P<who>fratello|sorella|figli[oa]|nonn[oa]|zi[oa]|cugin[oa]|nipote|cognat[oa]|fratellino|sorellina|bambin[oa])"
)
_KIN = r"(?:madre|mamma|padre|papà|marito|moglie|fidanzat[oa]|ragazz[oa]|compagn[oa]|suocer[oai]|miglior[e]? amic[oa]|fratell[oi]|sorell[ae]|figli[oae]?|nonn[oaie]|zi[oaie]|cugin[oaie]|nipot[ei]|cognat[oa]|genitori|bambin[oaie]|gemell[ie]|neonat[oa]|coinquilin[oa]|famiglia|ex|fratellino|sorellina)"
_PET = r"(?:cane|cagnolin[oa]|cagna|cucciolo|gatt[oa]|gattin[oa]|cavallo|coniglio|criceto|pappagallo|tartaruga|canarino|pesce|gallina|asino|capra|furetto|labrador|bassotto|barboncino)"
_NOT = r"(?!(?:quando|come|che|quest[oaie]|quell[oaie]|il tuo|la tua|i tuoi|le tue|l['’]idea|se|ciò|tutto|niente|il fatto|il modo|di più (?:la|il) (?:prim|second|terz|ultim)\w+)\b)"
_ILL = r"(?:l['’]|un['’]|una |la |il |un |le |i )?(?:\w+ )?(?:allergi[ae]|asma|diabete|emicrani[ae]|epilessia|ansia|depressione|artrite|artrosi|celiachia|intolleranz[ae]|ipertensione|pressione alta|colesterolo|psoriasi|eczema|dermatite|endometriosi|alzheimer|parkinson|cancro|tumore|demenza|sclerosi|adhd|autismo|dislessia|insonnia|ipotiroidismo|tiroide|fibromialgia|anemia|gastrite|reflusso|ernia|scoliosi|apnee?|vertigini|crohn|colon irritabile|lupus|rinite|miopia|favismo|mal di schiena|problemi (?:di|al|alla) \w+)"
_JOB = (
    r"(?:medic[oa]|dottor\w*|infermier[ea]|insegnante|maestr[oa]|professor\w*|prof\b|ingegnere|avvocat[oa]|student\w*|programmat\w+|sviluppat\w+|cuoc[oa]|chef\b|architett[oa]|giornalista|dentista|contabile|commercialista|ragionier[ea]|grafic[oa]|musicista|fotograf[oa]|elettricista|idraulic[oa]|psicolog[oa]|veterinari[oa]|tradutt\w+|interprete"
    r"|fisioterapista|camerier[ea]|barista|pensionat[oa]|farmacista|parrucchier[ea]|estetista|falegname|muratore|imbianchin[oa]|meccanic[oa]|autista|tassista|camionista|pilota|hostess|steward|militare|soldato|carabiniere|poliziott[oa]|vigile|pompiere|postin[oa]|segretari[oa]|impiegat[oa]|ostetric[oa]|logopedista|ottic[oa]|educat\w+|pedagogista|assistente|operat\w+|oss\b"
    r"|babysitter|tata|commess[oa]|vendit\w+|cassier[ea]|libraio|libraia|bibliotecari[oa]|fornaio|fornaia|panettiere|pasticcer[ea]|pasticciere|macellaio|pescivendol[oa]|agricolt\w+|contadin[oa]|allevat\w+|viticolt\w+|enolog[oa]|giardinier[ea]|fiorista|fioraio|fioraia|apicolt\w+|imprendit\w+|libero professionista|freelance|consulente|manager|dirett\w+|responsabile|tecnic[oa]|analista|informatic[oa]|scienziat[oa]|ricercat\w+|fisic[oa]|chimic[oa]|biolog[oa]|geolog[oa]|matematic[oa]|economista|storic[oa]|filosof[oa]"
    r"|scritt\w+|poeta|poetessa|attore|attrice|cantante|baller\w+|regista|artista|scult\w+|ceramista|sart[oa]|orafo|orafa|notai[oa]|giudice|magistrat[oa]|funzionari[oa]|bancari[oa]|agente immobiliare|guida turistica|allenat\w+|istrutt\w+|arbitro|casaling[oa]|tirocinante|stagista|apprendista|dottorand[oa]|operai[oa]|magazzinier[ea]|saldat\w+|badante|bidell[oa]|portinai[oa]|pescatore|marinaio|prete|disoccupat[oa]|restaurat\w+|designer|social media manager|copywriter|barbiere|tatuat\w+|pizzaiol[oa]|gelataio)"
)
_LANG = r"(?:italiano|inglese|francese|tedesco|spagnolo|portoghese|cinese|russo|arabo|giapponese|coreano|polacco|rumeno|albanese|olandese|svedese|greco|turco|latino|napoletano|sardo)"

USER: tuple[Row, ...] = (
    ("name", rf"(?:io )?(?:mi chiamo|il mio nome è|tutti mi chiamano|gli amici mi chiamano|mi chiamano) {_NAME}"),
    ("name", r"(?:mi chiamo|il mio nome è) (?P<value>[a-zà-ÿ-]{2,15})(?=[,.!]| e\b|$)"),
    ("name", rf"(?:io )?sono {_NAME}(?=,? (?:e )?(?:lavoro|vivo|abito|ho|studio|vengo|vorrei|cerco)\b|, \d\d\b|, (?:piacere|un[ao']?|di|molto lieto|lieta)\b)"),
    ("age", rf"(?:ho|compio|ho compiuto|ho appena compiuto|sto per compiere|compirò) {_ADV}(?P<value>\d\d) anni(?! (?:di|in|che|d['’])\b)"),
    ("birthday", r"(?:il mio compleanno è|compio gli anni|faccio gli anni|sono nat[oa]) (?:il|l['’]) ?(?P<value>\d{1,2} \w+)"),
    ("birthday", r"sono nat[oa] nel (?P<value>\d{4})"),
    ("lives", rf"(?:abito|vivo|abitiamo|viviamo|risiedo|sto) {_ADV}(?:a|ad|in|nel|nella|vicino a) {_PLACE}"),
    ("lives", rf"(?:abito|vivo) {_ADV}(?:a|ad) (?!(?:casa|un|una|un['’])\b)(?P<value>\w+)(?=[,.!]|$| e\b| con\b)"),
    ("lives", rf"(?:mi sono|ci siamo|mi ero) {_ADV}(?:trasferit[oaie]|spostat[oa]) {_ADV}(?:a|ad|in|nel) {_PLACE}"),
    (None, rf"(?:abito|vivo|abitiamo|viviamo) {_ADV}(?:in|con|da sol[oa]|al|vicino|fuori|a)\b"),
    ("from", rf"(?:vengo (?:da|dalla|dal|dall['’]) ?|sono (?:di|originari[oa] (?:di|della|del|dell['’])) ?|sono nat[oa] (?:e cresciut[oa] )?(?:a|in) ){_PLACE}"),
    (None, r"sono cresciut[oa] (?:a|in|con) \w+"),
    ("work", rf"(?:lavoro {_ADV}come|faccio {_ADV}(?:il|la|l['’]|lo)) ?(?!(?:spesa|doccia|colazione|punto|stesso|possibile|bravo|mio|mia|pane|giro|pieno)\b){VALUE}"),
    ("work", rf"(?:sono|sono diventat[oa]|sto per diventare) {_ADV}(?:un |una |un['’])?(?:(?:giovane|futur[oa]|ex|brav[oa]) )?(?P<value>{_JOB})\b"),
    ("work", rf"sono {_ADV}(?P<value>in pensione|disoccupat[oa]|in maternità|in cassa integrazione|senza lavoro|in aspettativa|in congedo)\b"),
    ("work", r"(?:il mio lavoro è|di lavoro faccio|mi occupo di) (?!(?:questo|molto|troppo|noioso)\b)(?P<value>[^,.;!?]+)"),
    ("employer", rf"lavoro {_ADV}(?:presso|per|alla|da|in|al|all['’]) ?{_PLACE}"),
    (None, rf"lavoro {_ADV}(?:in|per|da casa|di notte|part[- ]time|a turni|nel|nella|al|alla|presso|su turni|come)\b"),
    ("studies", rf"(?:studio|sto studiando|mi sto laureando in|faccio (?:un|il) (?:master|dottorato|corso)(?: (?:di|in|a))?) {_ADV}(?!(?:questo|per|a|molto|il problema)\b){VALUE}"),
    (None, r"(?:gestisco|dirigo|ho|guido|coordino|possiedo) (?:un|una|un['’]|il|la|lo) ?(?:\w+ )?(?:team|squadra|reparto|negozio|ristorante|bar|azienda|impresa|fattoria|agriturismo|scuola|officina|hotel|studio|panificio|libreria|agenzia|startup|pizzeria|bottega|b&b)\b"),
    ("family:{who}", rf"{_MY} {_ONE}(?: si chiama|,)? {_NAME}"),
    ("family:{who}:{value}", rf"{_MY} {_SOME}(?: maggiore| minore| più (?:grande|piccol[oa]))?(?: si chiama|,)? {_NAME}"),
    ("pet:{value}", rf"{_MY} {_PET}(?: si chiama|,)? {_NAME}"),
    ("pet:{value}", rf"(?:ho|abbiamo) (?:un|una|un['’]) ?{_PET}(?: \w+)?(?: che si chiama|,| di nome) {_NAME}"),
    (None, rf"(?:a me )?(?:non )?(?:mi (?:piac(?:e|ciono)|fa(?:nno)? schifo|appassiona(?:no)?|interessano)|amo|adoro|odio|detesto|preferisco|sopporto|tollero|apprezzo) {_ADV}{_NOT}\w+"),
    (None, r"(?:sono|non sono) (?:(?:un|una|molto|grande|gran) ){0,2}(?:fan|appassionat[oa]|amante|tifos[oa]) (?:di|del|della|dei|delle|dell['’]) ?(?!(?:questo|ciò)\b)\w+"),
    ("favourite {kind}", r"(?:il mio|la mia|i miei|le mie) (?P<kind>(?!(?:opzione|versione|risposta|parte|momento)\b)\w+) (?:preferit[oaie]) (?:è|sono|resta) (?!(?:questo|quello|che|quando)\b)(?P<value>[^,.;!?]+)"),
    (None, rf"non (?:mangio|bevo|fumo|posso (?:mangiare|bere|prendere|guidare|correre)|tollero|digerisco|uso|guardo|ho (?:figli|fratelli|la patente|la macchina|animali)) ?{_ADV}(?!(?:questo|vedere|che|capire)\b)\w*"),
    (None, rf"(?:parlo|sto imparando|imparo|non parlo|capisco|insegno) {_ADV}(?:(?:un po['’] (?:di|d['’])|bene|fluentemente|il|l['’]|lo) ?)?{_LANG}\b|la mia (?:lingua madre|madrelingua) è \w+"),
    ("diet", rf"(?:sono|sono diventat[oa]|siamo) {_ADV}(?P<value>vegetarian[oaie]|vegan[oaie]|pescetarian[oa]|flexitarian[oa])\b"),
    (None, rf"(?:sono|siamo) {_ADV}(?:allergic[oa] (?:a|ai|al|alle|alla|agli|all['’]|allo)|celiac[oa]|diabetic[oa]|asmatic[oa]|ipertes[oa]|intollerante|sposat[oaie]|divorziat[oa]|separat[oa]|vedov[oa]|single|incinta|fidanzat[oaie]|mancin[oa]|daltonic[oa]|miope|sord[oa]|cec[oa]|autistic[oa]|dislessic[oa]|epilettic[oa]|mamma di|papà di|madre di|padre di|figli[oa] unic[oa]|mattinier[oa]|astemi[oa]|musulman[oa]|cattolic[oa]|ebre[oa]|ate[oa]|gay|lesbica|trans|italian[oa]|svizzer[oa]|romen[oa]|albanes[ei]|a dieta)\b"),
    (None, rf"(?:ho|abbiamo) {_ADV}(?:un['’]?|una|due|tre|quattro|cinque|\d) ?(?:(?:piccol[oa]|vecchi[oa]|grande) )?(?:can[ei]|gatt[oiae]|figli[oae]?|fratell[oi]|sorell[ae]|cavall[oi]|allergi[ae]|bambin[oaie]|gemell[ie]|nipot[ei]|gallin[ae]|conigl[io]+|tartarugh?[ae]|macchina|auto|moto|bici|pianoforte|chitarra|casa|appartamento|giardino|orto|barca|camper|{_PET})\b"),
    (None, rf"(?:ho|soffro di|soffro d['’]) ?{_ADV}{_ILL}\b|mi hanno (?:diagnosticato|operat[oa]) \w+|mi sono (?:rott[oa]|slogat[oa]|fratturat[oa]) (?:il|la|un|una|l['’])"),
    (None, r"(?:suono|gioco a|pratico|colleziono|corro|nuoto|canto|ballo|dipingo|arrampico|medito|cucino|leggo|cammino|mi alleno|faccio) ?(?:il |la |lo |l['’]|i |le |in un |in )?(?!(?:questo|ciò|fatica)\b)(?:\w+ ){0,5}(?:piano|pianoforte|chitarra|violino|flauto|batteria|basso|violoncello|tromba|sassofono|arpa|calcio|calcetto|tennis|padel|basket|scacchi|rugby|pallavolo|golf|yoga|pilates|boxe|nuoto|coro|volontariato|francobolli|monete|vinili|maratone|tutti i giorni|ogni \w+|il (?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato)|la (?:domenica|mattina|sera)|volte (?:a|alla) settimana)\b"),
    (None, r"(?:vado|esco|faccio|ceno|pranzo|mangio|mi alzo|mi sveglio|bevo|prendo|visito|vedo|chiamo|cucino|lavoro|ho lezione) (?:\w+ ){0,8}?(?:tutti i giorni|tutte le \w+|ogni (?:giorno|mattina|sera|settimana|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|estate|anno)|(?:una|due|tre|\d) volt[ae] (?:a|alla) settimana|il (?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato)|la domenica|nel (?:weekend|fine settimana))\b"),
    (None, r"(?:tutti i \w+|ogni (?:mattina|sera|giorno|settimana|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)|il (?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato)(?: (?:mattina|sera))?|la domenica(?: (?:mattina|sera))?|nel (?:weekend|fine settimana)),? (?:di solito )?(?:vado|esco|faccio|ceno|mangio|gioco|suono|corro|nuoto|ho|lavoro|cucino|andiamo|cuciniamo|mangiamo) \w+"),
    (None, rf"(?:mi[oa]|il mio|la mia|i miei|le mie|nostr[oa]|il nostro|la nostra|i nostri|le nostre) (?:due |tre )?(?:{_KIN}|{_PET}|cani|gatti)(?: maggiore| minore| più (?:grande|piccol[oa]))?(?:,? {ONE_NAME})? (?:non )?(?:è|sono|vive|vivono|abita|lavora|ama|ha|hanno|si chiamano?|mangia|beve|parla|gioca|studia|va|viene|vengono|compie|inizia|odia|adora|può|è mort[oa]|si sposa|si è \w+|suona|dorme|soffre|arriva|fa) (?!(?:che|questo)\b)\w+"),
    (None, r"a mi[oa] \w+ (?:non )?piac(?:e|ciono) \w+"),
    (None, r"(?:ho|abbiamo) (?:appena |finalmente |da poco )?(?:smesso di|lasciato|mollato|smesso con|rinunciato a) (?!(?:perdere|stare|un messaggio)\b)\w+|non (?:\w+) più (?:\w+)"),
    (None, rf"(?:uso|utilizzo|programmo in|guido) {_ADV}(?:un |una |il |la |l['’])?{CAPITAL}[\w.+#-]+"),
    (None, r"(?:i miei hobby|il mio hobby|le mie passioni|la mia passione|il mio passatempo)(?: preferit[oa])? (?:sono|è) \w+"),
    (None, r"(?:il mio|la mia) (?:fuso orario|indirizzo|numero di \w+|taglia|gruppo sanguigno|città natale|segno zodiacale|religione|medico|dentista|macchina|auto|telefono|portatile|computer) (?:è|si chiama) (?!(?:non|molto|rott[oa]|sbagliat[oa])\b)\w+"),
)  # fmt: skip
EVENTS: tuple[Row, ...] = (
    (None, rf"(?:mi |ci )?(?:parto|volo|vado|andiamo|partiamo|inizio|iniziamo|comincio|sposo|sposiamo|trasferisco|trasferiamo|operano|laureo|ho|abbiamo|faccio|festeggio|festeggiamo|corro|compio|torno|finisco|visito|visitiamo|andrò|partirò|inizierò|devo fare|sostengo) (?!(?:questo|che|capire|visto|bisogno|provato|un problema|una domanda)\b)(?=[^.?!;]{{0,80}}{_TIME})[^.?!;]{{3,}}"),
    (None, rf"{_TIME}(?: \w+)?,? (?:mi |ci )?(?:parto|volo|vado a|vado in|andiamo|partiamo|inizio|iniziamo|comincio|sposo|sposiamo|trasferisco|trasferiamo|operano|laureo|ho (?:un|una|il|la|l['’])|festeggio|festeggiamo|corro|compio) ?(?!(?:questo|vedere)\b)\w+"),
    (None, rf"{_MY} (?:\w+ )?(?:matrimonio|compleanno|esame|colloquio|appuntamento|volo|operazione|trasloco|laurea|concerto|viaggio|vacanza|anniversario|treno) (?:è|parte|inizia|cade) (?:il|in|a|domani|l['’]|la|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)"),
    (None, r"(?:aspettiamo|aspetto) (?:un|il nostro|una|due) ?(?:\w+ )?(?:bambin[oa]|figli[oa]|gemelli)\b|(?:mi sposo|ci sposiamo|sto per (?:sposarmi|diventare (?:padre|madre|papà|mamma)|trasferirmi))\b|mi sto (?:allenando|preparando) per (?:un|una|la|il|l['’]|i) ?\w+|sto (?:scrivendo (?:un romanzo|un libro|la tesi)|risparmiando per|ristrutturando (?:casa|la|il))"),
    (None, r"(?:ho|abbiamo) (?:appena |finalmente |da poco )?(?:adottato|comprato|venduto|superato l['’]esame|perso il (?:lavoro|mio)|preso (?:la patente|un (?:cane|gatto)|casa)|cambiato lavoro|iniziato (?:un|una|a)|cominciato (?:un|una|a)|finito (?:l['’]università|la tesi|gli studi)) ?(?!(?:questo|capire)\b)\w*|mi sono (?:appena )?(?:laureat[oa]|sposat[oa]|licenziat[oa]|iscritt[oa] (?:a|in)|fidanzat[oa]|separat[oa])\b|sono (?:appena )?andat[oa] in pensione"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:io )?(?:sono|qui) {_NAME}(?=[,.!]|$| e\b| di\b| qui\b)"),
)  # fmt: skip
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:puoi )?(?:chiamami|chiamarmi) (?:pure |semplicemente )?(?P<value>{ONE_NAME})"),
    (None, r"(?:per favore,? )?(?:rispondi(?:mi)?|scrivi(?:mi)?|usa|utilizza|spiega(?:mi)?|dammi|parla(?:mi)?|cita|inizia|evita|includi|consiglia(?:mi)?)\b[^.?!:]{0,60}\b(?:sempre|mai|d['’]ora in poi)\b"),
    (None, r"(?:per favore,? )?non (?:\w+ )?(?:usare|rispondere|scrivere|aggiungere|mettere|darmi|dare|iniziare|consigliarmi|dirmi|suggerirmi|scusarti|propormi|parlarmi)(?:mi)? (?:mai|più)\b|(?:per favore,? )?(?:niente|basta|senza) (?:emoji|scuse|elenchi|anglicismi|punti esclamativi|faccine)(?: con me| per favore|,? grazie)?\W*$|non usare (?:emoji|anglicismi|gergo|punti esclamativi|elenchi puntati)"),
    (None, r"(?:per favore,? )?(?:dammi del (?:tu|lei))\b|(?:rispondi|scrivi|parla)(?:mi)? (?:solo |soltanto )?in (?:italiano|inglese|modo (?:breve|conciso|semplice))(?:,? per favore)?\W*$"),
    (None, r"(?:d['’]ora in poi|da ora in poi|da adesso in poi|da oggi in poi|in futuro|d['’]ora in avanti)[,:]? (?!(?:io|sarò)\b)\w+"),
    (None, r"(?:per favore,? )?(?:ricorda(?:ti)?|tieni presente|tieni a mente|non dimenticare|segnati|annota|sappi) che (?!(?:questo|il codice|la funzione|bisogna)\b)(?:\w|l['’])"),
    (None, r"(?:preferisco|voglio|vorrei) (?:(?:le )?risposte (?:brevi|corte|lunghe|dettagliate|concise|dirette|in)|che (?:tu )?(?:mi )?(?:risponda|parli|dia del tu|usi|scriva))\b|quando (?:ti |mi )?[^.?!:]{3,60}, (?:usa|rispondi|scrivi|metti|non) [^.?!]*\b(?:sempre|mai)\b"),
)  # fmt: skip
