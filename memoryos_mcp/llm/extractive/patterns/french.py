"""Patterns for statements and wishes in French."""

from memoryos_mcp.llm.extractive.patterns.vocabulary import CAPITAL, ONE_NAME, VALUE, Row

# Every statement or wish in this language contains one of these words.
NEEDS = frozenset(
    (
        "je chui mon ma mes nous notre nos on moi ici toujours jamais plus désormais dorénavant merci pas que vous "
        "tu j m n c à s souviens rappelle retiens note garde quand lorsque réponds parle écris"
    ).split()
)

_NAME = rf"(?P<value>{ONE_NAME}(?: {ONE_NAME}){{0,2}})"
_PLACE = rf"{CAPITAL}{VALUE}"
_MONTH = r"(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre)"
_TIME = (
    rf"\b(?:le \d{{1,2}}(?:er)? \w+|(?:en|début|fin|mi-?) ?{_MONTH}|au mois d[e'’] ?\w+|(?:en|cet|l['’]|au|ce) ?(?:été|automne|hiver|printemps)|(?:la semaine|le mois|l['’]année|l['’]été|\w+) prochaine?"
    rf"|demain|après-demain|dans (?:\d+|une?|deux|trois|quatre|cinq|six|quelques) (?:jours?|semaines?|mois|ans?)|(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b|ce week-end|à (?:noël|pâques)|en 20\d\d|{_MONTH} 20\d\d"
    r"|hier|il y a (?:\d+|une?|deux|trois) \w+|l['’](?:an|année) derni(?:er|ère)|la semaine dernière|le mois dernier)"
)
_ADV = r"(?:(?:maintenant|actuellement|désormais|aussi|toujours|encore|vraiment|beaucoup|surtout|juste|déjà|bien|trop|en fait|récemment|tout juste|plutôt|très|enfin|souvent|toujours|jamais|désormais|depuis (?:\w+ )?\w+ ans|seule?|ici) ){0,3}"
FRONT = r"(?:(?:maintenant|actuellement|désormais|aujourd['’]hui|en ce moment|à l['’]origine|depuis (?:[\w']+ ){1,3}|avec ma \w+|avec mon \w+|chaque \w+|tous les \w+|toutes les \w+|le (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)(?: \w+)?|le week-end|moi|perso|personnellement))"
_ONE = r"(?P<who>mère|maman|père|papa|mari|femme|épouse|époux|copine|copain|compagne|compagnon|fiancée?|conjointe?|chef|cheffe|belle-mère|beau-père|meilleure? amie?)"
_SOME = r"(?P<who>sœur|soeur|frère|fils|fille|grand-mère|grand-père|tante|oncle|cousine?|nièce|neveu|beau-frère|belle-sœur|petit-fils|petite-fille|mamie|papi)"
_KIN = r"(?:mère|maman|père|papa|mari|femme|épouse|époux|copine|copain|compagne|compagnon|fiancée?|conjointe?|sœurs?|soeurs?|frères?|fils|filles?|grand-mère|grand-père|grands-parents|parents|tante|oncle|cousine?s?|nièce|neveu|beau-frère|belle-sœur|belle-mère|beau-père|enfants?|jumeaux|jumelles|bébé|coloc(?:ataire)?|ex|meilleure? amie?|petit-fils|petite-fille|mamie|papi)"
_PET = r"(?:chienne?|chatte?|chaton|chiot|cheval|lapin|hamster|perroquet|tortue|cochon d['’]inde|poney|labrador|teckel|caniche|poules?|oiseau|canari|perruche|furet|âne|chèvre)"
_NOT = r"(?!(?:ça|cela|bien (?:ta|ton|cette|ce)|ton|ta|tes|votre|vos|te|toi|vous|quand|que|comment|la façon|l['’]idée|pas|tout|rien|le fait|celui|celle|mieux)\b)"
_ILL = r"(?:l['’])?(?:une? |des? |du |de l['’]|le |la |les )?(?:\w+ )?(?:allergies?|asthme|diabète|eczéma|psoriasis|arthrose|arthrite|migraines?|épilepsie|dépression|anxiété|endométriose|maladie de \w+|alzheimer|parkinson|cancer|sclérose en plaques|hypertension|cholestérol|intolérance|vertige|tdah|autisme|dyslexie|maladie cœliaque|rhume des foins|apnée du sommeil|acouphènes|fibromyalgie|anémie|insomnies?|mal de dos|genou|hernie)"
_JOB = (
    r"(?:infirmi|enseignant|institut|professeu|profess|prof\b|médecin|ingénieu|développeu|avocat|cuisini|boulang|pâtissi|architect|journalist|étudiant|lycéen|collégien|retrait|dentist|pharmacien|comptable|graphist|musicien|photograph"
    r"|électricien|plombi|menuisi|charpenti|maçon|peintre|couvreu|carreleu|jardini|paysagist|fleurist|kinésithérap|kiné\b|psychologue|psychiatre|vétérinaire|traduct|interprète|bibliothécaire|documentalist|chercheu|serveu|coiffeu|esthéticien|agricult|éleveu|viticult|vigneron|apicult|maraîch"
    r"|bouch|poissonni|chauffeu|routi|conduct|pilote|hôtesse|steward|pompi|polici|gendarme|militaire|soldat|facteu|secrétaire|assistant|aide-soignant|auxiliaire|sage-femme|orthophonist|ostéopath|opticien|éducat|animat|nounou|assistante maternelle|commerci|vendeu|caissi|libraire|commerçant|restaurateu|gérant|entrepreneu|auto-entrepreneu|freelance|indépendant"
    r"|consultant|chef de projet|cadre|manageu|manager|directeu|directric|responsable|technicien|mécanicien|ouvri|soudeu|informaticien|programmeu|designer|illustrat|écrivain|auteu|romanci|rédact|comédien|acteu|actric|chanteu|danseu|réalisat|artist|sculpteu|potier|potière|couturi|bijouti|notaire|huissier|juge|magistrat|fonctionnaire|agent immobilier|banqui|économist|mathématicien|physicien|chimist|biologist|géologue|historien|doctorant|stagiaire|apprenti|alternant|femme au foyer|père au foyer|mère au foyer|chômeu|coach|arbitre|moniteu|monitric|guide)"
)
_LANG = r"(?:français|anglais|allemand|espagnol|italien|portugais|russe|arabe|chinois|japonais|néerlandais|polonais|turc|coréen|breton|occitan|catalan|grec|hébreu|suédois|roumain)"

USER: tuple[Row, ...] = (
    ("name", rf"(?:je m['’]appelle|mon (?:pré)?nom,? (?:est|c['’]est)|tout le monde m['’]appelle|on m['’]appelle|mes amis m['’]appellent) {_NAME}"),
    ("name", r"je m['’]appelle (?P<value>[a-zà-ÿ-]{2,15})(?=[,.!]| et\b|$)"),
    ("name", rf"moi,? c['’]est {_NAME}(?=[,.!]|$| et\b)"),
    ("name", rf"je suis {_NAME}(?=,? (?:et )?(?:je|j['’]\w+)\b|, \d\d\b)"),
    ("age", rf"(?:moi,? )?j['’]ai {_ADV}(?P<value>\d\d) ans(?! (?:d['’]|de )(?!sagesse))"),
    ("age", r"(?:je viens d['’]avoir|je vais avoir|j['’]aurai|j['’]ai (?:presque|bientôt|tout juste|à peine)|j['’]ai eu) (?P<value>\d\d) ans"),
    ("age", r"j['’]ai (?P<value>la (?:vingtaine|trentaine|quarantaine|cinquantaine|soixantaine))\b"),
    ("birthday", r"(?:mon anniversaire(?: est|, c['’]est)|je suis née?) (?:le )?(?P<value>\d{1,2}(?:er)? \w+)"),
    ("birthday", r"je suis née? en (?P<value>\d{4})"),
    ("lives", rf"(?:moi,? )?(?:j['’]habite|je vis|j['’]vis|je réside|nous habitons|nous vivons|on habite|on vit|j['’]suis installée?|je suis installée?) {_ADV}(?:à|en|au|aux|dans le|près de|sur) {_PLACE}"),
    ("lives", rf"(?:moi,? )?(?:j['’]ai|nous avons|on a|je viens de|on vient de|nous venons de|on vient d['’]|je viens d['’]|nous venons d['’]) ?{_ADV}(?:déménagé|déménager|emménagé|emménager|m['’]installer|nous installer|s['’]installer) (?:\w+ )?(?:à|en|au) {_PLACE}"),
    ("lives", rf"(?:je me suis|on s['’]est|nous nous sommes) {_ADV}(?:installée?s?) {_ADV}(?:à|en|au) {_PLACE}"),
    (None, rf"(?:moi,? )?(?:j['’]habite|je vis|nous habitons|nous vivons|on habite|on vit) {_ADV}(?:dans|avec|chez|à la|en|au|à|toute seule|tout seul|seule?)\b"),
    ("from", rf"(?:moi,? )?(?:je viens|je suis originaire|je suis) {_ADV}(?:de |d['’]|du |des )(?![^.,;!?]*\b(?:ce (?:matin|soir)|cet après-midi|aujourd['’]hui|hier|en (?:train|voiture|avion|bus))\b){_PLACE}"),
    ("from", rf"je suis née? (?:à|en|au) {_PLACE}"),
    (None, r"j['’]ai grandi (?:à|en|au|dans|sur) \w+"),
    ("work", rf"(?:moi,? )?je (?:travaille|bosse) {_ADV}(?:comme|en tant que?) (?:qu['’])?{VALUE}"),
    ("work", rf"(?:moi,? )?(?:je suis|j['’]suis|je suis devenue?|je vais devenir) {_ADV}(?:une? )?(?:(?:ancien|ancienne|jeune|futur|future) )?(?P<value>{_JOB}[\w-]*(?: [\w-]+){{0,3}})"),
    ("work", rf"(?:moi,? )?je suis {_ADV}(?P<value>au chômage|à la retraite|en congé (?:maternité|parental|maladie)|sans emploi|en recherche d['’]emploi|à mon compte|en alternance|en reconversion|lycéenne?)\b"),
    ("work", rf"mon (?:métier|travail|boulot),? (?:est|c['’]est) (?!(?:trop|très|pas|nul|dur)\b){VALUE}"),
    ("employer", rf"(?:moi,? )?je (?:travaille|bosse) {_ADV}(?:chez|pour|à la|à l['’]|au) ?(?!(?:moi|eux|elle|lui|une?|ça)\b){_PLACE}"),
    (None, rf"(?:moi,? )?je (?:travaille|bosse) {_ADV}(?:dans (?:une?|le|la|les|l['’])|chez|à|en|au|de nuit|à mi-temps|à temps partiel|la nuit|pour) ?\w*"),
    ("studies", rf"(?:moi,? )?(?:je fais des études d[e'’]|j['’]étudie|je fais (?:un master|une licence|un doctorat|une thèse|un bts|un cap|une école)) ?(?:le |la |les |l['’]|en |de |d['’])?{VALUE}"),
    (None, r"(?:moi,? )?je (?:dirige|gère|tiens|possède|encadre|manage) (?:une?|le|la|mon|ma) (?:\w+ )?(?:équipe|service|boutique|magasin|restaurant|café|entreprise|société|ferme|école|librairie|boulangerie|bar|hôtel|cabinet|association|chorale|gîte)\b"),
    ("family:{who}", rf"(?:ma|mon) {_ONE}(?: s['’]appelle|,)? {_NAME}"),
    ("family:{who}:{value}", rf"(?:ma|mon|notre) (?:petite? |grande? )?{_SOME}(?: aînée?| cadette?)?(?: s['’]appelle|,)? {_NAME}"),
    ("pet:{value}", rf"(?:ma|mon|notre) {_PET}(?: s['’]appelle|,)? {_NAME}"),
    ("pet:{value}", rf"(?:j['’]ai|nous avons|on a) {_ADV}(?:une? )(?:\w+ )?{_PET}(?: qui s['’]appelle|,| nommée?)? {_NAME}"),
    (None, rf"(?:moi,? )?(?:j['’]ai|nous avons|on a) {_ADV}(?:une?|deux|trois|quatre|cinq|\d) (?:(?:petite?s?|grande?s?|vieux|vieille|jeune) )?(?:chiens?|chats?|chatons?|chevaux|poules|lapins|{_PET}|enfants?|gosses|fils|filles?|garçons?|frères?|sœurs?|soeurs?|jumeaux|jumelles|petits-enfants|allergie|jardin|potager|voiture|moto|vélo|piano|guitare|maison|appartement|bateau|balcon)\b"),
    (None, rf"(?:moi,? )?(?:j['’]ai|je souffre d[e'’u]|nous avons) ?{_ADV}{_ILL}\b"),
    (None, r"(?:je n['’]ai pas d['’]?(?:e )?|on n['’]a pas d['’]?(?:e )?)(?:enfants?|frères|animaux|voiture|permis|four|télé)\b"),
    (None, rf"(?:moi,? )?(?:j['’]aime|j['’]adore|je déteste|je préfère|je kiffe|je hais|nous aimons|on adore|j['’]apprécie) {_ADV}{_NOT}\w+"),
    (None, rf"(?:moi,? )?(?:je n['’]aime|j['’]aime|je n['’]apprécie|je ne supporte|je supporte|je n['’]aime vraiment) (?:vraiment )?(?:pas|plus|guère) {_ADV}(?!(?:ça|cela|ta|ton|tes|votre|que|quand|trop (?:ça|ta)|cette|ce)\b)\w+"),
    (None, r"(?:je suis|chui) (?:une? )?(?:grande? |gros |grosse |vraie? )?(?:fan|passionnée?|amateur|amatrice|accro|mordue?) (?:de |d['’]|par |à |au |du )(?!(?:ça|ta|ton|cette)\b)\w+"),
    ("favourite {kind}", r"(?:mon|ma|mes) (?P<kind>(?!(?:option|version|réponse|variante|proposition|idée|solution|choix)\b)\w+) (?:préférée?s?|favorite?s?|favoris?) ?,? (?:est|sont|c['’]est|reste) (?!(?:ça|cela|celui|celle|que|quand)\b)(?P<value>[^,.;!?]+)"),
    (None, r"(?:moi,? )?(?:je|on|nous) (?:ne |n['’])?(?:mange|bois|fume|mangeons|supporte|digère|consomme|peux pas manger|peux pas boire)s? (?:pas|plus|jamais|que|rien)\b(?! (?:ça|cela|comment|pourquoi)\b)"),
    (None, r"(?:moi,? )?je ne peux (?:pas|plus) (?:manger|boire|consommer|prendre|courir|conduire|porter) (?!(?:ça|cela)\b)[\w'’]+"),
    (None, rf"(?:moi,? )?(?:je parle|j['’]apprends|je comprends|je ne parle pas|j['’]enseigne) {_ADV}(?:(?:couramment|un peu|bien|le|l['’]|à peine|mal) ?){{0,2}}{_LANG}\b|ma langue maternelle(?: est|, c['’]est) \w+"),
    (None, r"(?:moi,? )?(?:je joue|je fais|je pratique|je cours|je nage|je vais) (?:\w+ )?(?:du|de la|de l['’]|au|à la|des|le|la) ?(?:piano|guitare|violon|flûte|batterie|foot\w*|tennis|basket|rugby|handball|volley|échecs|yoga|judo|karaté|escalade|natation|vélo|course|randonnée|théâtre|danse|chorale|poterie|jardinage|couture|tricot|photo|musique|sport|surf|ski|escrime|boxe|piscine|salle|bénévolat|trompette|saxophone|harpe|orgue|accordéon)\b"),
    (None, r"(?:moi,? )?(?:je|j['’]|on|nous) ?(?:cours|nage|vais|fais|joue|mange|prends|médite|marche|cuisine|vois|visite|lis|écris|travaille|dîne|appelle)\w* [^.?!;]{0,60}?(?:tous les (?:jours|matins|soirs|lundis|mardis|mercredis|jeudis|vendredis|samedis|dimanches)|chaque (?:jour|matin|soir|semaine|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|été|année)|(?:une|deux|trois|quatre|\d) fois par (?:semaine|jour|mois|an)|le (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)(?: (?:matin|soir))?(?=[,.!]|$)|le week-end)\b"),
    (None, r"(?:tous les (?:jours|matins|soirs|lundis|mardis|mercredis|jeudis|vendredis|samedis|dimanches)|chaque (?:jour|matin|soir|semaine|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)|le (?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)(?: (?:matin|soir))?|le week-end),? (?:je|j['’]|on|nous) ?\w+ \w+"),
    (None, r"(?:moi,? )?(?:je vais|j['’]y vais) (?:au (?:travail|boulot|bureau)|à l['’]école) (?:à|en) \w+"),
    (None, rf"(?:moi,? )?(?:j['’]utilise|je programme en|je code en|je conduis une?|je roule en|je développe en|je bosse sur|j['’]ai une?) (?:une? |le |la |mon |ma )?{CAPITAL}[\w.+#-]+"),
    ("diet", rf"(?:moi,? )?je suis {_ADV}(?P<value>végétarienn?e?|végétalienn?e?|végane?|vegan|flexitarienn?e?|pescétarienn?e?)\b"),
    (None, rf"(?:moi,? )?(?:je suis|j['’]suis|nous sommes|on est) {_ADV}(?:\w+ )?(?:allergique (?:à|aux?)|mariée?s?|célibataire|divorcée?|pacsée?s?|fiancée?s?|veuve|veuf|enceinte|diabétique|asthmatique|cœliaque|coeliaque|intolérante? (?:au|à)|gauch[eè]re?|daltonienn?e?|myope|dyslexique|sourde?|aveugle|malvoyante?|épileptique|autiste|végé|hypersensible|insomniaque|musulmane?|catholique|juive?|bouddhiste|athée|gay|lesbienne|trans|belge|suisse|québécoise?|française?|fils unique|fille unique|maman de|papa de|mère de|père de|lève-tôt|couche-tard|non-fumeuse?)\b(?! que\b)"),
    (None, rf"(?:ma|mon|mes|notre|nos) (?:(?:petite?s?|grande?s?|deux|trois) )?(?:{_KIN}|{_PET}|chiens?|chats?)(?: aînée?| cadette?)?(?:,? {ONE_NAME})? (?:ne |n['’])?(?:est|sont|habite|habitent|vit|vivent|travaille|aime|aiment|adore|adorent|déteste|a|ont|entre|va|vient|viennent|mange|boit|parle|joue|étudie|fait|fête|rentre|part|commence|passe|apprend|se marie|s['’]appellent|s['’]appelle|supporte|peut|souffre|porte|dort|arrive|attend) (?!(?:que|ça)\b)\w+"),
    (None, r"(?:j['’]ai|on a|nous avons) (?:enfin |définitivement )?(?:arrêté|cessé) (?:de |d['’]|la |le |l['’])\w+|je ne \w+ plus (?:de |d['’]|à |en |la |le |du |dans )?\w+"),
    (None, r"(?:mes loisirs|mon hobby|mes passions|ma passion|mon passe-temps)(?: préférés?)? ?,? (?:sont|est|c['’]est) \w+"),
    (None, r"(?:mon|ma) (?:fuseau horaire|adresse|numéro(?: de téléphone)?|pointure|groupe sanguin|ville natale|signe|religion|médecin|dentiste|voiture|téléphone|ordinateur) (?:est|c['’]est|s['’]appelle) (?!(?:pas|trop|cassée?|en panne)\b)\w+"),
)  # fmt: skip
EVENTS: tuple[Row, ...] = (
    (None, rf"(?:\w+ (?:semaine|mois|année) prochaine?,? |(?:en|cet) \w+,? )?(?:je (?:pars|vais|déménage|m['’]envole|voyage|retourne|commence|passe|me marie|fête|cours|prends|démarre|rentre|serai|me fais opérer|reprends|soutiens|accouche|dois)|on (?:part|va|déménage|se marie|attend|fête|voyage)|nous (?:partons|allons|déménageons|nous marions|attendons|fêtons)|j['’](?:ai|attends|emménage|irai|aurai)) (?!(?:ça|te|vous|bien|essayer|voir|faire)\b)(?=[^.?!;]{{0,80}}{_TIME})[^.?!;]{{3,}}"),
    (None, rf"(?:{_TIME}),? (?:je (?:pars|vais|déménage|commence|passe|me marie|prends|démarre|voyage|me fais opérer)|on (?:part|va|déménage|se marie)|nous (?:partons|allons|déménageons)|j['’](?:ai un|emménage)) (?!(?:ça|te|vous)\b)\w+"),
    (None, r"(?:mon|ma|mes|notre|nos) (?:\w+ )?(?:mariage|anniversaire|examen|entretien|rendez-vous|vol|opération|déménagement|soutenance|concert|vacances|voyage|train|rentrée) (?:est|sont|a lieu|commence|tombe|part) (?:le|en|au|à|dans|demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b"),
    (None, r"(?:on|nous) (?:attend|attendons) (?:un|notre|des) (?:\w+ )?(?:bébé|enfant|jumeaux)\b|j['’]attends (?:un bébé|des jumeaux)|je prépare (?:un|le|mon|une) (?:marathon|semi|concours|examen|triathlon|thèse|bac)\b|je vais (?:me marier|être (?:papa|maman|père|mère)|déménager)\b"),
    (None, r"(?:j['’]ai|on a|nous avons|je viens d['’]|je viens de|on vient d['’]|on vient de) ?(?:enfin |récemment |juste )?(?:adopté|adopter|acheté|acheter|vendu|vendre|quitté|obtenu|obtenir|passé mon|réussi|eu mon permis|démissionné|démissionner|commencé (?:le|la|un|une|à apprendre)|perdu mon|perdu ma) ?(?!(?:ça|le problème)\b)\w*"),
    (None, r"(?:je me suis (?:mariée?|cassée? (?:le|la|l['’])|fracturée?|foulée? (?:le|la)|fiancée?|séparée?|inscrite? à)|on s['’]est (?:mariés|fiancés|séparés|pacsés))\b"),
)  # fmt: skip
GREETED: tuple[Row, ...] = (
    ("name", rf"(?:je suis |moi,? c['’]est |ici |c['’]est ){_NAME}(?=[,.!]|$| et\b| de\b)"),
)  # fmt: skip
WISHES: tuple[Row, ...] = (
    ("called", rf"(?:tu peux |vous pouvez )?(?:m['’]appeler|appelle[- ]moi|appelez[- ]moi) (?P<value>{ONE_NAME})"),
    (None, r"(?:s['’]il te plaît,? |s['’]il vous plaît,? |merci de )?(?:réponds|répondez|écris|écrivez|utilise|utilisez|explique|expliquez|donne|donnez|parle|parlez|tutoie|vouvoie|répondre|utiliser|commence|termine|évite|propose|mets|cite|fais)\b[^.?!:]{0,60}\b(?:toujours|jamais|désormais|dorénavant|à chaque fois|à l['’]avenir)\b"),
    (None, r"(?:s['’]il te plaît,? )?(?:tutoie|vouvoie)[- ]moi\b|(?:réponds|parle|écris)(?:[- ]moi)? (?:uniquement |seulement )?en (?:français|anglais|espagnol|phrases courtes)(?: s['’]il te plaît| stp)?\W*$"),
    (None, r"(?:désormais|dorénavant|à partir de maintenant|à l['’]avenir)(?:,| ?:)? (?!(?:je|il|elle|on|nous)\b)\w+"),
    (None, r"n['’](?:utilise|utilisez|emploie|ajoute|écris|oublie) (?:jamais|plus)\b|(?:ne )?(?:me |m['’])?(?:\w+ )?(?:réponds|mets|fais|donne|parle|commence|propose|suggère|recommande|termine|dis|vouvoie|tutoie)\w* (?:jamais|plus)\b|(?:n['’]utilise|ne mets|pas|plus|n['’]emploie) (?:pas )?(?:d['’]|de |des )(?:emojis?|émojis?|anglicismes|jargon|listes à puces|points d['’]exclamation|smileys|excuses)\b"),
    (None, r"(?:souviens-toi|souvenez-vous|rappelle-toi|retiens|note|n['’]oublie pas|garde en tête) (?:bien )?(?:que |qu['’])(?!(?:le code|la fonction|ce|cette|il faut)\b)\w+"),
    (None, r"(?:je préfère|je veux|j['’]aimerais|je voudrais) (?:que tu (?:me )?(?:tutoies|vouvoies|répondes|sois)|des réponses (?:courtes|brèves|concises|détaillées|directes))\b|(?:quand|lorsque) (?:je|tu) [^.?!:]{3,80}, (?:réponds|utilise|donne|mets|écris|ne \w+)\b[^.?!]*\b(?:toujours|jamais)\b"),
)  # fmt: skip
