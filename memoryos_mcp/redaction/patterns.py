r"""The forms of secrets, as data: what is looked for first, the form, and a check where the form says too little.

Prefixes and lengths are the providers' own, as they document them or as public scanners know them. Lengths are lower
bounds where a provider has changed them before. Every quantifier is bounded or possessive (``++``, ``{n,}+``), so that
no text, however hostile, takes longer than in proportion to its length.

A key may touch letters of a script without spaces, so borders are told by ASCII letters and digits, not by ``\b``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memoryos_mcp.redaction import checks

_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
_W = "[A-Za-z0-9_-]"
_AN = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"


# Secrets that are drawn at random are at least this long. Most pages hold few words that are, so that these are looked
# at in their place.
LONG_WORD_CHARS = 16


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A form of secret.

    Attributes:
        kind: What it is called where it is left out, and in receipts.
        hints: One of these stands in every text that holds such a secret; without any, only the form itself tells.
        form: What it looks like; the group ``secret`` if only that part is left out.
        check: Whether what has the form is one; sees the secret part.
        names: Finds, in the text in lower case, where the form may begin; None if the form is looked for everywhere.
        is_word: Whether one word, without a blank, holds the hint and the secret.
        is_long: Whether the secret has at least ``LONG_WORD_CHARS`` without a blank.
    """

    kind: str
    hints: tuple[str, ...]
    form: re.Pattern[str]
    check: Callable[[str], bool] | None
    names: re.Pattern[str] | None = None
    is_word: bool = False
    is_long: bool = False

    @property
    def is_part(self) -> bool:
        """Whether only a part of what has the form is left out."""
        return "secret" in self.form.groupindex


def _key(kind: str, hints: str, form: str, check: Callable[[str], bool] | None = checks.is_drawn) -> SecretPattern:
    """Return the form of a key that is told by its beginning; hints are separated by blanks."""
    return SecretPattern(kind, tuple(hints.split()), re.compile(_START + form), check, is_word=True, is_long=True)


def _named(
    kind: str, hints: str, form: str, check: Callable[[str], bool] | None = None, *, is_long: bool = True
) -> SecretPattern:
    """Return the form of a secret that a name before it tells; it begins with a hint. They are separated by commas."""
    names = tuple(hints.split(","))
    begins = re.compile("|".join(map(re.escape, names)))
    return SecretPattern(kind, names, re.compile(form, re.IGNORECASE), check, begins, is_long=is_long)


# Between a secret's name and the secret: what it is for, a closing quote, a sign or verb, an opening quote.
_IS = (
    r"(?: (?:for|to|of|für|zum|zur|pour|para|de|di) [\w .'’-]{1,40}?)?[\"'`*]{0,3}"
    r"(?:\s{0,3}(?::=|=>|[:=：＝]|is|was|ist|lautet|est|es|è|é|是|は|은|는|为|為)[:=]?| [–—-] )\s{0,3}[\"'`*「“„]{0,3}"
)

_LOGIN_NAMES = "passphrase,pwd,kennwort,contraseña,mot de passe,senha,пароль,密码,密碼,パスワード,비밀번호"
_LOGIN_FORM = f"(?:passwor[dt]|passwd|{_LOGIN_NAMES.replace(',', '|')})"
# A key or token is not just any: a sort key or a primary key is none, and a page token holds no secret.
_KEY_SORTS = ("api", "secret", "access", "auth", "client", "app", "private", "encryption", "bot", "refresh")
_KEY_NAMES = f"(?:{'|'.join(f'(?<={sort})|(?<={sort}[_ -])' for sort in _KEY_SORTS)})(?:key|token|secret)"

PATTERNS: tuple[SecretPattern, ...] = (
    # This program's own, and sources of code.
    _key("memoryos token", "mos_", rf"mos_{_HEX}{{12}}_{_W}{{43}}+"),
    _key("github token", "ghs_", rf"ghs_[0-9]{{1,20}}_eyJ{_W}++\.{_W}++\.{_W}++"),
    _key("github token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_AN}{{36,}}+", checks.is_checked_token),
    _key("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,}+"),
    _key(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas- glagent- glimt- glffct-",
        rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|agent|imt|ffct)-{_W}{{20,}}+(?:\.[0-9a-z.]{{9,12}}+)?",
    ),
    _key("bitbucket token", "ATCTT3 ATBB", rf"(?:ATCTT3|ATBB){_W}{{28,}}+(?:={_HEX}{{8}})?"),
    # Package registries.
    _key("npm token", "npm_", rf"npm_{_AN}{{36}}{_END}", checks.is_checked_token),
    _key("pypi token", "pypi-", rf"pypi-AgE{_W}{{50,}}+"),
    _key("rubygems token", "rubygems_", rf"rubygems_{_HEX}{{48}}{_END}"),
    _key("docker token", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_W}{{20,}}+"),
    # Models.
    _key("anthropic key", "sk-ant-", rf"sk-ant-{_W}{{16,}}+"),
    _key("openai key", "sk-", rf"sk-(?:proj|svcacct|admin|None)-{_W}{{16,}}+"),
    _key("openrouter key", "sk-or-", rf"sk-or-v1-{_HEX}{{40,}}+"),
    # The oldest form of OpenAI's, which DeepSeek's and others' have taken over.
    _key("api key", "sk-", rf"sk-{_AN}{{20,}}+(?![-_])", checks.is_named_key),
    _key("hugging face token", "hf_ api_org_", rf"(?:hf|api_org)_{_AN}{{30,}}+"),
    _key("groq key", "gsk_", rf"gsk_{_AN}{{40,}}+"),
    _key("replicate token", "r8_", rf"r8_{_AN}{{37}}{_END}"),
    _key("perplexity key", "pplx-", rf"pplx-{_AN}{{40,}}+"),
    _key("xai key", "xai-", rf"xai-{_AN}{{60,}}+"),
    # Clouds and hosts.
    _key("aws key id", "AKIA ASIA ABIA ACCA", rf"A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}{_END}"),
    _key("aws bedrock key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,}+={0,2}"),
    _named(
        "aws secret key",
        "aws,secret",
        rf"(?:aws[\w .-]{{0,20}}(?:secret|access)|secret[ _-]?access)[\w .-]{{0,20}}{_IS}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        checks.is_drawn,
    ),
    _key("google key", "AIza", rf"AIza{_W}{{35}}(?!{_W})"),
    _key("google client secret", "GOCSPX-", rf"GOCSPX-{_W}{{24,}}+"),
    _key("google token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{30,}+"),
    _named(
        "azure key",
        "accountkey=,sharedaccesskey=",
        r"(?:accountkey|sharedaccesskey)=(?P<secret>[A-Za-z0-9+/]{42,90}+={0,2})",
    ),
    _named("azure signature", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,90}+={0,2})", checks.is_drawn),
    _key("azure client secret", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    _key("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", rf"do[opr]_v1_{_HEX}{{64}}{_END}"),
    _key("heroku key", "HRKU-", rf"HRKU-{_W}{{36,}}+"),
    _named("heroku key", "heroku", rf"heroku[\w .-]{{0,24}}{_IS}(?P<secret>{_UUID}){_END}", checks.is_drawn),
    _key("fly token", "fo1_ fm1r_ fm1a_ fm2_", rf"(?:fo1_{_W}{{43}}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{{100,}}+={{0,3}})"),
    _key("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}+"),
    _key("supabase token", "sbp_ sb_secret_", rf"(?:sbp_{_HEX}{{40}}|sb_secret_{_W}{{20,}}+)"),
    _key("terraform token", ".atlasv1.", rf"{_AN}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}+"),
    _key("vault token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_W}{{24,}}+"),
    _key("pulumi token", "pul-", rf"pul-{_HEX}{{40}}{_END}"),
    _key("doppler token", "dp.", rf"dp\.(?:pt|st|ct|scim|audit|sa)\.(?:[a-z0-9_-]{{2,35}}+\.)?{_AN}{{40,44}}{_END}"),
    _key("databricks token", "dapi", rf"dapi{_HEX}{{32}}(?:-[0-9])?{_END}"),
    # Messages.
    _key(
        "slack token",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe",
        rf"xox(?:[abprso]|e(?:\.xox[bp])?)-{_W}{{12,}}+",
        checks.is_named_key,
    ),
    _key("slack token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[a-z0-9]{30,}+"),
    _key("slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{40,}+"),
    _key("discord token", "", r"[MNO][A-Za-z0-9_-]{22,27}+\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}+"),
    _key("discord webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/[0-9]{{17,20}}/{_W}{{60,}}+"),
    _key("telegram token", ":A", rf"[0-9]{{8,10}}:A{_W}{{34}}(?!{_W})"),
    _key("twilio key", "SK AC", rf"(?:SK|AC){_HEX}{{32}}{_END}"),
    _named("twilio key", "twilio", rf"twilio[\w .-]{{0,30}}{_IS}(?P<secret>{_HEX}{{32}}){_END}", checks.is_drawn),
    _key("sendgrid key", "SG.", rf"SG\.{_W}{{22}}\.{_W}{{43}}(?!{_W})"),
    _key("mailgun key", "key-", rf"key-{_HEX}{{32}}{_END}"),
    _named(
        "mailgun key",
        "mailgun",
        rf"mailgun[\w .-]{{0,30}}{_IS}(?P<secret>{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}){_END}",
        checks.is_drawn,
    ),
    _key("mailchimp key", "-us", rf"{_HEX}{{32}}-us[0-9]{{1,2}}{_END}"),
    _key("brevo key", "xkeysib-", rf"xkeysib-{_HEX}{{64}}-{_AN}{{16}}{_END}"),
    # Payment and shops.
    _key("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", rf"[sr]k_(?:live|test)_{_AN}{{16,}}+"),
    _key("stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,}+={0,2}"),
    _key("square token", "sq0atp- sq0csp- EAAA", rf"(?:sq0(?:atp-{_W}{{22}}|csp-{_W}{{43}})|EAAA{_W}{{60}})(?!{_W})"),
    _key("shopify token", "shpat_ shpca_ shppa_ shpss_", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}"),
    _key("paypal token", "access_token$production$", rf"access_token\$production\${_AN}{{16}}\${_HEX}{{32}}{_END}"),
    # Tools of work.
    _key("atlassian token", "ATATT3", rf"ATATT3{_W}{{100,}}+(?:=[0-9A-F]{{8}})?"),
    _key("linear key", "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_{_AN}{{40,}}+"),
    _key("notion token", "ntn_ secret_", rf"(?:ntn_{_AN}{{40,}}+|secret_{_AN}{{43}}{_END})"),
    _key("postman key", "PMAK-", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}{_END}"),
    _key("figma token", "figd_", rf"figd_{_W}{{40,}}+"),
    _key("airtable token", "pat", rf"pat{_AN}{{14}}\.{_HEX}{{64}}{_END}"),
    _key("dropbox token", "sl.", rf"sl\.(?:u\.)?{_W}{{130,}}+"),
    # Watching.
    _key("grafana token", "glc_ glsa_", rf"(?:glc_[A-Za-z0-9+/]{{32,}}+={{0,3}}|glsa_{_AN}{{32}}_[0-9A-Fa-f]{{8}})"),
    _key("new relic key", "NRAK- NRII- NRJS-", rf"NR(?:AK-[A-Z0-9]{{27}}|II-{_W}{{32}}|JS-{_HEX}{{19}}){_END}"),
    _key("sentry token", "sntryu_ sntrys_", rf"sntry(?:u_{_HEX}{{64}}|s_[A-Za-z0-9+/=_-]{{60,}}+)"),
    _key("dynatrace token", "dt0c01.", rf"dt0[a-z][0-9]{{2}}\.{_AN}{{24}}\.{_AN}{{64}}{_END}"),
    # Of no provider.
    _key("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _key("jwt", "eyJ", rf"eyJ{_W}{{8,}}+\.eyJ{_W}{{8,}}+\.{_W}{{10,}}+", checks.is_jwt),
    _named("bearer token", "bearer", r"bearer[ \t]{1,3}(?P<secret>[A-Za-z0-9._~+/-]{20,}+={0,2})", checks.is_named_key),
    _named("login", "basic", r"basic[ \t]{1,3}(?P<secret>[A-Za-z0-9+/]{14,}+={0,2})", checks.is_basic_login),
    _named(
        "password in a URL",
        "://",
        r"://[^\s/?#:@\"'<>\[\]]{0,256}+:(?P<secret>[^\s/?#\"'<>\[\]]{1,256})(?=@[^\s@])",
        checks.is_url_password,
        is_long=False,
    ),
    _named(
        "password",
        f"passw,{_LOGIN_NAMES}",
        rf"{_LOGIN_FORM}{_IS}"
        r"(?P<secret>[^\s\"'`<>,;(){}\[\]“”「」]{5,128}+)(?![(\[{])",
        checks.is_password,
        is_long=False,
    ),
    _named(
        "api key",
        "key,token,secret",
        rf"{_KEY_NAMES}{_IS}(?P<secret>[A-Za-z0-9_+/=-]{{16,256}}+)(?![(.\[])",
        checks.is_named_key,
    ),
    SecretPattern(
        "card number",
        (),
        re.compile(
            r"(?<![0-9A-Za-z_.+])(?<![A-Za-z]-)(?:[2-6][0-9]{13,18}(?![0-9])"
            # In groups it is none where more groups follow or go before, as in an IBAN.
            r"|(?<![0-9][ -])(?:[2-6][0-9]{3}(?P<four>[ -])[0-9]{4}(?P=four)[0-9]{4}(?P=four)[0-9]{4,7}"
            r"|3[0-9]{3}(?P<six>[ -])[0-9]{6}(?P=six)[0-9]{4,5})(?![ -]?[0-9]))(?![A-Za-z_])(?!\.[0-9])"
        ),
        checks.is_card_number,
        # Every card number begins so; a class at the beginning is looked for several times as quickly.
        names=re.compile("[2-6][0-9]{3}[ -]?[0-9]{4,6}[ -]?[0-9]{4}"),
    ),
)

_LOGIN_NAME = re.compile(_LOGIN_FORM, re.IGNORECASE)
_KEY_NAME = re.compile("key|token|secret", re.IGNORECASE)


def is_named_secret(name: str, value: str) -> str | None:
    """Return what kind of secret a value is that goes by a name, as in JSON; None if it is none."""
    if _LOGIN_NAME.search(name) and checks.is_password(value):
        return "password"
    return "api key" if _KEY_NAME.search(name) and checks.is_named_key(value) else None
