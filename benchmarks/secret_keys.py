"""Made-up secrets of each known form, and harmless lookalikes.

They are assembled from parts at run time, so that secret scanners do not report this file.
"""

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator, Mapping

from benchmarks.drawing import card_number, drawn
from benchmarks.everyday_secrets import iban
from memoryos_mcp.text.secrets.checks import base62_crc32

_ALNUM = string.ascii_letters + string.digits
_WORD = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_HEX = "0123456789abcdef"
_BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

Draw = Callable[[random.Random], str]

# A form consists of literal parts and of (alphabet, length) for random parts.
Part = str | tuple[str, int]

_FORMS: Mapping[str, tuple[tuple[Part, ...], ...]] = {
    "memoryos token": (("mos", "_", (_HEX, 12), "_", (_WORD, 43)),),
    "github token": (("github", "_pat_", (_ALNUM, 22), "_", (_ALNUM, 59)),),
    "gitlab token": (("gl", "pat-", (_WORD, 20)), ("gl", "rt-", (_WORD, 20)), ("gl", "dt-", (_WORD, 20))),
    "bitbucket token": (("ATC", "TT3", (_WORD, 180), "=", ("0123456789abcdef", 8)),),
    "pypi token": (("py", "pi-", "AgEIcHlwaS5vcmc", (_WORD, 150)),),
    "rubygems token": (("ruby", "gems_", (_HEX, 48)),),
    "docker token": (("dckr", "_pat_", (_WORD, 27)),),
    "anthropic key": (("sk-", "ant-", "api03-", (_WORD, 93), "AA"),),
    "openai key": (("sk-", "proj-", (_WORD, 74), "T3Blbk", "FJ", (_WORD, 74)),),
    "openrouter key": (("sk-", "or-v1-", (_HEX, 64)),),
    "api key": (("sk", "-", (_ALNUM, 48)), ("sk", "-", (_HEX, 32))),
    "hugging face token": (("h", "f_", (string.ascii_letters, 34)),),
    "groq key": (("gs", "k_", (_ALNUM, 52)),),
    "replicate token": (("r", "8_", (_ALNUM, 37)),),
    "perplexity key": (("ppl", "x-", (_ALNUM, 48)),),
    "xai key": (("xa", "i-", (_ALNUM, 80)),),
    "aws key id": (
        ("AK", "IA", (string.ascii_uppercase + "234567", 16)),
        ("AS", "IA", (string.ascii_uppercase + "234567", 16)),
    ),
    "aws bedrock key": (("AB", "SK", (_BASE64, 128), "="),),
    "aws secret key": (("aws_secret", "_access_key=", (_BASE64, 40)),),
    "google key": (("AI", "za", (_WORD, 35)),),
    "google client secret": (("GOC", "SPX-", (_WORD, 28)),),
    "google token": (("ya", "29.", (_WORD, 120)),),
    "azure key": (("AccountName=shop;Account", "Key=", (_BASE64, 86), "=="),),
    "azure signature": (("https://shop.example/c?sv=2024-11-04&si", "g=", (_ALNUM, 43), "%3D"),),
    "azure client secret": (((_ALNUM, 3), "8", "Q", "~", (_ALNUM, 34)),),
    "digitalocean token": (("dop", "_v1_", (_HEX, 64)),),
    "heroku key": (("HRK", "U-AA", (_WORD, 58)),),
    "fly token": (("fo", "1_", (_WORD, 43)), ("fm", "2_", (_BASE64, 200), "=")),
    "planetscale token": (("pscale", "_tkn_", (_WORD, 43)),),
    "supabase token": (("sb", "p_", (_HEX, 40)),),
    "terraform token": (((_ALNUM, 14), ".atlas", "v1.", (_WORD, 67)),),
    "vault token": (("hv", "s.", (_WORD, 95)),),
    "pulumi token": (("pu", "l-", (_HEX, 40)),),
    "doppler token": (("dp", ".pt.", (_ALNUM, 43)),),
    "databricks token": (("da", "pi", (_HEX, 32)),),
    "slack token": (
        ("xo", "xb-", (string.digits, 12), "-", (string.digits, 12), "-", (_ALNUM, 24)),
        ("xa", "pp-1-", (string.ascii_uppercase, 11), "-", (string.digits, 13), "-", (_HEX, 64)),
    ),
    "slack webhook": (("https://hooks.slack", ".com/services/", (_ALNUM, 9), "/", (_ALNUM, 11), "/", (_ALNUM, 24)),),
    "discord webhook": (("https://discord", ".com/api/webhooks/", (string.digits, 18), "/", (_WORD, 68)),),
    "telegram token": (((string.digits, 10), ":A", "A", (_WORD, 33)),),
    "twilio key": (("S", "K", (_HEX, 32)),),
    "sendgrid key": (("S", "G.", (_WORD, 22), ".", (_WORD, 43)),),
    "mailgun key": (("ke", "y-", (_HEX, 32)),),
    "mailchimp key": (((_HEX, 32), "-", "us21"),),
    "brevo key": (("xkey", "sib-", (_HEX, 64), "-", (_ALNUM, 16)),),
    "stripe key": (("sk", "_live_", (_ALNUM, 24)), ("rk", "_live_", (_ALNUM, 99))),
    "stripe webhook secret": (("wh", "sec_", (_ALNUM, 32)),),
    "square token": (("sq0", "atp-", (_WORD, 22)), ("EA", "AA", (_WORD, 60))),
    "shopify token": (("shp", "at_", (_HEX, 32)), ("shp", "ss_", (_HEX, 32))),
    "paypal token": (("access_token$", "production$", (_ALNUM, 16), "$", (_HEX, 32)),),
    "atlassian token": (("ATA", "TT3", (_WORD, 180), "=", ("0123456789ABCDEF", 8)),),
    "linear key": (("lin", "_api_", (_ALNUM, 40)),),
    "notion token": (("nt", "n_", (string.digits, 11), (_ALNUM, 35)), ("sec", "ret_", (_ALNUM, 43))),
    "postman key": (("PM", "AK-", (_HEX, 24), "-", (_HEX, 34)),),
    "figma token": (("fig", "d_", (_WORD, 43)),),
    "airtable token": (("pa", "t", (_ALNUM, 14), ".", (_HEX, 64)),),
    "dropbox token": (("s", "l.", (_WORD, 135)),),
    "grafana token": (("gl", "c_", (_BASE64, 120), "="), ("gl", "sa_", (_ALNUM, 32), "_", (_HEX, 8))),
    "new relic key": (("NR", "AK-", (string.ascii_uppercase + string.digits, 27)),),
    "sentry token": (("snt", "ryu_", (_HEX, 64)),),
    "dynatrace token": (("dt0", "c01.", (string.ascii_uppercase, 24), ".", (string.ascii_uppercase, 64)),),
    "age key": (("AGE-SECRET-", "KEY-1", (_BECH32, 58)),),
    "bearer token": (("Authorization: Bea", "rer ", (_ALNUM, 40)),),
    "password in a URL": (("postgres://bob", ":", (_ALNUM, 16), "@db.example.com/shop"),),
    "password": (("my password", " is ", (string.ascii_lowercase, 6), (string.digits, 3)),),
}


def secrets_of(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield one secret of each form with its kind."""
    for kind, forms in _FORMS.items():
        for form in forms:
            yield kind, "".join(part if isinstance(part, str) else drawn(chance, *part) for part in form)
    for kind, make in _MADE.items():
        yield kind, make(chance)


def near_misses(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield one lookalike of each form with its name."""
    for what, make in _NEAR_MISSES.items():
        yield what, make(chance)


def checked_token(prefix: str, chance: random.Random) -> str:
    """Return a token of GitHub or npm: 30 random characters and their checksum."""
    body = drawn(chance, _ALNUM, 30)
    return f"{prefix}_{body}{base62_crc32(body)}"


def private_key(chance: random.Random, lines: int = 12) -> str:
    """Return a block in the form of a private key in PEM."""
    kind = chance.choice(["", "RSA ", "EC ", "OPENSSH "])
    body = "\n".join(drawn(chance, _BASE64, 64) for _ in range(lines))
    dashes = "-" * 5
    ends = [f"{dashes}{end} {kind}PRIVATE" + f" KEY{dashes}" for end in ("BEGIN", "END")]
    return f"{ends[0]}\n{body}\n{drawn(chance, _BASE64, 22)}==\n{ends[1]}"


def jwt(chance: random.Random) -> str:
    """Return a text in the form of a signed JWT."""
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": drawn(chance, string.digits, 10), "iat": 1700000000}]
    encoded = [_url_base64(json.dumps(part)) for part in parts]
    return ".".join([*encoded, drawn(chance, _WORD, 43)])


def discord_token(chance: random.Random) -> str:
    """Return a text in the form of a bot token: its number in base64, a time, a signature."""
    number = "1" + drawn(chance, string.digits, 17)
    return f"{_url_base64(number)}.{drawn(chance, _WORD, 6)}.{drawn(chance, _WORD, 38)}"


def _url_base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _login(chance: random.Random) -> str:
    text = base64.b64encode(f"alice:{drawn(chance, _ALNUM, 14)}".encode()).decode()
    return f"Authorization: Basic {text}"


def _phone(chance: random.Random) -> str:
    return f"+49 {drawn(chance, string.digits, 3)} {drawn(chance, string.digits, 8)}"


def _isbn(chance: random.Random) -> str:
    return f"978-3-{drawn(chance, string.digits, 4)}-{drawn(chance, string.digits, 4)}-{chance.randrange(10)}"


def _bar_code(chance: random.Random) -> str:
    return "4" + drawn(chance, string.digits, 12)


def _wrong_iban(chance: random.Random) -> str:
    """Return an account number with one wrong digit, so that its check digits are invalid."""
    right = iban(chance, " ")
    return right[:-1] + str((int(right[-1]) + chance.randrange(1, 10)) % 10)


def _order_number(chance: random.Random) -> str:
    return f"order {chance.randrange(10**9):09d}-{chance.randrange(10**4):04d}"


def _image(chance: random.Random) -> str:
    return "data:image/png;base64,iVBORw0KGgo" + drawn(chance, _BASE64, 400)


def _version(chance: random.Random) -> str:
    return f"sk-learn 1.{chance.randrange(9)}.{chance.randrange(9)} and pip 2{chance.randrange(9)}.1"


_MADE: Mapping[str, Draw] = {
    **{
        f"github token ({prefix})": lambda chance, prefix=prefix: checked_token(prefix, chance)  # type: ignore[misc]
        for prefix in ("ghp", "gho", "ghu", "ghs", "ghr")
    },
    "npm token": lambda chance: checked_token("npm", chance),
    "github token (long)": lambda chance: f"ghs_{drawn(chance, string.digits, 7)}_{jwt(chance)}",
    "discord token": discord_token,
    "jwt": jwt,
    "login": _login,
    "private key": private_key,
    "card number (Visa)": card_number,
    "card number (Mastercard)": lambda chance: card_number(chance, "53", separator=" "),
    "card number (American Express)": lambda chance: card_number(chance, "37", 15),
    "card number (Discover)": lambda chance: card_number(chance, "6011", separator="-"),
}

_NEAR_MISSES: Mapping[str, Draw] = {
    "commit": lambda chance: drawn(chance, _HEX, 40),
    "SHA-256": lambda chance: drawn(chance, _HEX, 64),
    "UUID": lambda chance: str(uuid.UUID(int=chance.getrandbits(128), version=4)),
    "phone number": _phone,
    "ISBN": _isbn,
    "bar code": _bar_code,
    "IBAN, mistyped": _wrong_iban,
    "order number": _order_number,
    "microseconds": lambda chance: str(1_700_000_000_000_000 + chance.randrange(10**14)),
    "number of a message": lambda chance: "1" + drawn(chance, string.digits, 18),
    "image in base64": _image,
    "product code": lambda chance: f"SK-{drawn(chance, string.digits, 6)}-AC{drawn(chance, _HEX, 4)}",
    "address": lambda chance: f"https://example.com/a/{drawn(chance, _ALNUM, 22)}?page={chance.randrange(99)}",
    "class of CSS": lambda chance: f"sk-fading-circle-{chance.randrange(12)} sk-chase-dot-before",
    "versions": _version,
    "password in code": lambda chance: chance.choice(
        ["password = data.get('password')", "password: str = Field(min_length=8)", "passwords must match"]
    ),
    "placeholder": lambda chance: chance.choice(
        ["api_key = 'YOUR_API_KEY_HERE'", "postgres://user:password@localhost/db", "password: ********"]
    ),
}
