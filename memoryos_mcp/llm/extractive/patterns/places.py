"""Names of known places, for statements whose wording does not show that a name is a place."""

import re
from functools import cache

_CITIES = """
    new york|new york city|nyc|los angeles|san francisco|chicago|houston|phoenix|philadelphia|san antonio|san diego|dallas|austin|san jose
    fort worth|jacksonville|columbus|charlotte|indianapolis|seattle|washington|washington dc|boston|nashville|el paso|oklahoma city|portland
    las vegas|memphis|baltimore|milwaukee|albuquerque|tucson|fresno|sacramento|kansas city|atlanta|omaha|raleigh|miami|oakland|minneapolis
    tulsa|tampa|new orleans|cleveland|pittsburgh|cincinnati|st louis|saint louis|salt lake city|buffalo|richmond|spokane|boise|madison|brooklyn
    queens|the bronx|manhattan|staten island|long island|toronto|montreal|vancouver|calgary|ottawa|edmonton|winnipeg|quebec city|hamilton
    victoria|halifax|saskatoon|regina|london|birmingham|manchester|leeds|glasgow|liverpool|newcastle|sheffield|bristol|edinburgh|leicester
    coventry|cardiff|belfast|nottingham|hull|stoke|wolverhampton|plymouth|derby|swansea|southampton|portsmouth|aberdeen|brighton|luton
    norwich|york|oxford|cambridge|exeter|bath|gloucester|inverness|dundee|dublin|cork|limerick|galway|waterford|paris|marseille|lyon|toulouse|nice
    nantes|strasbourg|montpellier|bordeaux|lille|rennes|reims|grenoble|dijon|angers|brest|tours|metz|nancy|rouen|caen|berlin|hamburg|munich
    münchen|cologne|köln|frankfurt|stuttgart|düsseldorf|dortmund|essen|leipzig|bremen|dresden|hanover|hannover|nuremberg|nürnberg|duisburg
    bochum|wuppertal|bielefeld|bonn|münster|mannheim|karlsruhe|augsburg|wiesbaden|kiel|aachen|halle|magdeburg|freiburg|mainz|erfurt|rostock
    kassel|potsdam|heidelberg|darmstadt|regensburg|würzburg|göttingen|ulm|jena|vienna|wien|graz|linz|salzburg|innsbruck|zurich|zürich|geneva
    genf|basel|bern|lausanne|lucerne|luzern|madrid|barcelona|valencia|seville|sevilla|zaragoza|malaga|málaga|murcia|bilbao|alicante|cordoba|córdoba
    valladolid|vigo|gijón|granada|cadiz|cádiz|san sebastián|lisbon|lisboa|porto|braga|coimbra|faro|rome|roma|milan|milano|naples|napoli|turin
    torino|palermo|genoa|genova|bologna|florence|firenze|bari|catania|venice|venezia|verona|trieste|padua|padova|pisa|lecce|parma|amsterdam
    rotterdam|the hague|utrecht|eindhoven|groningen|leiden|delft|maastricht|brussels|bruxelles|antwerp|ghent|gent|bruges|leuven|liège
    copenhagen|aarhus|odense|aalborg|stockholm|gothenburg|göteborg|malmö|malmo|uppsala|lund|oslo|bergen|trondheim|stavanger|tromsø|helsinki|espoo
    tampere|turku|oulu|reykjavik|reykjavík|tallinn|tartu|riga|vilnius|kaunas|warsaw|krakow|kraków|wroclaw|wrocław|poznan|poznań|gdansk|gdańsk|lodz|łódź
    katowice|lublin|prague|brno|ostrava|bratislava|budapest|debrecen|szeged|bucharest|cluj|cluj-napoca|timisoara|iasi|sofia|plovdiv|varna|belgrade
    novi sad|zagreb|split|ljubljana|maribor|sarajevo|skopje|tirana|pristina|podgorica|athens|thessaloniki|patras|istanbul|ankara|izmir|antalya|bursa
    kyiv|kiev|kharkiv|odessa|odesa|lviv|dnipro|minsk|moscow|saint petersburg|st petersburg|novosibirsk|kazan|yekaterinburg|samara|tbilisi|yerevan|baku
    almaty|astana|tashkent|samarkand|bishkek|tehran|isfahan|shiraz|baghdad|basra|erbil|damascus|aleppo|beirut|amman|jerusalem|tel aviv|haifa
    riyadh|jeddah|dubai|abu dhabi|sharjah|doha|kuwait city|manama|muscat|sanaa|cairo|alexandria|giza|casablanca|rabat|marrakesh|marrakech|fez|tangier
    algiers|oran|tunis|tripoli|benghazi|khartoum|addis ababa|nairobi|mombasa|kisumu|kampala|kigali|dar es salaam|dodoma|arusha|lusaka|harare|bulawayo
    lilongwe|maputo|luanda|kinshasa|brazzaville|douala|yaounde|yaoundé|lagos|abuja|ibadan|kano|port harcourt|accra|kumasi|abidjan|dakar|bamako
    ouagadougou|conakry|freetown|monrovia|johannesburg|cape town|durban|pretoria|port elizabeth|bloemfontein|windhoek|gaborone|antananarivo
    mumbai|delhi|new delhi|bangalore|bengaluru|hyderabad|chennai|kolkata|pune|ahmedabad|jaipur|surat|lucknow|kanpur|nagpur|indore|bhopal|kochi|goa
    chandigarh|mysore|karachi|lahore|islamabad|faisalabad|rawalpindi|peshawar|dhaka|chittagong|colombo|kandy|kathmandu|pokhara|yangon|mandalay
    bangkok|chiang mai|phuket|hanoi|saigon|ho chi minh city|da nang|phnom penh|siem reap|vientiane|kuala lumpur|penang|johor bahru|singapore
    jakarta|surabaya|bandung|yogyakarta|denpasar|bali|manila|quezon city|cebu|cebu city|davao|hong kong|macau|taipei|kaohsiung|taichung|beijing
    shanghai|guangzhou|shenzhen|chengdu|chongqing|wuhan|xi'an|hangzhou|nanjing|tianjin|suzhou|qingdao|dalian|harbin|tokyo|osaka|kyoto|nagoya
    yokohama|sapporo|fukuoka|kobe|sendai|hiroshima|nara|seoul|busan|incheon|daegu|daejeon|ulaanbaatar|sydney|melbourne|brisbane|perth|adelaide
    canberra|hobart|darwin|gold coast|wollongong|auckland|wellington|christchurch|dunedin|queenstown|mexico city|guadalajara|monterrey|puebla|tijuana
    oaxaca|mérida|cancún|cancun|guatemala city|san salvador|tegucigalpa|managua|san josé|panama city|havana|kingston|santo domingo|san juan
    port-au-prince|caracas|maracaibo|bogotá|bogota|medellín|medellin|cali|cartagena|quito|guayaquil|cuenca|lima|cusco|arequipa|la paz|santa cruz
    cochabamba|asunción|asuncion|montevideo|buenos aires|rosario|mendoza|bariloche|santiago|valparaíso|concepción|rio|rio de janeiro|são paulo
    sao paulo|brasília|brasilia|salvador|fortaleza|belo horizonte|manaus|curitiba|recife|porto alegre|belém|florianópolis|natal
"""
_REGIONS = """
    uk|usa|us|england|scotland|wales|northern ireland|ireland|france|germany|austria|switzerland|spain|portugal|italy|the netherlands|netherlands
    holland|belgium|luxembourg|denmark|sweden|norway|finland|iceland|estonia|latvia|lithuania|poland|czechia|the czech republic|slovakia|hungary
    romania|bulgaria|serbia|croatia|slovenia|bosnia|greece|turkey|ukraine|belarus|russia|armenia|azerbaijan|kazakhstan|uzbekistan|iran|iraq
    syria|lebanon|israel|palestine|saudi arabia|qatar|kuwait|oman|yemen|uae|egypt|morocco|algeria|tunisia|libya|sudan|ethiopia|kenya|uganda|rwanda
    tanzania|zambia|zimbabwe|malawi|mozambique|angola|congo|cameroon|nigeria|ghana|senegal|mali|south africa|namibia|botswana|madagascar|india
    pakistan|bangladesh|sri lanka|nepal|bhutan|myanmar|thailand|vietnam|laos|cambodia|malaysia|indonesia|the philippines|philippines|taiwan|china|japan
    korea|south korea|mongolia|australia|new zealand|fiji|canada|mexico|guatemala|honduras|nicaragua|costa rica|panama|cuba|jamaica|haiti|colombia
    venezuela|ecuador|peru|bolivia|paraguay|uruguay|argentina|chile|brazil|bavaria|saxony|tuscany|sicily|sardinia|provence|brittany|normandy|alsace
    catalonia|andalusia|galicia|basque country|the algarve|madeira|the azores|azores|cornwall|devon|dorset|kent|essex|sussex|yorkshire|cumbria
    lancashire|norfolk|suffolk|surrey|somerset|wiltshire|shropshire|northumberland|the cotswolds|the lake district|the highlands|orkney|shetland
    skye|donegal|kerry|california|texas|florida|oregon|washington state|nevada|arizona|utah|colorado|new mexico|idaho|montana|wyoming|kansas
    nebraska|iowa|minnesota|wisconsin|michigan|illinois|indiana|ohio|kentucky|tennessee|alabama|louisiana|arkansas|missouri|oklahoma
    north carolina|south carolina|virginia|west virginia|maryland|delaware|pennsylvania|new jersey|connecticut|rhode island|massachusetts|vermont
    new hampshire|maine|alaska|hawaii|ontario|quebec|alberta|manitoba|saskatchewan|nova scotia|british columbia|queensland|victoria|tasmania
"""


_AFTER = re.compile(
    r" (?:now|too|again|right now|for now|these days|nowadays|at the moment|all year|btw|with|since|for|until|till|and|but|so|because|where|which|on"
    r" (?:business|holiday)|if that)\b.*$",
    re.IGNORECASE,
)


@cache
def _names() -> frozenset[str]:
    return frozenset(name.strip() for line in (_CITIES + _REGIONS).splitlines() for name in line.split("|"))


def is_place(text: str) -> bool:
    """Return whether ``text``, up to its first comma, is the name of a known city, region or country."""
    name = _AFTER.sub("", " ".join(text.partition(",")[0].split())).strip(" .!?;:").casefold()
    return bool(name) and (name in _names() or name.removeprefix("the ") in _names())
