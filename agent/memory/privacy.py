"""Exclusions from memory: secrets always, personal data unless the user adds it."""

import re

from tooling.safety.secrets.redact import Redactor

# "The password is …" in many languages; the redactor detects tokens of known providers.
_PASSWORD = (
    r"\b(?:pass(?:word|wort|phrase|code)|pwd|kennwort|mot de passe|contrase[ñn]a|senha|wachtwoord|has[łl]o|парол[ья]"
    r"|secret|token|api[ _-]?key|private key|pin code)\b[^.;\n]{0,20}?(?:\b(?:is|ist|est|es|to|это)\b|[:=])\s*\S"
    r"|(?:密码|密碼|口令|パスワード|비밀번호)[^。\n]{0,8}?(?:是|は|[:=:])\s*\S"
)
_PERSONAL = (
    ("a password or key", rf"(?i:{_PASSWORD})"),
    ("an e-mail address", r"\b(?!git@)[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    ("a phone number", r"(?<![\w.])\+\d{1,3}[ \d()/.-]{7,}\d\b"),
    ("an account number", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("a card number", r"\b(?:\d[ -]?){13,19}\b"),
)


SECRET_FOUND = "it contains a key or token"


def find_secret(text: str, redactor: Redactor) -> str | None:
    """Return the reason if a text contains a secret, or None."""
    return SECRET_FOUND if redactor.redact(text) != text else None


def find_personal_data(text: str) -> str | None:
    """Return the reason if a text contains personal data, or None."""
    return next((f"it contains {what}" for what, pattern in _PERSONAL if re.search(pattern, text)), None)
