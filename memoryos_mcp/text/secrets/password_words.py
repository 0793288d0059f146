"""Words for "password" in many languages, and words that are never a password."""

import re

from memoryos_mcp.text.secrets import checks

# Every word for a password contains one of these strings, in lower case. A match of ``NAME`` begins where one begins.
ROOTS = (
    *("pass", "pwd", "pw:", "pw=", "wort", "woord", "contrase", "senha", "haslo", "hasł", "sifre", "şifre", "parola"),
    *("парол", "密码", "密碼", "口令", "パスワード", "暗証", "비밀번호", "كلم", "पासवर्ड", "कूटशब्द"),
)
_NAMES = (
    r"pass ?wor[dt](?:s|es|e|em|om)?|(?<![a-z0-9])pw(?=[:=])|passwd|pass ?phrase|pass-phrase|passcode|pwd"
    r"|(?<=kenn)wort(?:es)?|(?<=losungs)wort"
    r"|(?<=wacht)woord|hasł(?:o|a|em|u)|haslo|[şs]ifre(?:m|si|miz|niz|mi|sini|yi)?|parola(?:m|sı|mı|mız|yı)?"
    r"|contrase[ñn]a|senha|(?:(?<=mot de )|(?<=palavra-))passe|парол(?:ь|я|ю|ем)|密码|密碼|口令|パスワード|暗証番号"
    r"|비밀번호|كلم[ةه] (?:ال)?(?:مرور|سر)(?: الخاصة بي)?|पासवर्ड|कूटशब्द"
)
# Accounts and programs before "pass" in names such as DB_PASS.
_OF = (
    *("db", "database", "sql", "pg", "postgres", "redis", "mongo", "smtp", "mail", "email", "ftp", "ssh", "sudo"),
    *("become", "admin", "root", "user", "login", "auth", "http", "mq", "ldap", "bind", "keystore", "key"),
    *("store", "wifi", "wpa", "vpn", "app", "vault", "su", "imap", "sasl", "cert", "api", "svc", "service"),
)
_SHORT = f"(?:{'|'.join(f'(?<={of})|(?<={of}[_.-])' for of in _OF)})pass(?=[\"'`]?\\s{{0,3}}[:=])|(?<=_)(?-i:PASS)(?==)"
NAME = re.compile(f"{_NAMES}|{_SHORT}", re.IGNORECASE)

# Text between the name of a secret and the secret: its purpose, a closing quote, a sign or verb, an opening quote.
PURPOSE = r"(?: (?:for|to|of|on|für|zum|zur|voor|van|do|dla|pour|para|de|di) [\w .'’-]{1,40}?)?"
SIGN = (
    r"(?::=|=>|->|→|[:=：＝]|is|was|will be|wird|ist|lautet|luidt|jest|brzmi|est|es|è|é"
    r"|هي|هو|है|是|は|은|는|为|為|(?<=['’])s(?= ))[:=]?"
)
CLOSING = r"\\{0,2}[\"'`*_]{0,3}"
OPENING = r"\\{0,2}[\"'`*「“„«]{0,3}"
IS = rf"{PURPOSE}{CLOSING}(?:\s{{0,3}}{SIGN}| [–—-] )[*_]{{0,3}}\s{{0,3}}{OPENING}"

PLAIN_CHARS_MIN = 4
_PLAIN_CHARS_MAX = 40
_PLAIN_DISTINCT_MIN = 3
# Words that often follow "password" but are not passwords. Words with the endings of participles and adjectives
# (``_SAID_OF``) are treated in the same way.
_NEVER = frozenset(
    """
    a an the this that these those it its and or but if so as at by for from in into of on to with without than then
    also again already always ever never not no nor only just still too very quite really rather almost often usually
    probably maybe actually currently now here there where when while what which who whose why how either neither both
    all any each every some none nothing something anything everything someone anyone everyone nobody one same other
    another more most less least
    i me my mine we us our ours you your yours he him his she her hers they them their theirs
    am is are was were be been being do does did done have has had having can could may might must shall should will
    would get got gets give given gave go goes gone going come comes keep kept let lets make makes made take taken use
    uses used need needs want wants see seen set sets show shown know known try tries tried ask asks enter type write
    read send sent reset change changes choose chosen check confirm verify match matches fail fails work works
    expire expires please sorry thanks thank yes ok okay sure
    weak strong stronger weaker strongest long longer short shorter secure safe safer unsafe wrong right correct
    incorrect invalid valid bad good better best great fine easy easier hard harder simple complex trivial obvious
    unique different random similar identical equal new newer old older recent current previous former next last first
    second third final temporary permanent public private secret hidden visible plain plaintext cleartext clear text
    encrypted hashed salted blank empty missing absent present lost stolen leaked known unknown common default
    optional required mandatory necessary unnecessary needed sufficient insufficient relevant important available
    unavailable ready stale active inactive enabled disabled locked unlocked broken blocked stored saved shared
    accepted rejected refused denied protected outdated out up down off away back over open shut case sensitive
    insensitive alphanumeric numeric generic automatic auto manual constant consistent sacred useless reused dumb
    stupid silly awful terrible horrible awesome cool crazy super annoying impossible possible dangerous vital free
    true false null nil undefined nan void alias
    password passwords passphrase passwd pwd incomplete complete callable sequence mapping str string strings char
    chars character characters varchar text bytes byte
    int integer number bool boolean float double object dict list array tuple enum uuid date datetime secretstr any
    optional union literal field fields input output value values key keys name names username user users login logins
    logout signin signup email mail mails address phone host hostname port url uri file files path folder server
    database db table column row id ids hash hashes salt salts digest md5 sha bcrypt token tokens auth authentication
    authorization account accounts admin root credential credentials manager managers generator policy policies rule
    rules hint hints prompt reset recovery strength length type types size format description notes note comment
    comments example examples placeholder changeme change your yourself foo bar baz foobar xxx todo tbd fixme none na
    data form body request response result results option options param params parameter parameters argument arguments
    arg args config configuration setting settings variable variables env environment function method class module
    self cls this props state event query code codes line lines word words page pages test tests testing dummy sample
    protection security authenticator prompter getpass encoder encoding base utf ascii hex plain basic bearer ntlm
    kerberos otp totp cleartext bind access level mode support attempt attempts error errors failure success message
    messages status warning info debug added fixed updated removed deprecated internal external global local remote
    falsch richtig leer lang kurz kürzer länger zu sicher unsicher schwach stark neu alt gleich vergessen weg geheim
    abgelaufen erforderlich nötig notwendig gespeichert geändert korrekt ungültig gültig bekannt unbekannt nicht kein
    der die das den dem ein eine einen und oder ist sind war wird werden wurde muss soll kann darf mindestens bitte ihr
    geef het een niet is en van te verkeerd onjuist juist vergeten leeg zwak sterk verplicht nieuw oud opgeslagen
    nie jest są to za zbyt słabe silne błędne niepoprawne poprawne nieprawidłowe puste wymagane nowe stare i lub
    ve veya bir bu yanlış doğru boş zayıf güçlü gerekli hatalı yeni eski değil çok kısa uzun
    el la los las un una y o es no incorrecta incorrecto débil segura vacía nueva olvidada le les et ou est sont ne pas
    votre incorrect oublié faible vide requis il lo gli e non sono errata sbagliata da uma os
    """.split()
)
_SAID_OF = re.compile(r".{3,10}(?:ed|ing|able|ible|less|ful|ious|uous|ically|tly|lly|ely|ated|ized|ised|some)$")
_CAMEL = re.compile(r"[a-z][A-Z]")
_LONGEST_PHRASE = 12


def is_plain_password(text: str) -> bool:
    """Return whether a word, or several words joined by hyphens, may be a password.

    Placeholders and common words are not passwords.
    """
    text = text.rstrip(checks.SENTENCE_ENDS)
    parts = text.casefold().split("-")
    return (
        PLAIN_CHARS_MIN <= len(text) <= _PLAIN_CHARS_MAX
        and all(part.replace("ـ", "").isalpha() or not part.isascii() for part in parts)
        and len(set(text.casefold())) >= _PLAIN_DISTINCT_MIN
        and not _CAMEL.search(text)
        and not checks.is_placeholder(text)
        and not any(_is_never(part) for part in parts)
    )


def is_phrase(text: str) -> bool:
    """Return whether ``text``, found between quotes, is a passphrase.

    A passphrase has 4 to 12 words and is not a placeholder. None of the words is in the list ``_NEVER``.
    """
    words = text.casefold().split()
    return (
        3 < len(words) <= _LONGEST_PHRASE
        and all(word.isalnum() and len(word) > 1 for word in words)
        and not checks.is_placeholder(text)
        and _NEVER.isdisjoint(words)
    )


def is_password_or_word(text: str) -> bool:
    """Return whether ``text``, found where a password is expected ("password: ..."), may be a password.

    Plain words are accepted, except placeholders and words that are never a password.
    """
    return checks.is_password(text) or is_plain_password(text)


def is_quoted_password(text: str) -> bool:
    """Return whether ``text``, found in quotes, may be a password: random characters, a plain word, or a passphrase."""
    return is_phrase(text) if any(char.isspace() for char in text) else is_password_or_word(text)


def _is_never(word: str) -> bool:
    return word in _NEVER or _SAID_OF.fullmatch(word) is not None
