"""What tokens of known makers look like."""

from typing import NamedTuple

_ASSIGNED = r"[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?"


class AnchoredSecret(NamedTuple):
    """A fixed piece of text that every such secret holds, and the expression that matches from there.

    The last group of the expression, if it has one, is what is masked.
    """

    anchor: str
    regex: str


# Every one of these begins with a run of at least RUN_LENGTH letters, digits, "_" and "-", so only the beginnings of
# such runs are looked at: "task-force" holds no "sk-", and a clean megabyte costs next to nothing.
RUN_LENGTH = 13
RUN_SECRETS: tuple[str, ...] = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9]{24,}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{40,}",
    r"gl(?:pat|rt|dt|ptt|agent)-[A-Za-z0-9_-]{20,}",
    r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{35}",
    r"GOCSPX-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"gsk_[A-Za-z0-9]{30,}",
    r"xai-[A-Za-z0-9]{40,}",
    r"r8_[A-Za-z0-9]{37}",
    r"pplx-[A-Za-z0-9]{30,}",
    r"tvly-[A-Za-z0-9-]{16,}",
    r"jina_[A-Za-z0-9_-]{30,}",
    r"do[oprt]_v1_[a-f0-9]{64}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"lin_api_[A-Za-z0-9]{30,}",
    r"nvapi-[A-Za-z0-9_-]{40,}",
    r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}",
    r"EAAA[A-Za-z0-9_-]{60}",
    r"key-[0-9a-f]{32}(?![0-9a-f])",
    r"ATATT3[A-Za-z0-9_=-]{50,}",
    r"NRAK-[A-Z0-9]{27}",
    r"dapi[a-f0-9]{32}(?![0-9a-f])",
    r"figd_[A-Za-z0-9_-]{40,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
)

ANCHORED_SECRETS: tuple[AnchoredSecret, ...] = (
    AnchoredSecret(
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    AnchoredSecret("ecret_access_key", r"ecret_access_key" + _ASSIGNED + r"([A-Za-z0-9/+]{40})"),
    AnchoredSecret("SECRET_ACCESS_KEY", r"SECRET_ACCESS_KEY" + _ASSIGNED + r"([A-Za-z0-9/+]{40})"),
    AnchoredSecret("hooks.slack.com/", r"hooks\.slack\.com/(services/[A-Za-z0-9/]{20,})"),
    AnchoredSecret("ya29.", r"(?<![\w-])ya29\.[A-Za-z0-9_-]{20,}"),
    AnchoredSecret("hvs.", r"(?<![\w-])hvs\.[A-Za-z0-9_-]{20,}"),
    AnchoredSecret("SG.", r"(?<![\w-])SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    # Prose speaks of "bearer authentication"; a token holds a digit.
    AnchoredSecret("earer ", r"earer {1,4}(?=[^\s\"']{0,200}\d)([A-Za-z0-9._~+/-]{16,}=*)"),
    AnchoredSecret("uthorization: ", r"uthorization: {1,4}(?:[A-Za-z]{1,20} {1,4})?([^\s\"']{8,})"),
    AnchoredSecret("://", r"://[^\s/:@]{0,64}:([^\s/:@]{3,256})@"),
)
