"""Patterns for the keys and tokens of many providers.

Prefixes and lengths are from the providers' documentation or from public secret scanners. If a provider has changed the
length of its keys, the pattern has only a minimum length.
"""

from memoryos_mcp.text.secrets import checks, forms
from memoryos_mcp.text.secrets.forms import END, Check, SecretPattern, named
from memoryos_mcp.text.secrets.password_words import IS

_W = "[A-Za-z0-9_-]"
_AN = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

# Words that precede "key", "token" or "secret" in the names of secrets. After other words, the value is usually not a
# secret, as in "sort key" and "page token".
_KEY_SORTS = ("api", "secret", "access", "auth", "client", "app", "private", "encryption", "bot", "refresh")
_KEY_NAMES = f"(?:{'|'.join(f'(?<={sort})|(?<={sort}[_ -])' for sort in _KEY_SORTS)})(?:key|token|secret)"


def _looks_issued(text: str) -> bool:
    return checks.looks_random(text) and "EXAMPLE" not in text and "XXXXXXXX" not in text


def key(kind: str, hints: str, form: str, check: Check | None = _looks_issued) -> SecretPattern:
    """Return the pattern of a provider's key; see `forms.key`.

    By default, a match counts only if it looks random and contains no placeholder (such as ``EXAMPLE``).
    """
    return forms.key(kind, hints, form, check)


PROVIDER_KEYS: tuple[SecretPattern, ...] = (
    # This program and code hosts.
    key("memoryos token", "mos_", rf"mos_{_HEX}{{12}}_{_W}{{43}}+"),
    key("github token", "ghs_", rf"ghs_[0-9]{{1,20}}_eyJ{_W}++\.{_W}++\.{_W}++"),
    key("github token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_AN}{{36,}}+", checks.is_checked_token),
    key("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{60,}+"),
    key(
        "gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas- glagent- glimt- glffct-",
        rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|agent|imt|ffct)-{_W}{{20,}}+(?:\.[0-9a-z.]{{9,12}}+)?",
    ),
    key("bitbucket token", "ATCTT3 ATBB", rf"(?:ATCTT3|ATBB){_W}{{28,}}+(?:={_HEX}{{8}})?"),
    # Package registries.
    key("npm token", "npm_", rf"npm_{_AN}{{36}}{END}", checks.is_checked_token),
    key("pypi token", "pypi-", rf"pypi-AgE{_W}{{50,}}+"),
    key("rubygems token", "rubygems_", rf"rubygems_{_HEX}{{48}}{END}"),
    key("docker token", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_W}{{20,}}+"),
    # LLM providers.
    key("anthropic key", "sk-ant-", rf"sk-ant-{_W}{{16,}}+"),
    key("openai key", "sk-", rf"sk-(?:proj|svcacct|admin|None)-{_W}{{16,}}+"),
    key("openrouter key", "sk-or-", rf"sk-or-v1-{_HEX}{{40,}}+"),
    # The oldest form of OpenAI keys, which DeepSeek and others also use.
    key("api key", "sk-", rf"sk-{_AN}{{20,}}+(?![-_])", checks.is_named_key),
    key("hugging face token", "hf_ api_org_", rf"(?:hf|api_org)_{_AN}{{30,}}+"),
    key("groq key", "gsk_", rf"gsk_{_AN}{{40,}}+"),
    key("replicate token", "r8_", rf"r8_{_AN}{{37}}{END}"),
    key("perplexity key", "pplx-", rf"pplx-{_AN}{{40,}}+"),
    key("xai key", "xai-", rf"xai-{_AN}{{60,}}+"),
    # Cloud and hosting providers.
    key("aws key id", "AKIA ASIA ABIA ACCA", rf"A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}{END}"),
    key("aws bedrock key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,}+={0,2}"),
    named(
        "aws secret key",
        "aws,secret",
        rf"(?:aws[\w .-]{{0,20}}(?:secret|access)|secret[ _-]?access)[\w .-]{{0,20}}{IS}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        checks.looks_random,
    ),
    key("google key", "AIza", rf"AIza{_W}{{35}}(?!{_W})"),
    key("google client secret", "GOCSPX-", rf"GOCSPX-{_W}{{24,}}+"),
    key("google token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{30,}+"),
    named(
        "azure key",
        "accountkey=,sharedaccesskey=",
        r"(?:accountkey|sharedaccesskey)=(?P<secret>[A-Za-z0-9+/]{42,90}+={0,2})",
    ),
    named("azure signature", "sig=", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,90}+={0,2})", checks.looks_random),
    key("azure client secret", "Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    key("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", rf"do[opr]_v1_{_HEX}{{64}}{END}"),
    key("heroku key", "HRKU-", rf"HRKU-{_W}{{36,}}+"),
    named("heroku key", "heroku", rf"heroku[\w .-]{{0,24}}{IS}(?P<secret>{_UUID}){END}", checks.looks_random),
    key("fly token", "fo1_ fm1r_ fm1a_ fm2_", rf"(?:fo1_{_W}{{43}}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{{100,}}+={{0,3}})"),
    key("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}+"),
    key("supabase token", "sbp_ sb_secret_", rf"(?:sbp_{_HEX}{{40}}|sb_secret_{_W}{{20,}}+)"),
    key("terraform token", ".atlasv1.", rf"{_AN}{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}+"),
    key("vault token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_W}{{24,}}+"),
    key("pulumi token", "pul-", rf"pul-{_HEX}{{40}}{END}"),
    key("doppler token", "dp.", rf"dp\.(?:pt|st|ct|scim|audit|sa)\.(?:[a-z0-9_-]{{2,35}}+\.)?{_AN}{{40,44}}{END}"),
    key("databricks token", "dapi", rf"dapi{_HEX}{{32}}(?:-[0-9])?{END}"),
    # Messaging.
    key(
        "slack token",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe",
        rf"xox(?:[abprso]|e(?:\.xox[bp])?)-{_W}{{12,}}+",
        checks.is_named_key,
    ),
    key("slack token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[a-z0-9]{30,}+"),
    key("slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{40,}+"),
    key("discord token", "", r"[MNO][A-Za-z0-9_-]{22,27}+\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}+"),
    key("discord webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/[0-9]{{17,20}}/{_W}{{60,}}+"),
    key("telegram token", ":A", rf"[0-9]{{8,10}}:A{_W}{{34}}(?!{_W})"),
    key("twilio key", "SK AC", rf"(?:SK|AC){_HEX}{{32}}{END}"),
    named("twilio key", "twilio", rf"twilio[\w .-]{{0,30}}{IS}(?P<secret>{_HEX}{{32}}){END}", checks.looks_random),
    key("sendgrid key", "SG.", rf"SG\.{_W}{{22}}\.{_W}{{43}}(?!{_W})"),
    key("mailgun key", "key-", rf"key-{_HEX}{{32}}{END}"),
    named(
        "mailgun key",
        "mailgun",
        rf"mailgun[\w .-]{{0,30}}{IS}(?P<secret>{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}){END}",
        checks.looks_random,
    ),
    key("mailchimp key", "-us", rf"{_HEX}{{32}}-us[0-9]{{1,2}}{END}"),
    key("brevo key", "xkeysib-", rf"xkeysib-{_HEX}{{64}}-{_AN}{{16}}{END}"),
    # Payment providers and shops.
    key("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", rf"[sr]k_(?:live|test)_{_AN}{{16,}}+"),
    key("stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,}+={0,2}"),
    key("square token", "sq0atp- sq0csp- EAAA", rf"(?:sq0(?:atp-{_W}{{22}}|csp-{_W}{{43}})|EAAA{_W}{{60}})(?!{_W})"),
    key("shopify token", "shpat_ shpca_ shppa_ shpss_", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{END}"),
    key("paypal token", "access_token$production$", rf"access_token\$production\${_AN}{{16}}\${_HEX}{{32}}{END}"),
    # Work tools.
    key("atlassian token", "ATATT3", rf"ATATT3{_W}{{100,}}+(?:=[0-9A-F]{{8}})?"),
    key("linear key", "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_{_AN}{{40,}}+"),
    key("notion token", "ntn_ secret_", rf"(?:ntn_{_AN}{{40,}}+|secret_{_AN}{{43}}{END})"),
    key("postman key", "PMAK-", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}{END}"),
    key("figma token", "figd_", rf"figd_{_W}{{40,}}+"),
    key("airtable token", "pat", rf"pat{_AN}{{14}}\.{_HEX}{{64}}{END}"),
    key("dropbox token", "sl.", rf"sl\.(?:u\.)?{_W}{{130,}}+"),
    # Monitoring.
    key("grafana token", "glc_ glsa_", rf"(?:glc_[A-Za-z0-9+/]{{32,}}+={{0,3}}|glsa_{_AN}{{32}}_[0-9A-Fa-f]{{8}})"),
    key("new relic key", "NRAK- NRII- NRJS-", rf"NR(?:AK-[A-Z0-9]{{27}}|II-{_W}{{32}}|JS-{_HEX}{{19}}){END}"),
    key("sentry token", "sntryu_ sntrys_", rf"sntry(?:u_{_HEX}{{64}}|s_[A-Za-z0-9+/=_-]{{60,}}+)"),
    key("dynatrace token", "dt0c01.", rf"dt0[a-z][0-9]{{2}}\.{_AN}{{24}}\.{_AN}{{64}}{END}"),
    # Formats that several providers use.
    key("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    key("jwt", "eyJ", rf"eyJ{_W}{{8,}}+\.eyJ{_W}{{8,}}+\.{_W}{{10,}}+", checks.is_jwt),
    named("bearer token", "bearer", r"bearer[ \t]{1,3}(?P<secret>[A-Za-z0-9._~+/-]{20,}+={0,2})", checks.is_named_key),
    named("login", "basic", r"basic[ \t]{1,3}(?P<secret>[A-Za-z0-9+/]{14,}+={0,2})", checks.is_basic_login),
    named(
        "password in a URL",
        "://",
        r"://[^\s/?#:@\"'<>\[\]]{0,256}+:(?P<secret>[^\s/?#\"'<>\[\]]{1,256})(?=@[^\s@])",
        checks.is_url_password,
        is_long=False,
    ),
    named(
        "api key",
        "key,token,secret",
        rf"{_KEY_NAMES}{IS}(?P<secret>[A-Za-z0-9_+/=-]{{16,256}}+)(?![(.\[])",
        checks.is_named_key,
    ),
)
