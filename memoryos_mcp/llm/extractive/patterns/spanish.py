"""Patterns for statements and wishes in Spanish."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE, Row

# Every statement or wish in this language contains one of these words. "-o" stands for any word that ends in "o".
NEEDS = frozenset(
    (
        "-o -me me mi mis nos soy estoy no nuestra nuestras nuestros somos estamos acabo vivimos trabajamos "
        "tenemos nací crecí dejé hemos compré compramos adopté adoptamos vendí renuncié perdí aprobé todos todas "
        "cada los las siempre nunca jamás dime por a de en recuerda apunta anota ten sin responde contesta escribe "
        "usa utiliza explica da habla empieza termina cita incluye evita recomienda sugiere que puedes cuando el "
        "la"
    ).split()
)

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"
_MONTH = r"(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre)"
_TIME = (
    rf"\b(?:el (?:próximo )?(?:\d{{1,2}}|lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b|(?:en|a (?:principios|finales) de|desde) {_MONTH}|(?:en|este|el próximo) (?:verano|otoño|invierno|primavera)|(?:la semana|el mes|el año) que viene"
    r"|(?:la próxima semana|el próximo (?:mes|año|\w+))|mañana\b|pasado mañana|dentro de (?:\d+|una?|dos|tres|unos) \w+|en (?:\d+|una?|dos|tres) (?:días?|semanas?|meses|mes|años?)|este fin de semana|en (?:navidad|semana santa)|en 20\d\d|ayer|la semana pasada|el (?:mes|año) pasado|hace (?:\d+|una?|dos|tres) \w+)"
)
_ADV = r"(?:(?:ahora|actualmente|también|todavía|aún|siempre|ya|solo|sólo|realmente|mucho|muchísimo|muy|especialmente|sobre todo|recién|recientemente|desde hace (?:\w+ )?\w+|desde (?:\d{4}|\w+)|aquí|casi|bastante|normalmente|a menudo|originalmente|mayormente|sola|solo) ){0,3}"
FRONT = r"(?:(?:ahora|actualmente|hoy en día|desde hace (?:\w+ )?\w+ \w+|desde \d{4}|además|últimamente|a mí|yo|nosotros|normalmente|cada \w+|todos los \w+|los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos)(?: por la \w+)?|los fines de semana|por las (?:mañanas|tardes|noches)|en mi tiempo libre|con mi \w+))"
_ONE = r"(?P<who>madre|mamá|padre|papá|esposo|esposa|marido|mujer|novia|novio|pareja|prometid[oa]|jef[ea]|suegr[oa]|mejor amig[oa])"
_SOME = r"(?P<who>herman[oa]|hij[oa]|abuel[oa]|t[ií][oa]|prim[oa]|sobrin[oa]|cuñad[oa]|niet[oa]|bebé|niñ[oa])"
_KIN = r"(?:madre|mamá|padre|papá|esposo|esposa|marido|mujer|novi[oa]|pareja|prometid[oa]|suegr[oa]s?|mejor amig[oa]|herman[oa]s?|hij[oa]s?|abuel[oa]s?|t[ií][oa]s?|prim[oa]s?|sobrin[oa]s?|cuñad[oa]s?|niet[oa]s?|padres|bebé|niñ[oa]s?|gemel[oa]s|mellizos|compañer[oa] de piso|familia|ex)"
_PET = r"(?:perr[oa]|perrit[oa]|gat[oa]|gatit[oa]|caballo|yegua|conej[oa]|hámster|loro|mascota|tortuga|cachorr[oa]|canario|periquito|pez|gallina|burro|cobaya|hurón|labrador|galgo|caniche)"
_NOT = r"(?!(?:eso|esto|aquello|ese|esa|este|esta|tu|tus|su|que|cuando|cómo|la (?:idea|forma|manera)|lo que|todo|nada|él|ella|si)\b)"
_ILL = r"(?:una? |la |el )?(?:\w+ )?(?:alergias?|asma|diabetes|migrañas?|epilepsia|ansiedad|depresión|artritis|artrosis|celiaquía|intolerancia|hipertensión|la tensión alta|tensión alta|colesterol|psoriasis|eccema|dermatitis|endometriosis|alzheimer|parkinson|cáncer|demencia|esclerosis|tdah|autismo|dislexia|insomnio|hipotiroidismo|fibromialgia|anemia|gastritis|reflujo|hernia|escoliosis|apnea del sueño|vértigo|crohn|colon irritable|lupus|rinitis|miopía|astigmatismo|problemas de \w+)"
_JOB = (
    r"(?:médic[oa]|enfermer[oa]|profesora?|profe\b|maestr[oa]|ingenier[oa]|abogad[oa]|estudiante|programadora?|desarrolladora?|cociner[oa]|chef\b|arquitect[oa]|periodista|dentista|contadora?|contable|diseñadora?|músic[oa]|fotógraf[oa]|electricista|fontaner[oa]|plomer[oa]|psicólog[oa]|veterinari[oa]|traductora?"
    r"|fisioterapeuta|fisio\b|camarer[oa]|meser[oa]|farmacéutic[oa]|jubilad[oa]|policía|bomber[oa]|peluquer[oa]|carpinter[oa]|albañil|pintora?|mecánic[oa]|conductora?|taxista|camioner[oa]|piloto|azafata|militar|soldado|carter[oa]|secretari[oa]|administrativ[oa]|auxiliar|matrona|partera|logopeda|óptic[oa]|educadora?|pedagog[oa]|trabajadora? social"
    r"|niñera|canguro|vendedora?|comercial|dependient[ea]|cajer[oa]|librer[oa]|bibliotecari[oa]|panader[oa]|pasteler[oa]|carnicer[oa]|pescader[oa]|agricultora?|ganader[oa]|jardiner[oa]|florista|apicultora?|empresari[oa]|emprendedora?|autónom[oa]|freelance|consultora?|gerente|directora?|jef[ea] de|encargad[oa]|técnic[oa]|analista|informátic[oa]|científic[oa]|investigadora?|físic[oa]|químic[oa]|biólog[oa]|geólog[oa]|matemátic[oa]|economista|historiadora?|filósof[oa]"
    r"|escritora?|poeta|actor|actriz|cantante|bailarín|bailarina|directora? de cine|artista|escultora?|ceramista|modist[oa]|sastre|joyer[oa]|notari[oa]|juez[a]?|funcionari[oa]|banquer[oa]|agente inmobiliari[oa]|guía turístic[oa]|entrenadora?|monitora?|árbitro|ama de casa|amo de casa|becari[oa]|aprendiz|doctorand[oa]|opositora?|instructora?|cuidadora?|limpiadora?|conserje|soldadora?|operari[oa]|obrer[oa]|marinero|pescador|minero|sacerdote|monja)"
)
_LANG = r"(?:español|inglés|francés|alemán|italiano|portugués|catalán|euskera|gallego|chino|ruso|árabe|japonés|coreano|polaco|holandés|sueco|griego|turco|quechua|guaraní|hebreo)"

USER: tuple[Row, ...] = (
    ("name", rf"(?:yo )?(?:me llamo|mi nombre es|todos me llaman|todo el mundo me llama|mis amigos me llaman|me dicen|me llaman|me conocen como) {_NAME}"),
    ("name", r"(?:me llamo|mi nombre es) (?P<value>[a-zà-ÿ-]{2,15})(?=[,.!]| y\b|$)"),
    ("name", rf"soy {_NAME}(?=,? (?:y )?(?:trabajo|vivo|tengo|soy|estudio|necesito|quiero)\b|, \d\d\b|, (?:un|una|de|mucho gusto|encantad[oa])\b)"),
    ("age", rf"(?:tengo|cumplí|acabo de cumplir|cumplo|voy a cumplir|he cumplido) {_ADV}(?P<value>\d\d) años(?! (?:de|en|que|trabajando|viviendo|estudiando|casad|con|siendo)\b)"),
    ("birthday", r"(?:mi cumpleaños es|cumplo años|nací) el (?P<value>\d{1,2} de \w+)"),
    ("birthday", r"nací en (?P<value>\d{4})"),
    ("lives", rf"(?:vivo|vivimos|resido|residimos|estoy viviendo|estamos viviendo) {_ADV}en (?:el |la |las |los )?(?!(?:una?|un)\b){_PLACE}"),
    ("lives", rf"vivo {_ADV}en (?!(?:una?|el|la|las|los|mi|casa|pareja|este|esta|ese)\b)(?P<value>\w+)(?=[,.!]|$| y\b| con\b)"),
    ("lives", rf"(?:me (?:acabo de )?mud(?:é|ar)|acabo de mudarme|acabamos de mudarnos|nos mudamos|me he mudado|nos hemos mudado|me trasladé|me vine a vivir|me mudé hace \w+) ?{_ADV}a (?:la |el )?{_PLACE}"),
    (None, rf"(?:vivo|vivimos) {_ADV}(?:en (?:una?|el|la|los|las|casa)|con|sola?|cerca|a las afueras)\b"),
    ("from", rf"(?:soy|vengo|somos) {_ADV}(?:originari[oa] )?(?:de|del) (?:la |el )?{_PLACE}"),
    ("from", rf"nací {_ADV}en (?:la |el )?{_PLACE}"),
    (None, r"(?:crecí|me crié|me crie) en \w+"),
    ("work", rf"trabajo {_ADV}(?:como|de) (?!(?:lunes|noche|día|mañana|tarde|\d)\b){VALUE}"),
    ("work", rf"soy {_ADV}(?:una? )?(?:(?:joven|futur[oa]|buen|ex) )?(?P<value>{_JOB})\b(?! (?:de mi|de esta)\b)"),
    ("work", rf"(?:estoy|ando|me quedé|acabo de) {_ADV}(?P<value>en paro|desemplead[oa]|sin trabajo|jubilad[oa]|jubilarme|de baja(?: (?:maternal|paternal|médica))?|en el paro|de excedencia|retirad[oa])\b"),
    ("work", r"(?:mi trabajo es|mi profesión es|me dedico (?:a|al)) (?!(?:eso|esto|muy|aburrid\w+)\b)(?P<value>[^,.;!?]+)"),
    ("employer", rf"(?:trabajo|curro|laburo) {_ADV}(?:en|para) (?!(?:el|la|una?|casa|mí)\b){_PLACE}"),
    (None, rf"(?:trabajo|curro|laburo) {_ADV}(?:en|para|desde casa|de noche|por (?:la noche|las noches|mi cuenta)|por turnos|a (?:media jornada|tiempo parcial))\b"),
    ("studies", rf"(?:estudio|estoy estudiando|estoy haciendo (?:un|una|el|la) (?:máster|doctorado|grado|carrera|curso|tesis)(?: (?:de|en|sobre))?) {_ADV}(?!(?:esto|eso|para|en|mucho|el tema)\b){VALUE}"),
    (None, r"(?:dirijo|tengo|gestiono|llevo|lidero|manejo) (?:una?|el|la|mi) (?:\w+ )?(?:equipo|departamento|tienda|restaurante|cafetería|empresa|negocio|granja|finca|escuela|taller|bar|hotel|clínica|consulta|panadería|librería|peluquería|agencia|startup)\b"),
    ("family:{who}", rf"mi {_ONE}(?: se llama|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:mi|nuestr[oa]) {_SOME}(?: mayor| menor| pequeñ[oa])?(?: se llama|,)? {_NAME}"),
    ("pet:{value}", rf"(?:mi|nuestr[oa]) {_PET}(?: se llama|,)? {_NAME}"),
    ("pet:{value}", rf"(?:tengo|tenemos) (?:una?) {_PET}(?: \w+)?(?: que se llama|,| llamad[oa]) {_NAME}"),
    (None, rf"(?:a mí )?(?:no )?(?:me (?:gustan?|encantan?|fascinan?|apasionan?|chiflan?|flipan?|molan?|interesan? much\w+|dan? (?:asco|miedo)|molestan?)|odio|detesto|prefiero|amo|adoro|aborrezco|disfruto|no (?:soporto|aguanto|tolero)) {_ADV}(?:de |a )?{_NOT}\w+"),
    (None, r"(?:soy|no soy) (?:(?:muy|un|una|gran|super) ){0,2}(?:fan|aficionad[oa]|fanátic[oa]|apasionad[oa]|amante|hincha|seguidora?) (?:de|del|a|al) (?!(?:eso|esto|tu)\b)\w+"),
    ("favourite {kind}", r"(?:mi|mis) (?P<kind>(?!(?:opción|versión|respuesta|parte|momento)\b)\w+) (?:favorit[oa]s?|preferid[oa]s?) (?:es|son|siempre ha sido) (?!(?:eso|esto|que|cuando|cuál)\b)(?P<value>[^,.;!?]+)"),
    (None, r"(?:ya )?no (?:como|bebo|tomo|fumo|puedo (?:comer|beber|tomar|conducir|correr)|tolero|comemos|uso|veo|tengo (?:hijos|coche|carnet|hermanos|mascotas)) ?(?!(?:eso|esto|entender|ver|que|cómo)\b)\w*"),
    (None, rf"(?:hablo|estoy aprendiendo|aprendo|no hablo|entiendo|doy clases de|enseño) {_ADV}(?:(?:un poco de|algo de|con fluidez|bien) )?{_LANG}\b|mi (?:lengua materna|idioma materno) es \w+"),
    ("diet", rf"(?:soy|me hice|me he hecho|somos) {_ADV}(?P<value>vegetarian[oa]s?|vegan[oa]s?|pescetarian[oa]s?|flexitarian[oa]s?)\b"),
    (None, rf"(?:soy|somos) {_ADV}(?:alérgic[oa]s? (?:a|al)|celíac[oa]s?|celiac[oa]s?|diabétic[oa]|asmátic[oa]|hipertens[oa]|intolerante|zurd[oa]|daltónic[oa]|miope|sord[oa]|cieg[oa]|autista|disléxic[oa]|epiléptic[oa]|madre|padre|mamá de|papá de|hij[oa] únic[oa]|madrugadora?|abstemi[oa]|musulm[aá]n[a]?|católic[oa]|judí[oa]|ate[oa]|gay|lesbiana|trans|español[a]?|mexican[oa]|argentin[oa]|colombian[oa]|chilen[oa]|peruan[oa]|cuban[oa]|venezolan[oa]|casad[oa]|divorciad[oa]|solter[oa]|viud[oa])\b(?! (?:de|en) (?:esto|eso)\b)"),
    (None, rf"(?:estoy|estamos) {_ADV}(?:casad[oa]s?|divorciad[oa]s?|embarazada|comprometid[oa]s?|solter[oa]|separad[oa]s?|jubilad[oa]|aprendiendo a|a dieta|esperando (?:un bebé|gemelos)|recuperándome de)\b"),
    (None, rf"(?:tengo|tenemos) {_ADV}(?:una?|dos|tres|cuatro|cinco|\d) (?:(?:pequeñ[oa]|gran|viej[oa]) )?(?:perr|gat|hij|herman|alergia|caballo|niet|niñ|gallin|conej|tortug|loro|coche|carro|moto|bici|piano|guitarra|casa|piso|jardín|huerto|barco|furgoneta|{_PET})\w*"),
    (None, rf"(?:tengo|padezco|sufro) {_ADV}(?:de )?{_ILL}\b|me diagnosticaron \w+|me operaron de \w+|(?:me rompí|me torcí|me fracturé|me he roto) (?:el|la|un) \w+"),
    (None, r"(?:toco|juego al?|practico|colecciono|corro|nado|canto|bailo|pinto|escalo|medito|cocino|leo|camino|entreno) ?(?:el |la |en |a )?(?!(?:eso|esto|ese|esa|el tema)\b)(?:\w+ ){0,5}(?:piano|guitarra|violín|flauta|batería|bajo|chelo|trompeta|saxofón|fútbol|tenis|pádel|baloncesto|ajedrez|rugby|voleibol|golf|yoga|boxeo|natación|coro|sellos|monedas|vinilos|maratones|todos los días|cada \w+|los \w+|por las (?:mañanas|tardes|noches)|veces (?:a la|por) semana)\b"),
    (None, r"(?:siempre |normalmente |suelo )?(?:voy|salgo|hago|desayuno|ceno|almuerzo|como|me levanto|me acuesto|tomo|ir|salir|hacer|desayunar|levantarme|visito|veo|llamo) (?:\w+ ){0,8}?(?:todos los días|todas las \w+|cada (?:día|mañana|noche|semana|lunes|martes|miércoles|jueves|viernes|sábado|domingo|verano)|los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos)|(?:una|dos|tres|\d) ve(?:z|ces) (?:a la|por) semana|por las (?:mañanas|tardes|noches)|entre semana|los fines de semana)\b"),
    (None, r"(?:todos los \w+|cada (?:mañana|noche|semana|lunes|martes|miércoles|jueves|viernes|sábado|domingo)|los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos)(?: por la \w+)?|los fines de semana),? (?:siempre )?(?:voy|salgo|hago|desayuno|ceno|como|juego|toco|corro|nado|tengo|trabajo|cocino|visito|vamos|cocinamos|comemos) \w+"),
    (None, rf"(?:mi|mis|nuestr[oa]s?) (?:{_KIN}|{_PET}s?)(?: mayor| menor| pequeñ[oa])?(?:,? {ONE_NAME})? (?:no )?(?:es|son|está|están|vive|viven|trabaja|ama|tiene|tienen|se llaman?|come|bebe|habla|juega|estudia|va|viene|vienen|cumple|empieza|odia|adora|puede|murió|falleció|nació|se casa|se mudó|toca|duerme|sufre|llega|nos visita|le gustan?) (?!(?:que|eso|esto)\b)\w+"),
    (None, r"a mi (?:\w+) (?:no )?le (?:gustan?|encantan?|dan? (?:miedo|asco)) \w+"),
    (None, r"(?:he dejado|dejé|hemos dejado|acabo de dejar) (?:de (?:\w{3,})|el (?:tabaco|alcohol|café|trabajo|azúcar)|la (?:carne|carrera|universidad)|mi trabajo)\b(?! (?:de lado|claro)\b)"),
    (None, rf"(?:uso|utilizo|programo en|conduzco|manejo) {_ADV}(?:una? |el |la |mi )?{CAPITAL}[\w.+#-]+"),
    (None, r"(?:mis aficiones|mi afición|mis pasatiempos|mi pasatiempo|mis hobbies|mi hobby)(?: favorit[oa]s?)? (?:son|es) \w+"),
    (None, r"mi (?:zona horaria|dirección|número de \w+|talla|grupo sanguíneo|ciudad natal|signo|religión|médico|dentista|coche|móvil|portátil|ordenador|idioma) (?:es|se llama) (?!(?:no|muy|un problema)\b)\w+"),
    (None, r"(?:llevo|llevamos) (?!(?:esto|eso|un rato|horas|todo el día)\b)(?:\w+ ){1,5}?(?:años|meses)\b"),
)  # fmt: skip
EVENTS: tuple[Row, ...] = (
    (None, rf"(?:me |nos )?(?:viajo|vuelo|voy|vamos|viajamos|salgo|salimos|empiezo|empezamos|comienzo|caso|casamos|mudo|mudamos|operan|gradúo|tengo|tenemos|hago|celebro|celebramos|corro|cumplo|vuelvo|termino|visito|visitamos|iré|iremos|viajaré|empezaré|presento) (?!(?:eso|esto|que|saber|entender|a ver)\b)(?=[^.?!;]{{0,80}}{_TIME})[^.?!;]{{3,}}"),
    (None, rf"{_TIME}(?: \w+)?,? (?:me |nos )?(?:viajo|vuelo|voy a|vamos a|viajamos|empiezo|empezamos|comienzo|caso|casamos|mudo|mudamos|operan|gradúo|tengo (?:un|una|mi|el|la)|celebro|celebramos|corro|cumplo) (?!(?:eso|esto|ver|hacer esto)\b)\w+"),
    (None, r"(?:mi|nuestr[oa]) (?:\w+ )?(?:boda|cumpleaños|examen|entrevista|cita|vuelo|operación|mudanza|graduación|concierto|viaje|vacaciones|aniversario|tren) (?:es|son|sale|empieza|cae) (?:el|en|a|mañana|la)\b"),
    (None, r"(?:estamos esperando|esperamos|voy a tener|vamos a tener) (?:un|nuestro|una|gemelos|mellizos) ?(?:\w+ )?(?:bebé|hij[oa]|niñ[oa])?\b|(?:me caso|nos casamos|voy a casarme|vamos a casarnos|voy a ser (?:padre|madre|papá|mamá))\b|(?:estoy entrenando|me preparo|estoy preparando|estoy ahorrando|entreno) para (?:un|una|el|la|mi|comprar) \w+|estoy escribiendo (?:una novela|un libro|mi tesis|un poemario)"),
    (None, r"(?:acabo de|acabamos de|he|hemos) (?:adoptar|adoptado|comprar(?:me)?|comprado|vender|vendido|jubilarme|jubilado|graduarme|aprobar|aprobado|casarme|divorciarme|dejar|empezar (?:un|una|a)|perder mi|perdido mi|romper con|tener un hijo|separarme|sacarme el carnet) ?\w*|(?:adopté|adoptamos|compré|compramos|vendí|me jubilé|me gradué|aprobé|me casé|me divorcié|perdí mi|renuncié a) (?!(?:eso|esto)\b)\w*"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:yo )?(?:soy|aquí|habla) {_NAME}(?=[,.!]|$| y\b| de\b| aquí\b)"),
    ("name", rf"{_NAME} (?:aquí|al habla)(?=[,.!]|$)"),
)  # fmt: skip
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:puedes )?(?:llámame|dime|llamarme|decirme) (?P<value>{ONE_NAME})(?=[,.!]|$| (?:por favor|a secas|mejor)\b)"),
    (None, r"(?:por favor,? )?(?:responde|contesta|escribe|usa|utiliza|explica|da|dame|habla|háblame|respóndeme|contéstame|tutéame|trátame|empieza|termina|cita|incluye|evita|recomienda|sugiere)\b[^.?!:]{0,60}\b(?:siempre|nunca|jamás|a partir de ahora|en adelante)\b"),
    (None, r"(?:por favor,? )?(?:siempre|nunca|jamás) (?:me )?(?:responde|contestes|respondas|uses|utilices|escribas|usa|utiliza|des|pongas|empieces|hables|recomiendes|sugieras|digas|menciones|cites|contesta|habla|escribe|cita|trates)\b[^?]{0,60}"),
    (None, r"(?:por favor,? )?no (?:me )?(?:contestes|respondas|uses|utilices|escribas|des|pongas|empieces|hables|recomiendes|sugieras|digas|menciones|trates)\b[^?]{0,60}\b(?:nunca|jamás|siempre|más|emojis|jerga|exclamaciones|anglicismos|de usted|de tú|disculpas|viñetas)\b"),
    (None, r"(?:por favor,? )?(?:tutéame|trátame de (?:tú|usted)|háblame de (?:tú|usted))\b|(?:responde|contesta|háblame|escribe)(?:me)? (?:solo |sólo |únicamente )?en (?:español|inglés|catalán|frases cortas)(?:,? por favor)?\W*$|sin emojis(?:,? por favor)?\W*$"),
    (None, r"(?:a partir de ahora|de ahora en adelante|en adelante|en el futuro)[,:]? (?!(?:yo|voy|soy)\b)\w+"),
    (None, r"(?:por favor,? )?(?:recuerda|acuérdate de|ten en cuenta|no olvides|no te olvides de|apunta|anota|ten presente) que (?!(?:esto|eso|el código|la función|hay que)\b)\w+"),
    (None, r"(?:prefiero|quiero|me gustan) (?:las )?(?:respuestas|explicaciones) (?:cortas|breves|largas|detalladas|concisas|directas|en)\b|(?:quiero|prefiero) que (?:siempre |nunca )?(?:me )?(?:respondas|contestes|hables|trates|tutees|uses)\b|cuando (?:te |me )?[^.?!:]{3,60}, (?:siempre|nunca) \w+"),
)  # fmt: skip
