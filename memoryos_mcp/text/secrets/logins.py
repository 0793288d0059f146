"""Patterns for credentials in command lines, .netrc files, Docker files, cookies and otpauth URLs."""

import re
from collections.abc import Iterator

from memoryos_mcp.text.secrets import checks
from memoryos_mcp.text.secrets.forms import SecretPattern, Span, finding, positions
from memoryos_mcp.text.secrets.password_words import is_password_or_word

# The rest of a command. A command continues on the next line after a backslash.
_REST = r"(?:[^\n\\|;]|\\\n?){0,300}?"
_WORD_OF_SHELL = r"(?:'(?P<single>[^'\n]{1,128}+)'|\"(?P<double>[^\"\n]{1,128}+)\"|(?P<bare>[^\s\"'`|;&<>()]{1,128}+))"
_SHELL_PARTS = ("single", "double", "bare")
# Only an option with a password matches. With "-p" alone, the command prompts for the password. In "-p$PASS" and
# "-p<password>", the values are placeholders.
_ARGUMENTS = (
    ("curl", rf"curl\b{_REST}[ \t](?:-[a-z]{{0,6}}u[ \t]{{0,3}}|--(?:proxy-)?user[ =])(?:[\"']?[^\s:\"'$<]{{1,64}}:)"),
    ("sshpass", rf"sshpass\b{_REST}[ \t]-p[ \t]{{0,3}}"),
    ("mysql", rf"mysql[\w-]{{0,12}}+(?![\w:/-]){_REST}[ \t](?-i:-p)(?=[^ \t\n])"),
    ("mariadb", rf"mariadb[\w-]{{0,12}}+(?![\w:/-]){_REST}[ \t](?-i:-p)(?=[^ \t\n])"),
    ("redis-cli", rf"redis-cli\b{_REST}[ \t](?-i:-a)[ \t]{{1,3}}"),
    ("docker login", rf"docker login\b{_REST}[ \t](?-i:-p)[ \t]{{0,3}}"),
    ("podman login", rf"podman login\b{_REST}[ \t](?-i:-p)[ \t]{{0,3}}"),
    ("ldap", rf"ldap(?:search|modify|add|delete|whoami|passwd)\b{_REST}[ \t](?-i:-w)[ \t]{{0,3}}"),
    ("mongo", rf"mongo(?:sh|dump|restore|export|import)?(?![\w:/-]){_REST}[ \t](?-i:-p)[ \t]{{1,3}}"),
    ("smbclient", rf"smbclient\b{_REST}[ \t](?-i:-U)[ \t]{{0,3}}[\"']?[^\s%\"']{{1,64}}%"),
    ("--", r"--(?:[a-z]{1,16}-){0,2}pass(?:word|wd|phrase|code)?(?:=|[ \t]{1,3}(?=['\"]|\S{0,128}?[0-9]))"),
)


def _is_argument(text: str) -> bool:
    return not checks.is_placeholder(text) and text.casefold() not in {"user", "pw", "pwd", "port", "password"}


def _is_option_value(text: str) -> bool:
    return not text.isupper() and (checks.is_password(text) or (text.islower() and is_password_or_word(text)))


_OPTIONS = (" -p", " -a ", " -w", " -u", "--pass", "-pass")
_COMMANDS = tuple((hint, re.compile(form + _WORD_OF_SHELL, re.IGNORECASE)) for hint, form in _ARGUMENTS)


def _find_arguments(text: str, lower: str) -> Iterator[Span]:
    if not ("curl" in lower or any(option in lower for option in _OPTIONS)):
        return
    for hint, form in _COMMANDS:
        for at in positions((hint,), lower):
            if match := form.match(text, at):
                part = next(part for part in _SHELL_PARTS if match[part])
                if (_is_option_value if hint == "--" else _is_argument)(match[part]):
                    yield match.span(part)


_COOKIES = re.compile(
    r"cookie[\"']?(?:[ \t]{0,3}[:=][ \t]{0,3}|[ \t]{1,3})[\"'`]?(?P<pairs>[\w.$-]{1,64}=[^\r\n\"'`]{1,4000}+)",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?<![\w.$-])(?P<name>[\w.$-]{1,64})=(?P<secret>[^\s;,\"']{8,4000}+)")
_SESSION = re.compile(
    r"sess|sid\b|sid$|auth|token|jwt|remember|login|csrf|xsrf|ident|secret|^id$|user|_id$", re.IGNORECASE
)
_OF_A_COOKIE = frozenset("path domain expires max-age samesite priority version comment".split())


def _find_cookies(text: str, lower: str) -> Iterator[Span]:
    at = 0
    while (at := lower.find("cookie", at)) >= 0:
        match = _COOKIES.match(text, at)
        at += len("cookie")
        if match is None:
            continue
        at = match.end()
        for pair in _PAIR.finditer(text, match.start("pairs"), match.end()):
            if pair["name"].lower() not in _OF_A_COOKIE and _is_session(pair["name"], pair["secret"]):
                yield pair.span("secret")


def _is_session(name: str, value: str) -> bool:
    if _SESSION.search(name):
        return checks.looks_random(value) and not checks.is_placeholder(value) and any(map(str.isdigit, value))
    return len(value) >= _RANDOM_COOKIE_CHARS and checks.is_named_key(value)


_RANDOM_COOKIE_CHARS = 16
_ENV_SECRET_CHARS = 8


def _is_env_secret(text: str) -> bool:
    return len(text) >= _ENV_SECRET_CHARS and not text.isdigit() and is_password_or_word(text)


LOGINS: tuple[SecretPattern, ...] = (
    SecretPattern("password", (" -",), _find_arguments),
    # A line of a .netrc file: machine h login u password p
    SecretPattern(
        "password",
        ("login",),
        finding(
            r"(?:machine\s{1,8}\S{1,255}|default)\s{1,8}login\s{1,8}\S{1,128}\s{1,8}(?:account\s{1,8}\S{1,128}\s{1,8})?"
            r"password\s{1,8}(?P<secret>\S{2,128}+)",
            _is_argument,
            r"(?<![\w.-])(?:machine|default)(?=\s)",
            re.IGNORECASE,
        ),
    ),
    # A login in Docker's configuration: "auth": "dXNlcjpwYXNz"
    SecretPattern(
        "login",
        ('auth"', "_auth", "auth\\", "auth:"),
        finding(
            r"auth\\?[\"']?[ \t]{0,3}[:=]\s{0,3}\\?[\"']?(?P<secret>[A-Za-z0-9+/]{6,512}+={0,2})(?![\w+/=])",
            checks.is_basic_login,
            r"(?<![a-z])auth",
        ),
    ),
    SecretPattern(
        "one-time password key",
        ("auth",),
        finding(
            r"otpauth(?:://[^\s\"'<>]{0,300}?[?&]secret=|-migration://offline\?data=)(?P<secret>[\w%+/=-]{8,}+)",
            checks.looks_random,
            "otpauth",
            re.IGNORECASE,
        ),
    ),
    SecretPattern("session cookie", ("cookie",), _find_cookies),
    # An assignment: JWT_SECRET=x, session_secret: "x"
    SecretPattern(
        "api key",
        ("secret",),
        finding(
            r"_secret(?:_key)?(?:_base)?\\?[\"']?[ \t]{0,2}(?:=|:|:=|=>)[ \t]{0,2}\\?[\"']?"
            r"(?P<secret>[^\s\"'`;,|<>$(){}\[\]\\]{8,256}+)(?![(\[{])",
            lambda text: _is_env_secret(text) and checks.is_mixed_password(text),
            r"(?<=[a-z0-9])_secret",
            re.IGNORECASE,
        ),
    ),
    SecretPattern(
        "api key",
        ("secret",),
        finding(
            r"SECRET(?:_KEY)?(?:_BASE)?=[\"']?(?P<secret>[^\s\"'`;|<>$(){}\[\]]{8,256}+)",
            _is_env_secret,
            r"(?<![a-z0-9])(?:(?<=_)|(?<![_.-]))secret(?:_key)?(?:_base)?=",
        ),
    ),
)
