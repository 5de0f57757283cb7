"""What tokens of known makers look like."""

from typing import NamedTuple

_ASSIGNED = r"[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?"
_ANY = r"[A-Za-z0-9_-]"
_HEX = "0123456789abcdef"


class RunSecret(NamedTuple):
    """A token that is known by its first three characters, and the expression that matches all of it."""

    beginnings: tuple[str, ...]
    regex: str


class AnchoredSecret(NamedTuple):
    """A fixed piece of text that every such secret holds, and the expression that matches from there.

    The last group of the expression, if it has one, is what is masked. `sign` is one character without which the text
    cannot hold such a secret: looking for one character costs nothing.
    """

    anchor: bytes
    regex: str
    sign: bytes = b""


# Every one of these begins with a run of at least RUN_LENGTH letters, digits, "_" and "-", so only the beginnings of
# such runs are looked at: "task-force" holds no "sk-", and a clean megabyte costs next to nothing.
RUN_LENGTH = 18
RUN_SECRETS: tuple[RunSecret, ...] = (
    # Style sheets and packages have long names with this beginning, but no digits and capitals between the "-".
    RunSecret(("sk-",), rf"sk-(?:[A-Za-z0-9]{{20}}|(?=[a-z_-]*[A-Z0-9]){_ANY}{{20}}){_ANY}*"),
    RunSecret(("sk_", "rk_", "pk_"), r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    RunSecret(("whs",), r"whsec_[A-Za-z0-9]{24,}"),
    RunSecret(("ghp", "gho", "ghu", "ghs", "ghr"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    RunSecret(("git",), r"github_pat_[A-Za-z0-9_]{40,}"),
    RunSecret(("glp", "glr", "gld", "gla", "glc", "gls"), rf"gl(?:pat|rt|dt|ptt|agent|cbt|soat)-{_ANY}{{20,}}"),
    RunSecret(("gls", "glc"), r"(?:glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|glc_[A-Za-z0-9]{32,})"),
    RunSecret(("AKI", "ASI"), r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    RunSecret(("AIz",), rf"AIza{_ANY}{{35}}"),
    RunSecret(("GOC",), rf"GOCSPX-{_ANY}{{20,}}"),
    RunSecret(("xox",), r"xox[abceoprs]-[A-Za-z0-9-]{13,}"),
    RunSecret(("xap",), r"xapp-[A-Za-z0-9-]{13,}"),
    RunSecret(("npm",), r"npm_[A-Za-z0-9]{36}"),
    RunSecret(("pyp",), rf"pypi-{_ANY}{{50,}}"),
    RunSecret(("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    RunSecret(("gsk",), r"gsk_[A-Za-z0-9]{30,}"),
    RunSecret(("xai",), r"xai-[A-Za-z0-9]{40,}"),
    RunSecret(("r8_",), r"r8_[A-Za-z0-9]{37}"),
    RunSecret(("ppl",), r"pplx-[A-Za-z0-9]{30,}"),
    RunSecret(("tvl",), r"tvly-[A-Za-z0-9-]{16,}"),
    RunSecret(("jin",), rf"jina_{_ANY}{{30,}}"),
    RunSecret(("fw_",), r"fw_(?=[A-Za-z]*\d)[A-Za-z0-9]{22,}"),
    RunSecret(("nva",), rf"nvapi-{_ANY}{{40,}}"),
    RunSecret(("lsv",), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    RunSecret(("doo", "dop", "dor"), r"do[opr]_v1_[a-f0-9]{64}"),
    RunSecret(("shp",), r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    RunSecret(("dck",), rf"dckr_(?:pat|oat)_{_ANY}{{20,}}"),
    RunSecret(("lin",), r"lin_api_[A-Za-z0-9]{30,}"),
    RunSecret(("sq0",), rf"sq0(?:atp|csp)-{_ANY}{{22,}}"),
    RunSecret(("EAA",), rf"EAAA{_ANY}{{60}}"),
    RunSecret(("key",), r"key-[0-9a-f]{32}(?![0-9a-f])"),
    RunSecret(("ATA",), r"ATATT3[A-Za-z0-9_=-]{50,}"),
    RunSecret(("NRA",), r"NRAK-[A-Z0-9]{27}"),
    RunSecret(("dap",), r"dapi[a-f0-9]{32}(?![0-9a-f])"),
    RunSecret(("fig",), rf"figd_{_ANY}{{40,}}"),
    RunSecret(("AGE",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    RunSecret(("HRK",), rf"HRKU-{_ANY}{{30,}}"),
    RunSecret(("PMA",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    RunSecret(tuple(f"SK{digit}" for digit in _HEX), r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    RunSecret(("snt",), r"sntry[su]_[A-Za-z0-9_+/=-]{40,}"),
    RunSecret(("sec",), r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    RunSecret(("ntn",), r"ntn_[A-Za-z0-9]{40,}"),
    RunSecret(("psc",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    RunSecret(("sbp", "sgp"), r"s[bg]p_[a-f0-9]{40}"),
    RunSecret(("pul",), r"pul-[a-f0-9]{40}"),
    RunSecret(("eyJ",), rf"eyJ{_ANY}{{10,}}\.eyJ{_ANY}{{10,}}\.{_ANY}{{10,}}"),
)

# Runs behind a full stop or a colon whose maker stands before it; what is masked begins with the run.
LED_SECRETS: tuple[str, ...] = (
    rf"(?<=(?<![A-Za-z0-9])ya29\.){_ANY}{{20,}}",
    rf"(?<=(?<![A-Za-z0-9])hv[sbr]\.){_ANY}{{20,}}",
    rf"(?<=(?<![A-Za-z0-9])SG\.){_ANY}{{16,64}}\.{_ANY}{{16,64}}",
    r"(?<=(?<![A-Za-z0-9])dp\.(?:pt|st|sa|ct)\.)[A-Za-z0-9]{40,}",
    rf"(?<=\d{{8}}:)AA{_ANY}{{33}}(?![A-Za-z0-9])",
)

ANCHORED_SECRETS: tuple[AnchoredSecret, ...] = (
    AnchoredSecret(
        b"-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    AnchoredSecret(b"ecret_access_key", r"ecret_access_key" + _ASSIGNED + r"([A-Za-z0-9/+]{40})", b"_"),
    AnchoredSecret(b"SECRET_ACCESS_KEY", r"SECRET_ACCESS_KEY" + _ASSIGNED + r"([A-Za-z0-9/+]{40})", b"_"),
    AnchoredSecret(b"ecretAccessKey", r"ecretAccessKey" + _ASSIGNED + r"([A-Za-z0-9/+]{40})"),
    AnchoredSecret(b"AccountKey=", r"AccountKey=([A-Za-z0-9/+]{40,}={0,2})", b"="),
    AnchoredSecret(b"_authToken=", r"_authToken=(?!\$)([^\s\"']{8,})", b"="),
    AnchoredSecret(b"hooks", r"hooks(?:\.slack\.com/services|/\d{17,20})/([A-Za-z0-9/_-]{20,})", b"/"),
    # Prose speaks of "bearer authentication"; a token holds a digit.
    AnchoredSecret(b"earer", r"earer {1,4}(?=[^\s\"']{0,200}\d)([A-Za-z0-9._~+/-]{16,}=*)"),
    AnchoredSecret(
        b"uthorization",
        r"uthorization[\"']?: {0,4}[\"']?(?:[Bb]asic|[Tt]oken|[Aa]pi[Kk]ey|[Dd]igest) {1,4}(?![$<{])([^\s\"']{8,})",
    ),
    AnchoredSecret(b"://", r"://[^\s/:@]{0,64}:(?![$<{*])([^\s/:@]{3,256})@", b"@"),
)
