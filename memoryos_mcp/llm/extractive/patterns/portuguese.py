"""Patterns for statements and wishes in Portuguese."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE, Row

# Every statement or wish in this language contains one of these words. "-o" stands for any word that ends in "o".
NEEDS = frozenset(
    (
        "-o -ei me meu meus minha minhas eu nos nós sou estou vou não nossa nossas nossos somos estamos temos "
        "nasci cresci fui fiz parei moramos vivemos todo toda todos todas aos às pode podes chama chame por sempre "
        "nunca jamais sem responda responde escreva escreve use usa fale fala trate trata lembre lembra anote "
        "anota guarde note tenha a de daqui quando aqui torci parti pedi vendi é"
    ).split()
)

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"
_MONTH = r"(?:janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro)"
_TIME = (
    rf"\b(?:(?:no )?dia \d{{1,2}}|(?:em|no início de|no fim de|desde) {_MONTH}|(?:no|neste|este|no próximo) (?:verão|outono|inverno)|(?:na|nesta|esta|na próxima) primavera|(?:semana|mês|ano|segunda|terça|quarta|quinta|sexta|sábado|domingo)(?:-feira)? que vem|(?:na|no) próxim[oa] \w+|(?:no|na) \w+ que vem"
    r"|(?:n[oa] |próxim[oa] )(?:segunda|terça|quarta|quinta|sexta|sábado|domingo)|amanhã|daqui a \w+|em (?:\d+|uma?|dois|duas|três) (?:dias?|semanas?|meses|mês|anos?)|(?:este|neste|no próximo) (?:fim de semana|ano|mês)|no natal|na páscoa|em 20\d\d|ontem|(?:semana|mês|ano) passad[oa]|há (?:\d+|uma?|dois|duas|três) \w+)"
)
_ADV = r"(?:(?:agora|atualmente|também|ainda|sempre|já|só|somente|realmente|muito|mesmo|especialmente|sobretudo|recentemente|há (?:\w+ )?\w+ anos?|desde (?:\d{4}|\w+)|aqui|quase|bastante|normalmente|originalmente|sozinh[oa]|acabei de|mais) ){0,3}"
FRONT = r"(?:(?:eu|nós|a gente|agora|atualmente|hoje em dia|há \w+ anos|desde \d{4}|além disso|ultimamente|normalmente|geralmente|todo \w+|toda \w+|todos os \w+|todas as \w+|aos (?:sábados|domingos|fins de semana)|às \w+(?:-feiras)?|nos fins de semana|de manhã|à noite|no meu tempo livre|com (?:a )?(?:minha|o meu|meu) \w+|de profissão))"
_MY = r"(?:o |a )?(?:meu|minha|nosso|nossa)"
_ONE = r"(?P<who>mãe|pai|marido|esposa|esposo|mulher|namorad[oa]|noiv[oa]|companheir[oa]|parceir[oa]|chef[ea]|sogr[oa]|melhor amig[oa])"
_SOME = r"(?P<who>irmã|irmão|filh[oa]|avó|avô|ti[oa]|prim[oa]|sobrinh[oa]|cunhad[oa]|net[oa]|enteado|enteada|bebê|bebé)"
_KIN = r"(?:mãe|pai|marido|esposa|esposo|mulher|namorad[oa]|noiv[oa]|companheir[oa]|parceir[oa]|sogr[oa]s?|melhor amig[oa]|irmãs?|irmãos?|filh[oa]s?|avó|avô|avós|ti[oa]s?|prim[oa]s?|sobrinh[oa]s?|cunhad[oa]s?|net[oa]s?|pais|bebê|bebé|gêmeos|gémeos|crianças|família|ex|colega de (?:casa|quarto))"
_PET = r"(?:cão|cães|cachorr[oa]|cachorrinh[oa]|cadela|gat[oa]|gatinh[oa]|cavalo|égua|coelh[oa]|papagaio|tartaruga|hamster|canário|periquito|peixe|galinha|burro|porquinho|labrador|poodle|pet)"
_NOT = r"(?!(?:isso|isto|aquilo|ess[ea]|est[ea]|que|quando|como|seu|teu|sua|tua|sua|da ideia|do jeito|da forma|tudo|nada|se|d[oa] (?:segund|primeir|terceir|últim)\w+|[oa] (?:segund|primeir|terceir|últim)\w+)\b)"
_ILL = r"(?:uma? |o |a )?(?:\w+ )?(?:alergias?|asma|diabetes|enxaquecas?|epilepsia|ansiedade|depressão|artrite|artrose|doença celíaca|intolerância|hipertensão|pressão alta|tensão alta|colesterol|psoríase|eczema|dermatite|endometriose|alzheimer|parkinson|câncer|cancro|demência|esclerose|tdah|autismo|dislexia|insônia|insónia|hipotireoidismo|fibromialgia|anemia|gastrite|refluxo|hérnia|escoliose|apneia|vertigens?|labirintite|crohn|lúpus|rinite|sinusite|miopia|astigmatismo|problemas? (?:de|no|na) \w+)"
_JOB = (
    r"(?:médic[oa]|enfermeir[oa]|professora?|profe\b|engenheir[oa]|advogad[oa]|estudante|programadora?|desenvolvedora?|cozinheir[oa]|chef\b|arquitet[oa]|arquitect[oa]|jornalista|dentista|contadora?|contabilista|designer|músic[oa]|fotógraf[oa]|eletricista|electricista|encanadora?|canalizadora?|psicólog[oa]|veterinári[oa]|tradutora?|intérprete"
    r"|fisioterapeuta|garçom|garçonete|garçon|empregad[oa] de mesa|barista|aposentad[oa]|reformad[oa]|farmacêutic[oa]|cabeleireir[oa]|manicure|esteticista|carpinteir[oa]|marceneir[oa]|pedreir[oa]|pintora?|mecânic[oa]|motorista|taxista|caminhoneir[oa]|camionista|pilot[oa]|comissári[oa]|aeromoça|militar|soldado|policial|polícia|bombeir[oa]|carteir[oa]|secretári[oa]|auxiliar|administrativ[oa]|parteira|fonoaudiólog[oa]|óptic[oa]|educadora?|pedagog[oa]|assistente social"
    r"|babá|ama\b|vendedora?|comercial|lojista|caixa|livreir[oa]|bibliotecári[oa]|padeir[oa]|confeiteir[oa]|pasteleir[oa]|açougueir[oa]|talhante|peixeir[oa]|agricultora?|pecuarista|jardineir[oa]|florista|apicultora?|empresári[oa]|empreendedora?|autônom[oa]|autónom[oa]|freelancer|freela|consultora?|gerente|diretora?|directora?|chefe de|coordenadora?|supervisora?|técnic[oa]|analista|informátic[oa]|cientista|pesquisadora?|investigadora?|físic[oa]|químic[oa]|biólog[oa]|geólog[oa]|matemátic[oa]|economista|historiadora?|filósof[oa]"
    r"|escritora?|poeta|ator|atriz|cantora?|dançarin[oa]|bailarin[oa]|cineasta|artista|escultora?|ceramista|costureir[oa]|alfaiate|joalheir[oa]|notári[oa]|juiz|juíza|funcionári[oa] públic[oa]|servidora? públic[oa]|bancári[oa]|corretora?|guia turístic[oa]|treinadora?|personal trainer|árbitr[oa]|dona de casa|estagiári[oa]|aprendiz|doutorand[oa]|mestrand[oa]|instrutora?|cuidadora?|faxineir[oa]|diarista|porteir[oa]|soldadora?|operári[oa]|metalúrgic[oa]|marinheir[oa]|pescadora?|padre|pastor|desempregad[oa]|ilustradora?|editora?|publicitári[oa]|radialista|podólog[oa]|nutricionista|terapeuta)"
)
_LANG = r"(?:português|inglês|francês|alemão|espanhol|italiano|chinês|mandarim|russo|árabe|japonês|coreano|holandês|sueco|grego|turco|polonês|polaco|libras|crioulo|latim|hebraico)"

USER: tuple[Row, ...] = (
    ("name", rf"(?:(?:eu )?(?:me chamo|chamo-me)|o meu nome é|meu nome é|todos me chamam de|todo mundo me chama de|me chamam de|meus amigos me chamam de) {_NAME}"),
    ("name", r"(?:me chamo|chamo-me|meu nome é) (?P<value>[a-zà-ÿ-]{2,15})(?=[,.!]| e\b|$)"),
    ("name", rf"(?:eu )?sou (?:o |a )?{_NAME}(?=,? (?:e )?(?:trabalho|moro|vivo|tenho|estudo|preciso|quero)\b|, \d\d\b|, (?:prazer|um|uma|de)\b)"),
    ("age", rf"(?:tenho|fiz|acabei de fazer|acabo de fazer|vou fazer|faço|completei) {_ADV}(?P<value>\d\d) anos(?! (?:de|em|que|trabalhando|vivendo|casad)\b)"),
    ("birthday", r"(?:(?:o )?meu aniversário é|faço aniversário|faço anos|nasci) (?:em|no dia|a|dia) (?P<value>\d{1,2} de \w+)"),
    ("birthday", r"nasci em (?P<value>\d{4})"),
    ("lives", rf"(?:moro|vivo|moramos|vivemos|mora|resido|estou morando|estou a viver|estou vivendo) {_ADV}(?:em|no|na|nos|nas|perto de) (?!(?:um|uma)\b){_PLACE}"),
    ("lives", rf"(?:moro|vivo) {_ADV}em (?!(?:uma?|casa|apartamento)\b)(?P<value>\w+)(?=[,.!]|$| e\b| com\b)"),
    ("lives", rf"(?:me mudei|mudei-me|nos mudamos|mudámo-nos|acabei de me mudar|acabo de me mudar|acabamos de nos mudar|mudei) {_ADV}(?:para|pra|pro) (?:o |a )?{_PLACE}"),
    (None, rf"(?:moro|vivo|moramos|vivemos) {_ADV}(?:em|com|num|numa|no|na|sozinh[oa]|perto|fora)\b"),
    ("from", rf"(?:sou|venho|somos) {_ADV}(?:natural )?(?:de|do|da|dos) {_PLACE}"),
    ("from", rf"(?:eu )?nasci {_ADV}(?:e cresci )?(?:em|no|na) {_PLACE}"),
    (None, r"(?:eu )?(?:cresci|fui criad[oa]) (?:em|no|na|com) \w+"),
    ("work", rf"trabalho {_ADV}como {VALUE}"),
    ("work", rf"(?:sou|virei|me tornei|tornei-me|vou ser) {_ADV}(?:um |uma )?(?:(?:jovem|futur[oa]|ex-?) ?)?(?P<value>{_JOB})\b"),
    ("work", rf"(?:estou|fiquei) {_ADV}(?P<value>desempregad[oa]|aposentad[oa]|reformad[oa]|de licença(?: \w+)?|sem emprego|sem trabalho)\b"),
    ("work", r"(?P<value>(?:me aposentei|aposentei-me|reformei-me|perdi o emprego|pedi demissão|fui demitid[oa]))\b"),
    ("work", r"(?:(?:o )?meu trabalho é|minha profissão é|trabalho com) (?!(?:isso|muito|chato|o código|esse)\b)(?P<value>[^,.;!?]+)"),
    ("employer", rf"trabalho {_ADV}(?:na|no|para a|para o|para|pra|em) {_PLACE}"),
    (None, rf"trabalho {_ADV}(?:em|no|na|num|numa|para|de casa|à noite|de noite|por conta própria|por turnos|meio período|a tempo parcial|remoto)\b"),
    ("studies", rf"(?:estudo|estou estudando|estou a estudar|curso|faço (?:faculdade|mestrado|doutorado|doutoramento|um curso|licenciatura|pós)(?: (?:de|em|na))?) {_ADV}(?!(?:isso|isto|para|em|muito|o tema|que)\b){VALUE}"),
    (None, r"(?:dirijo|tenho|gerencio|giro|lidero|comando|administro|coordeno) (?:uma?|o|a|minha|meu) (?:\w+ )?(?:equipe|equipa|time|departamento|loja|restaurante|café|empresa|negócio|fazenda|sítio|escola|oficina|bar|hotel|clínica|consultório|padaria|livraria|salão|agência|startup|pousada|lanchonete)\b"),
    ("family:{who}", rf"{_MY} {_ONE}(?: se chama| chama-se|,)? {_NAME}"),
    ("family:{who}:{value}", rf"{_MY} {_SOME}(?: mais velh[oa]| mais nov[oa]| caçula)?(?: se chama| chama-se|,)? {_NAME}"),
    ("pet:{value}", rf"{_MY} {_PET}(?: se chama| chama-se|,)? {_NAME}"),
    ("pet:{value}", rf"(?:tenho|temos) (?:uma?) {_PET}(?: \w+)?(?: que se chama| que chama|,| chamad[oa]) {_NAME}"),
    (None, rf"(?:eu )?(?:não )?(?:gosto (?:muito |mais |bastante |imenso )?(?:de |d[eoa]s? )|adoro|amo|odeio|detesto|prefiro|curto|suporto|aguento|não gosto (?:muito )?de ) ?{_ADV}{_NOT}\w+"),
    (None, r"(?:sou|não sou) (?:(?:muito|um|uma|grande|super) ){0,2}(?:fã|apaixonad[oa]|amante|torcedora?|viciad[oa]) (?:de|do|da|dos|das|por|em) (?!(?:isso|isto)\b)\w+"),
    ("favourite {kind}", r"(?:o |a |os |as )?(?:meu|minha|meus|minhas) (?P<kind>(?!(?:opção|versão|resposta|parte|momento)\b)\w+) (?:favorit[oa]s?|preferid[oa]s?|predilet[oa]s?) (?:é|são|sempre foi) (?!(?:isso|isto|que|quando|ess[ea])\b)(?P<value>[^,.;!?]+)"),
    (None, rf"(?:já )?não (?:como|bebo|tomo|fumo|posso (?:comer|beber|tomar|dirigir|conduzir|correr)|tolero|comemos|uso|assisto|vejo televisão|tenho (?:filhos|carro|irmãos|carteira|carta)) ?{_ADV}(?!(?:isso|isto|que|entender|ver)\b)\w*"),
    (None, rf"(?:falo|estou aprendendo|estou a aprender|aprendo|não falo|entendo|ensino|dou aulas de) {_ADV}(?:(?:um pouco de|bem|fluentemente|fluente) )?{_LANG}\b|(?:a )?minha (?:língua materna|língua nativa) é \w+"),
    ("diet", rf"(?:sou|virei|me tornei|somos) {_ADV}(?P<value>vegetarian[oa]s?|vegan[oa]s?|pescetarian[oa]|flexitarian[oa])\b"),
    (None, rf"(?:sou|somos) {_ADV}(?:alérgic[oa]s? (?:a|ao|à|aos|às)|celíac[oa]s?|diabétic[oa]|asmátic[oa]|hipertens[oa]|intolerante|canhot[oa]|daltônic[oa]|míope|surd[oa]|ceg[oa]|autista|disléxic[oa]|epiléptic[oa]|mãe de|pai de|filh[oa] únic[oa]|notívag[oa]|abstêmi[oa]|muçulman[oa]|católic[oa]|evangélic[oa]|judeu|judia|ateu|ateia|gay|lésbica|trans|brasileir[oa]|portugues[a]?|português|angolan[oa]|moçambican[oa]|casad[oa]s?|divorciad[oa]|solteir[oa]|viúv[oa])\b"),
    (None, rf"(?:estou|estamos) {_ADV}(?:grávida|noiv[oa]s?|casad[oa]s?|separad[oa]s?|divorciad[oa]|aprendendo a|a aprender a|de dieta|em dieta|esperando (?:um bebê|gêmeos)|à espera de (?:um bebé|gémeos)|me recuperando de)\b"),
    (None, rf"(?:tenho|temos) {_ADV}(?:uma?|dois|duas|três|quatro|cinco|\d) (?:(?:pequen[oa]|velh[oa]|lind[oa]s?) )?(?:cães|cão|cachorr|gat|filh|irm|cavalo|alergia|net|criança|galinha|coelh|tartaruga|papagaio|carro|moto|bicicleta|bike|piano|violão|guitarra|casa|apartamento|jardim|horta|barco|sítio|menin|{_PET})\w*"),
    (None, rf"(?:tenho|sofro de|sofro com) {_ADV}{_ILL}\b|(?:fui diagnosticad[oa] com|me diagnosticaram com|fui operad[oa] d[eoa]) \w+|(?:quebrei|torci|parti|fraturei) (?:o|a|um) (?:\w+)"),
    (None, r"(?:toco|jogo|pratico|coleciono|corro|nado|canto|danço|pinto|escalo|medito|cozinho|leio|caminho|treino|pedalo|faço) ?(?:o |a |em |num |numa )?(?!(?:isso|isto|esse|questão)\b)(?:\w+ ){0,5}(?:piano|violão|guitarra|violino|flauta|bateria|baixo|cavaquinho|violoncelo|trompete|saxofone|futebol|tênis|ténis|vôlei|basquete|xadrez|capoeira|surf|yoga|ioga|pilates|boxe|natação|coral|coro|voluntariado|selos|moedas|vinis|maratonas|todos os dias|todo dia|toda \w+|aos \w+|vezes por semana)\b"),
    (None, r"(?:vou|saio|faço|janto|almoço|como|acordo|levanto|durmo|tomo|bebo|visito|vejo|ligo|cozinho|trabalho) (?:\w+ ){0,8}?(?:todos os dias|todas as \w+|todo dia|toda (?:manhã|noite|semana|segunda|terça|quarta|quinta|sexta)|todo (?:sábado|domingo|ano|verão)|às (?:segundas|terças|quartas|quintas|sextas)|aos (?:sábados|domingos)|(?:uma|duas|três|\d) vez(?:es)? por semana|nos fins de semana)\b"),
    (None, r"(?:todos os \w+|todo (?:dia|sábado|domingo)|toda (?:manhã|noite|segunda|terça|quarta|quinta|sexta)|aos (?:sábados|domingos)|às (?:segundas|terças|quartas|quintas|sextas)(?:-feiras)?|nos fins de semana),? (?:eu )?(?:sempre )?(?:vou|saio|faço|janto|almoço|como|jogo|toco|corro|nado|tenho|trabalho|cozinho|visito|cozinhamos|comemos|vamos) \w+"),
    (None, rf"(?:o |a |os |as )?(?:meu|minha|meus|minhas|nosso|nossa|nossos|nossas) (?:dois |duas |três )?(?:{_KIN}|{_PET}|gat[oa]s|cachorros)(?: mais velh[oa]| mais nov[oa]| caçula)?(?:,? {ONE_NAME})? (?:não )?(?:é|são|está|estão|mora|moram|vive|vivem|trabalha|ama|tem|têm|se chamam?|chama-se|come|bebe|fala|joga|estuda|vai|vem|vêm|faz|começa|odeia|adora|gosta de|pode|morreu|faleceu|nasceu|casa|se casa|se mudou|toca|dorme|sofre|chega|entra) (?!(?:que|isso|isto)\b)\w+"),
    (None, r"(?:eu )?(?:parei|deixei|paramos|deixamos) (?:de|com) (?!(?:lado|entender)\b)\w+|(?:larguei|abandonei) (?:o|a|meu|minha) (?:cigarro|emprego|faculdade|bebida|curso|álcool|açúcar|carne)"),
    (None, rf"(?:uso|utilizo|programo em|dirijo|conduzo) {_ADV}(?:uma? |o |a |meu |minha )?{CAPITAL}[\w.+#-]+"),
    (None, r"(?:os )?(?:meus hobbies|meu hobby|meus passatempos|meu passatempo|minha paixão)(?: favorit[oa]s?)? (?:são|é) \w+"),
    (None, r"(?:o |a )?(?:meu|minha) (?:fuso horário|endereço|morada|número de \w+|tamanho|tipo sanguíneo|cidade natal|signo|religião|médic[oa]|dentista|carro|celular|telemóvel|notebook|computador) (?:é|se chama) (?!(?:não|muito)\b)\w+"),
)  # fmt: skip
EVENTS: tuple[Row, ...] = (
    (None, rf"(?:me |nos )?(?:viajo|voo|vou|vamos|viajamos|saio|começo|começamos|caso|casamos|mudo|mudamos|formo|tenho|temos|faço|celebro|celebramos|corro|volto|termino|visito|visitamos|quero|espero|irei|embarco|serei|vou ser) (?!(?:isso|isto|que|saber|entender|fazer isso|ver se)\b)(?=[^.?!;]{{0,80}}{_TIME})[^.?!;]{{3,}}"),
    (None, rf"(?:{_TIME})(?: \w+)?,? (?:eu )?(?:me |nos )?(?:viajo|voo|vou|vamos|viajamos|começo|começamos|caso|casamos|mudo|mudamos|formo|tenho (?:um|uma|meu|minha|o|a)|celebro|celebramos|corro|faço (?:uma|um|\d\d)|embarco) ?(?!(?:isso|ver)\b)\w+"),
    (None, rf"{_MY} (?:\w+ )?(?:casamento|aniversário|exame|prova|entrevista|consulta|voo|cirurgia|operação|mudança|formatura|show|concerto|viagem|férias|trem|comboio) (?:é|são|sai|começa|cai) (?:em|no|na|dia|a|às|amanhã|segunda|terça|quarta|quinta|sexta|sábado|domingo)\b"),
    (None, r"(?:estamos esperando|estamos à espera de|vou ter|vamos ter) (?:um|nosso|uma|gêmeos|gémeos) ?(?:\w+ )?(?:bebê|bebé|filh[oa])?\b|(?:vou me casar|vamos nos casar|vou casar|vamos casar|vou ser (?:pai|mãe|tio|tia|avô|avó))\b|estou (?:treinando|a treinar|economizando|juntando dinheiro|me preparando) para (?:um|uma|o|a|comprar) ?\w+|estou (?:escrevendo|a escrever) (?:um romance|um livro|minha tese|a tese)"),
    (None, r"(?:eu )?(?:acabei de|acabamos de|acabo de) (?:adotar|comprar|vender|me aposentar|me formar|passar n[oa]|casar|me casar|me divorciar|começar|perder o|ter um|tirar a carteira|me separar) ?\w*|(?:adotei|adotamos|comprei|compramos|vendi|me formei|formei-me|me casei|casei-me|nos casamos|me divorciei|passei no vestibular|pedi demissão) (?!(?:isso|isto)\b)\w*"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:eu )?(?:sou (?:o |a )?|aqui é (?:o |a )?|aqui fala (?:o |a )?|é [oa] ){_NAME}(?=[,.!]|$| e\b| de\b)"),
)  # fmt: skip
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:pode |podes |por favor,? )?(?:me chame de|chama-me|me chama de|me chame|chame-me|me chamar de|chamar-me) (?P<value>{ONE_NAME})"),
    (None, r"(?:por favor,? )?(?:me )?(?:responda|responde|responda-me|responde-me|escreva|escreve|use|usa|explique|explica|fale|fala|comece|começa|termine|cite|inclua|evite|evita|dê|dá|recomende|sugira|trate|trata)\b[^.?!:]{0,60}\b(?:sempre|nunca|jamais|a partir de agora)\b"),
    (None, r"(?:por favor,? )?(?:sempre|nunca|jamais) (?:me )?(?:responda|use|uses|escreva|escrevas|responde|respondas|usa|utilize|coloque|comece|comeces|recomende|sugira|dê|dês|diga|digas|mencione|cite|fale|fales|trate|chame|inclua)\b"),
    (None, r"(?:por favor,? )?não (?:me )?(?:use|uses|responda|respondas|escreva|comece|recomende|sugira|diga|mencione|trate|chame|dê|coloque|peça)\b[^?]{0,60}\b(?:nunca|jamais|sempre|mais|emojis|gírias|exclamações|estrangeirismos|de senhora?|desculpas?)\b"),
    (None, r"(?:por favor,? )?(?:me trate|trate-me|trata-me|me trata) por (?:tu|você)|(?:responda|responde|fale|fala|escreva|escreve)(?:-me)? (?:só |somente |apenas )?em (?:português|inglês|espanhol|frases curtas)(?:,? por favor)?\W*$|sem emojis(?:,? por favor)?\W*$"),
    (None, r"(?:a partir de agora|de agora em diante|daqui em diante|daqui para a frente|no futuro)[,:]? (?!(?:eu|vou)\b)\w+"),
    (None, r"(?:por favor,? )?(?:lembre-se|lembra-te|lembre|lembra|se lembre|não se esqueça|não te esqueças|não esqueça|anote|anota|tenha em mente|guarde|note) (?:de )?que (?!(?:isso|isto|o código|a função|é preciso)\b)\w+"),
    (None, r"(?:prefiro|quero|gosto de) (?:as )?(?:respostas|explicações) (?:curtas|breves|longas|detalhadas|concisas|diretas|em)\b|(?:quero|prefiro) que (?:você )?(?:sempre |nunca )?(?:me )?(?:responda|fale|trate|use|escreva)\b|quando (?:eu )?[^.?!:]{3,60}, (?:sempre|nunca) \w+"),
)  # fmt: skip
