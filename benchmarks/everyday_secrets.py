"""Made-up everyday secrets: passwords in sentences and files, seed phrases, wallets, cards, accounts, codes.

Sentence, value and context are drawn at random for each secret. The expected text after redaction is known, so a form
counts as caught only if exactly the secret is removed.
"""

import base64
import hashlib
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from benchmarks.drawing import card_number, drawn
from memoryos_mcp.text.secrets import placeholder

_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_ALNUM = string.ascii_letters + _DIGITS
_HEX = "0123456789abcdef"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE64 = _ALNUM + "+/"

_NOUNS = (
    "dragon monkey shadow sunshine princess football baseball superman batman michael jordan swordfish butterfly "
    "mustang falcon pepper ginger cookie banana orange purple silver hammer thunder diamond flower chester buster "
    "killer soccer hockey ranger tigger jennifer joshua matthew daniel andrew martin phoenix mercury saturn "
    "pumpkin chocolate scooter kastanie regenbogen sommer schatzi kaffee fiets zomer vlinder olifant lente "
    "kwiatek motyl kotek wakacje misiek deniz güneş kelebek istanbul aslan galatasaray papillon soleil mariposa "
    "estrella girasol tortuga cachorro cometa"
).split()

Draw = Callable[[random.Random], str]


@dataclass(frozen=True, slots=True)
class Planted:
    """A text that contains a secret, and the text without it.

    Attributes:
        kind: The form, beginning with the kind that redaction must report.
    """

    kind: str
    text: str
    clean: str


def planted(chance: random.Random) -> Iterator[Planted]:
    """Yield one text for each form."""
    for form, (sentences, value) in _FORMS.items():
        yield _plant(form, chance.choice(sentences), value, chance)


def _plant(form: str, sentence: str, value: Draw, chance: random.Random) -> Planted:
    """Return the sentence within other text, with a secret for each ``§`` and names for the other placeholders."""
    sentence = chance.choice(_AROUND).replace("§§", sentence)
    for mark, names in _NAMES.items():
        while mark in sentence:
            sentence = sentence.replace(mark, chance.choice(names), 1)
    parts = re.split("(§)", sentence)
    mark = placeholder(form.partition(" (")[0])
    return Planted(form, "".join(value(chance) if part == "§" else part for part in parts), sentence.replace("§", mark))


_AROUND = (
    "§§",
    "Hi!\n§§\nThanks a lot.",
    "As I said yesterday, this is it:\n\n§§",
    "§§\nIt is still raining here in Lisbon.",
    "1. Call the bank at 9:30\n§§\n3. Walk the dog, 20 minutes",
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "®": ("mail", "router", "bank", "Netflix", "work", "GitHub", "Wi-Fi", "laptop"),
    "¤": ("bob", "alice", "maria.k", "root", "deploy", "j_smith", "admin"),
    "¶": ("example.com", "db.internal", "10.0.0.5", "api.shop.example", "git.example.org"),
}


def mixed(chance: random.Random) -> str:
    """Return a password of letters and digits, some with a symbol."""
    if chance.random() < 0.5:
        return chance.choice(_LOWER) + drawn(chance, _ALNUM, chance.randrange(6, 14)) + chance.choice(_DIGITS)
    word = chance.choice(_NOUNS)
    return (
        chance.choice([word, word.title()]) + str(chance.randrange(10, 3000)) + chance.choice(["", "!", "#", "$", "?x"])
    )


def word(chance: random.Random) -> str:
    """Return a password that is a plain word: a name, two words in one, or syllables."""
    sort = chance.randrange(4)
    if sort == 0:
        return chance.choice(_NOUNS)
    if sort == 1:
        return chance.choice(_NOUNS) + chance.choice(_NOUNS)
    if sort == 2:
        return "-".join(chance.choice(_NOUNS) for _ in range(chance.randrange(2, 5)))
    text = "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(chance.randrange(3, 6)))
    return chance.choice([text, text.title()])


def any_password(chance: random.Random) -> str:
    """Return a password, one of three a plain word."""
    return word(chance) if chance.random() < 1 / 3 else mixed(chance)


def seed_phrase(chance: random.Random, words: int) -> tuple[str, ...]:
    """Return a BIP-39 seed phrase: random bits, and their checksum in the last word."""
    numbers = files("memoryos_mcp.text.secrets").joinpath("bip39_english.txt").read_text(encoding="ascii").split()
    entropy = chance.randbytes(words * 4 // 3)
    digest = hashlib.sha256(entropy).digest()[0]
    bits = f"{int.from_bytes(entropy, 'big'):0{len(entropy) * 8}b}" + f"{digest:08b}"[: words // 3]
    return tuple(numbers[int(bits[at : at + 11], 2)] for at in range(0, len(bits), 11))


def base58check(payload: bytes) -> str:
    """Return bytes and their checksum in Base58."""
    number = int.from_bytes(payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4], "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text


def iban(chance: random.Random, gap: str = "") -> str:
    """Return an account number with valid check digits, in groups of four if there is a gap."""
    country, bank, digits = chance.choice(_IBANS)
    body = bank + drawn(chance, _DIGITS, digits)
    number = int("".join(str(int(char, 36)) for char in f"{body}{country}00"))
    text = f"{country}{98 - number % 97:02d}{body}"
    return gap.join(text[at : at + 4] for at in range(0, len(text), 4))


_IBANS = (
    *(("DE", "", 18), ("NL", "ABNA", 10), ("GB", "NWBK", 14), ("FR", "", 23), ("PL", "", 24), ("ES", "", 20)),
    *(("TR", "", 22), ("AT", "", 16), ("CH", "", 17), ("BE", "", 12), ("SA", "", 20), ("IT", "X", 22), ("NO", "", 11)),
)


def _phrase(words: int) -> Draw:
    def draw(chance: random.Random) -> str:
        phrase = seed_phrase(chance, words)
        joined = (" ".join(phrase), ", ".join(phrase), "\n".join(phrase), _numbered(phrase), " ".join(phrase).title())
        return chance.choice(joined)

    return draw


def _numbered(phrase: tuple[str, ...]) -> str:
    # The first number is not a part of the secret, so it must stay.
    return "".join(f"{'' if at == 1 else f'{at}. '}{word}\n" for at, word in enumerate(phrase, start=1)).strip()


def _social_security_number(chance: random.Random) -> str:
    area = chance.choice([chance.randrange(1, 666), chance.randrange(667, 900)])
    return f"{area:03d}-{chance.randrange(1, 100):02d}-{chance.randrange(1, 10_000):04d}"


def _login(chance: random.Random) -> str:
    return base64.b64encode(f"{chance.choice(_NAMES['¤'])}:{mixed(chance)}".encode()).decode()


def _wif(chance: random.Random) -> str:
    return base58check(chance.choice([b"\x80", b"\xef"]) + chance.randbytes(32) + chance.choice([b"", b"\x01"]))


def _extended_key(chance: random.Random) -> str:
    version = chance.choice(["0488ade4", "049d7878", "04b2430c", "04358394"])
    return base58check(bytes.fromhex(version) + bytes([chance.randrange(5)]) + chance.randbytes(73))


def _lines(chance: random.Random) -> str:
    lines = [drawn(chance, _BASE64, 64) for _ in range(3)]
    return "\n".join([*lines, drawn(chance, _BASE64, chance.choice([40, 44, 20, 60]))])


def _session(chance: random.Random) -> str:
    return chance.choice(
        [drawn(chance, _HEX, 32), "s%3A" + drawn(chance, _ALNUM, 40), drawn(chance, _LOWER + _DIGITS, 26)]
    )


def _pin(chance: random.Random) -> str:
    return drawn(chance, _DIGITS, chance.choice([4, 4, 4, 5, 6]))


def _card(gaps: str) -> Draw:
    return lambda chance: card_number(chance, chance.choice(["4", "53", "6011"]), separator=chance.choice(gaps))


_CODE_SHAPES: tuple[Draw, ...] = (
    lambda chance: drawn(chance, _DIGITS, 8),
    lambda chance: f"{drawn(chance, _HEX, 5)}-{drawn(chance, _HEX, 5)}",
    lambda chance: f"{drawn(chance, _DIGITS, 4)}-{drawn(chance, _DIGITS, 4)}",
    lambda chance: drawn(chance, _LOWER + _DIGITS, 10),
    lambda chance: "-".join(drawn(chance, _UPPER + "234567", 4) for _ in range(4)),
)
_CODE_LISTS = (
    "My GitHub backup codes are: {}",
    "Recovery codes:\n{}",
    "2FA recovery codes for the ® account:\n{}",
    "backup codes\n{}\nkeep them safe",
    "Wiederherstellungscodes: {}",
    "Here are my backup codes for ®: {}",
    "**Backup codes**\n\n{}",
)


def recovery_codes(chance: random.Random) -> Planted:
    """Return a list of codes of one shape; this is a separate form, because each code is removed on its own."""
    shape = chance.choice(_CODE_SHAPES)
    codes = [shape(chance) for _ in range(chance.randrange(4, 11))]
    if not any(map(str.isdigit, "".join(codes))):
        codes[0] = codes[0][:-1] + "7"
    around = chance.choice(_AROUND).replace("§§", chance.choice(_CODE_LISTS)).replace("®", "bank")
    ways: list[Callable[[list[str]], str]] = [
        ", ".join, "\n".join, lambda each: "\n".join(f"- {one}" for one in each),
        lambda each: "\n".join(f"{at}. {one}" for at, one in enumerate(each, 1)),
    ]  # fmt: skip
    join = chance.choice(ways)
    marks = [placeholder("recovery code")] * len(codes)
    return Planted("recovery code", around.format(join(codes)), around.format(join(marks)))


_ENV = (
    "DB_PASS=§",
    "export DB_PASS=§",
    'export REDIS_PASS="§"',
    "ENV MYSQL_ROOT_PASSWORD=§",
    "docker run -e POSTGRES_PASSWORD=§ -p 5432:5432 postgres:16",
    "      - SMTP_PASS=§",
    "PGPASSWORD=§ psql -h ¶ -U ¤",
    "APP_DB_PASSWORD='§'",
)

_FORMS: Mapping[str, tuple[tuple[str, ...], Draw]] = {
    "password (bold)": (
        (
            "**Password:** §",
            "**Password**: §",
            "- **®** password: **§**",
            "*Password:* `§`",
            "**Passwort:** §",
            "__password__: §",
        ),
        any_password,
    ),
    "password (table)": (
        (
            "| password | § |",
            "| Site | ® |\n| Password | § |",
            "|password|`§`|",
            "| ® password | **§** |",
            "| Wachtwoord | § |",
        ),
        any_password,
    ),
    "password (tag)": (
        (
            "<password>§</password>",
            "<login><user>¤</user><password>§</password></login>",
            "<Password>§</Password>",
            "<db.password>§</db.password>",
            '<ns:password type="text">§</ns:password>',
        ),
        any_password,
    ),
    "password (brackets)": (
        (
            "The ® password (§) still works.",
            "Log in with ¤ and the password (§).",
            "my password (§)",
            "Das Passwort (§) geht noch.",
        ),
        mixed,
    ),
    "password (brackets, a word)": (
        ("my password (§) is on the note", "our ® password (§)", "my ® password (§)."),
        word,
    ),
    "password (colon)": (
        (
            "password: §",
            "Password: §",
            "user: ¤\npassword: §",
            "®: ¤, password: §",
            "login: ¤ / password: §, host: ¶",
            "  password: '§'",
            '{"user": "¤", "password": "§"}',
            "my ® password: §",
            "Passphrase: §",
        ),
        any_password,
    ),
    "password (is)": (
        (
            "my password is §",
            "My password is §.",
            "My ® password is §, don't tell anyone.",
            "The password for the ® is § and it works.",
            'the password is "§".',
            "By the way, our password was § for years",
        ),
        any_password,
    ),
    "password (changed)": (
        (
            "I changed my password to §",
            "I changed my ® password to §.",
            "Please set the password to §",
            "I've reset the ® password to §, as agreed.",
            "We updated our password to § and told nobody.",
            'changed the root password to "§"',
        ),
        any_password,
    ),
    "password (phrase)": (
        ('my passphrase is "§"', 'passphrase: "§"', '"password": "§"', "passphrase = '§'"),
        lambda chance: " ".join(chance.choice(_NOUNS) for _ in range(chance.randrange(4, 7))),
    ),
    "password (.netrc)": (
        (
            "machine ¶ login ¤ password §",
            "machine ¶\n  login ¤\n  password §",
            "default login ¤ password §",
            "machine ¶\n\tlogin ¤\n\tpassword §\n",
        ),
        any_password,
    ),
    "password (environment)": (_ENV, any_password),
    "password (configuration)": (
        (
            "ansible_become_pass: §",
            'ansible_become_pass: "§"',
            "ansible_ssh_pass=§",
            "db_pass: §",
            "spring.datasource.password=§",
            "smtp_pass = '§'",
            "password=§\nuser=¤",
            "mysql://¶/shop?user=¤&password=§",
            "requirepass_password: §",
            "ansible_password: §",
        ),
        any_password,
    ),
    "api key (secret)": (
        (
            "JWT_SECRET=§",
            "export JWT_SECRET=§",
            'SESSION_SECRET="§"',
            "jwt_secret: '§'",
            "NEXTAUTH_SECRET=§",
            "      - COOKIE_SECRET=§",
            'webhook_secret = "§"',
        ),
        lambda chance: drawn(chance, _ALNUM, chance.randrange(12, 64)) + "7f",
    ),
    "password (curl)": (
        (
            "curl -u ¤:§ https://¶/x",
            'curl -s -X POST -u "¤:§" https://¶/api',
            "curl --user ¤:§ -O https://¶/a.zip",
            "$ curl -su '¤:§' https://¶",
            "curl https://¶/v1 \\\n  -u ¤:§",
        ),
        any_password,
    ),
    "password (sshpass)": (
        (
            "sshpass -p § ssh ¤@¶",
            "sshpass -p '§' scp a.txt ¤@¶:/tmp",
            "sshpass -p§ rsync -a . ¤@¶:x",
            'sshpass -v -p "§" ssh ¤@¶',
        ),
        any_password,
    ),
    "password (mysql)": (
        (
            "mysql -u ¤ -p§ shop",
            "mysqldump -h ¶ -u¤ -p§ --all-databases > dump.sql",
            "mysql -u¤ -p'§'",
            "mysqladmin -u ¤ -p§ status",
            "mariadb -u ¤ -p§",
        ),
        any_password,
    ),
    "password (option)": (
        (
            "tool --user ¤ --password § --verbose",
            "tool --password=§",
            "backup --db-password '§' now",
            "wget --http-password=§ https://¶/f",
        ),
        mixed,
    ),
    "session cookie": (
        (
            "Set-Cookie: sid=§; Path=/; HttpOnly; Secure",
            "Cookie: theme=dark; sessionid=§",
            "set-cookie: connect.sid=§; Max-Age=3600",
            "curl -H 'Cookie: PHPSESSID=§' https://¶",
            "Cookie: JSESSIONID=§; lang=en",
            '"Cookie": "auth_sid=§; lang=en"',
        ),
        _session,
    ),
    "login (docker)": (
        (
            '{"auths": {"¶": {"auth": "§"}}}',
            '"auth": "§"',
            '    "https://¶": {\n      "auth": "§"\n    }',
            "//¶/:_auth=§",
        ),
        _login,
    ),
    "one-time password key": (
        (
            "otpauth://totp/®:¤?secret=§&issuer=Shop",
            "otpauth://totp/Shop:¤%40¶?issuer=Shop&secret=§&digits=6",
            "Scan otpauth://hotp/x?secret=§ please",
        ),
        lambda chance: drawn(chance, _UPPER + "234567", chance.choice([16, 26, 32])),
    ),
    "seed phrase (12)": (
        (
            "My seed phrase is: §",
            "§",
            "wallet backup\n\n1. §",
            'mnemonic = "§"',
            "Recovery phrase (12): §. Never share it.",
        ),
        _phrase(12),
    ),
    "seed phrase (24)": (("My seed phrase is: §", "§", "Ledger:\n1. §", 'MNEMONIC="§"', "the 24 are: §."), _phrase(24)),
    "wallet key (extended)": (("My key is §.", "xprv: §", "import §", '{"key": "§"}'), _extended_key),
    "wallet key (Bitcoin)": (
        ("WIF: §", "bitcoin-cli importprivkey §", "my bitcoin key is §, keep it", '"privkey": "§"'),
        _wif,
    ),
    "wallet key (Ethereum)": (
        (
            "My ETH private key is §",
            "PRIVATE_KEY=§",
            'privateKey: "§"',
            "private key of my MetaMask wallet: §",
            "§ is my private key",
            "cast send --private-key §",
        ),
        lambda chance: chance.choice(["", "0x"]) + drawn(chance, _HEX, 64),
    ),
    "private key (PuTTY)": (
        (
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: ¤@¶\nPublic-Lines: 2\n"
            "AAAAC3NzaC1lZDI1NTE5AAAAIJ\nabcdefABCDEF0123\n"
            "Private-Lines: 4\n§\nPrivate-MAC: none",
            "Private-Lines: 4\n§",
        ),
        _lines,
    ),
    "card number (dots)": (("My card: §", "card § exp 12/29", "Pay with §."), _card(".\u00a0\u202f\u2011")),
    "card code": (
        ("CVV: §", "the CVV is §", "exp 04/29, CVC §", "CVV2: §", "Security code: §", "Kartenprüfnummer: §", "cvc=§"),
        lambda chance: drawn(chance, _DIGITS, 3),
    ),
    "bank account": (
        ("My IBAN is §.", "IBAN: §", "Please transfer it to § by Friday.", "Konto § bei der Bank", "(§)"),
        lambda chance: iban(chance, chance.choice(["", " ", "\u00a0"])),
    ),
    "social security number": (
        (
            "My SSN is §.",
            "SSN: §",
            "social security number: §",
            "My social security number, if you need it, is §",
            "§ is my SSN",
        ),
        _social_security_number,
    ),
    "PIN": (
        (
            "My PIN is §.",
            "PIN: §",
            "the PIN for my card is §",
            "Meine PIN ist §",
            "Mijn pincode is §",
            "Mój PIN to §",
            "kod PIN: §",
            "PIN kodum: §",
            "Geheimzahl: §",
            "मेरा पिन § है",
            "الرقم السري: §",
            "my PIN code is §",
        ),
        _pin,
    ),
    "password (German)": (
        ("Mein Passwort ist §", "Das Kennwort lautet §.", "Passwort: §", "Ich habe mein Passwort auf § geändert."),
        mixed,
    ),
    "password (Dutch)": (
        (
            "Mijn wachtwoord is §",
            "Wachtwoord: §",
            "het wachtwoord voor ® luidt §",
            "Ik heb mijn wachtwoord veranderd in §",
        ),
        mixed,
    ),
    "password (Polish)": (
        ("Moje hasło to §", "Hasło: §", "hasło do ® to §", "Zmieniłem hasło na §", "moje hasło brzmi §"),
        mixed,
    ),
    "password (Turkish)": (("Şifrem §", "Şifre: §", "® şifrem: §", "Parola: §", "parolam § oldu"), mixed),
    "password (Arabic)": (("كلمة المرور: §", "كلمة السر هي §", "كلمة المرور الخاصة بي هي §", "كلمة مرور ®: §"), mixed),
    "password (Hindi)": (("मेरा पासवर्ड § है", "पासवर्ड: §", "® का पासवर्ड § है।", "पासवर्ड है §"), mixed),
}
