"""Patterns of tokens from known providers."""

from typing import NamedTuple

_ASSIGNED = r"[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?"
_ANY = r"[A-Za-z0-9_-]"
_HEX = "0123456789abcdef"


class TokenPattern(NamedTuple):
    """A token recognized by its first three characters, and the expression that matches it."""

    prefixes: tuple[str, ...]
    regex: str


class AnchoredPattern(NamedTuple):
    """A fixed text that every such secret contains, and the expression that matches from there.

    The last group of the expression is masked, or the entire match if it has no group. A text without `required_byte`
    cannot contain the secret; searching for one byte costs next to nothing.
    """

    anchor: bytes
    regex: str
    required_byte: bytes = b""


# Each of these starts with a run of at least MIN_TOKEN_LENGTH letters, digits, "_" and "-", so only the starts of such
# runs are examined: "task-force" does not match "sk-", and a clean megabyte costs next to nothing.
MIN_TOKEN_LENGTH = 18
TOKEN_PATTERNS: tuple[TokenPattern, ...] = (
    # Long names in style sheets and packages also start like this, but have no digits or capitals between the "-".
    TokenPattern(("sk-",), rf"sk-(?:[A-Za-z0-9]{{20}}|(?=[a-z_-]*[A-Z0-9]){_ANY}{{20}}){_ANY}*"),
    TokenPattern(("sk_", "rk_", "pk_"), r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    TokenPattern(("whs",), r"whsec_[A-Za-z0-9]{24,}"),
    TokenPattern(("ghp", "gho", "ghu", "ghs", "ghr"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    TokenPattern(("git",), r"github_pat_[A-Za-z0-9_]{40,}"),
    TokenPattern(("glp", "glr", "gld", "gla", "glc", "gls"), rf"gl(?:pat|rt|dt|ptt|agent|cbt|soat)-{_ANY}{{20,}}"),
    TokenPattern(("gls", "glc"), r"(?:glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9]{32,})"),
    TokenPattern(("AKI", "ASI"), r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    TokenPattern(("AIz",), rf"AIza{_ANY}{{35}}"),
    TokenPattern(("GOC",), rf"GOCSPX-{_ANY}{{20,}}"),
    TokenPattern(("xox",), r"xox[abceoprs]-[A-Za-z0-9-]{13,}"),
    TokenPattern(("xap",), r"xapp-[A-Za-z0-9-]{13,}"),
    TokenPattern(("npm",), r"npm_[A-Za-z0-9]{36}"),
    TokenPattern(("pyp",), rf"pypi-{_ANY}{{50,}}"),
    TokenPattern(("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    TokenPattern(("gsk",), r"gsk_[A-Za-z0-9]{30,}"),
    TokenPattern(("xai",), r"xai-[A-Za-z0-9]{40,}"),
    TokenPattern(("r8_",), r"r8_[A-Za-z0-9]{37}"),
    TokenPattern(("ppl",), r"pplx-[A-Za-z0-9]{30,}"),
    TokenPattern(("tvl",), r"tvly-[A-Za-z0-9-]{16,}"),
    TokenPattern(("jin",), rf"jina_{_ANY}{{30,}}"),
    TokenPattern(("fw_",), r"fw_(?=[A-Za-z]*\d)[A-Za-z0-9]{22,}"),
    TokenPattern(("nva",), rf"nvapi-{_ANY}{{40,}}"),
    TokenPattern(("lsv",), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    TokenPattern(("doo", "dop", "dor"), r"do[opr]_v1_[a-f0-9]{64}"),
    TokenPattern(("shp",), r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    TokenPattern(("dck",), rf"dckr_(?:pat|oat)_{_ANY}{{20,}}"),
    TokenPattern(("lin",), r"lin_api_[A-Za-z0-9]{30,}"),
    TokenPattern(("sq0",), rf"sq0(?:atp|csp)-{_ANY}{{22,}}"),
    TokenPattern(("EAA",), rf"EAAA{_ANY}{{60}}"),
    TokenPattern(("key",), r"key-[0-9a-f]{32}(?![0-9a-f])"),
    TokenPattern(("ATA",), r"ATATT3[A-Za-z0-9_=-]{50,}"),
    TokenPattern(("NRA",), r"NRAK-[A-Z0-9]{27}"),
    TokenPattern(("dap",), r"dapi[a-f0-9]{32}(?![0-9a-f])"),
    TokenPattern(("fig",), rf"figd_{_ANY}{{40,}}"),
    TokenPattern(("AGE",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    TokenPattern(("HRK",), rf"HRKU-{_ANY}{{30,}}"),
    TokenPattern(("PMA",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    TokenPattern(tuple(f"SK{digit}" for digit in _HEX), r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    TokenPattern(("snt",), r"sntry[su]_[A-Za-z0-9_+/=-]{40,}"),
    TokenPattern(("sec",), r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    TokenPattern(("ntn",), r"ntn_[A-Za-z0-9]{40,}"),
    TokenPattern(("psc",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    TokenPattern(("sbp", "sgp"), r"s[bg]p_[a-f0-9]{40}"),
    TokenPattern(("pul",), r"pul-[a-f0-9]{40}"),
    TokenPattern(("eyJ",), rf"eyJ{_ANY}{{10,}}\.eyJ{_ANY}{{10,}}\.{_ANY}{{10,}}"),
)

# Runs after a full stop or a colon with the provider's prefix in front of it; only the run is masked.
PREFIXED_PATTERNS: tuple[str, ...] = (
    rf"(?<=(?<![A-Za-z0-9])ya29\.){_ANY}{{20,}}",
    rf"(?<=(?<![A-Za-z0-9])hv[sbr]\.){_ANY}{{20,}}",
    rf"(?<=(?<![A-Za-z0-9])SG\.){_ANY}{{16,64}}\.{_ANY}{{16,64}}",
    r"(?<=(?<![A-Za-z0-9])dp\.(?:pt|st|sa|ct)\.)[A-Za-z0-9]{40,}",
    rf"(?<=\d{{8}}:)AA{_ANY}{{33}}(?![A-Za-z0-9])",
)

ANCHORED_PATTERNS: tuple[AnchoredPattern, ...] = (
    AnchoredPattern(
        b"-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    AnchoredPattern(b"ecret_access_key", r"ecret_access_key" + _ASSIGNED + r"([A-Za-z0-9/+]{40})", b"_"),
    AnchoredPattern(b"SECRET_ACCESS_KEY", r"SECRET_ACCESS_KEY" + _ASSIGNED + r"([A-Za-z0-9/+]{40})", b"_"),
    AnchoredPattern(b"ecretAccessKey", r"ecretAccessKey" + _ASSIGNED + r"([A-Za-z0-9/+]{40})"),
    AnchoredPattern(b"AccountKey=", r"AccountKey=([A-Za-z0-9/+]{40,}={0,2})", b"="),
    AnchoredPattern(b"_authToken=", r"_authToken=(?!\$)([^\s\"']{8,})", b"="),
    AnchoredPattern(b"hooks", r"hooks(?:\.slack\.com/services|/\d{17,20})/([A-Za-z0-9/_-]{20,})", b"/"),
    # Prose mentions "bearer authentication"; a token contains a digit.
    AnchoredPattern(b"earer", r"earer {1,4}(?=[^\s\"']{0,200}\d)([A-Za-z0-9._~+/-]{16,}=*)"),
    AnchoredPattern(
        b"uthorization",
        r"uthorization[\"']?: {0,4}[\"']?(?:[Bb]asic|[Tt]oken|[Aa]pi[Kk]ey|[Dd]igest) {1,4}(?![$<{])([^\s\"']{8,})",
    ),
    AnchoredPattern(b"://", r"://[^\s/:@]{0,64}:(?![$<{*])([^\s/:@]{3,256})@", b"@"),
)
