"""The table of settings in docs/configuration.md; `python -m tests.agent.config.settings_table` updates it."""

from dataclasses import fields
from pathlib import Path

from agent.config.service_settings import ServiceSettings
from agent.config.settings import ModelSettings, ProfileSettings, Settings
from agent.config.values import KeyPath, find_setting, setting_names, type_name

PAGE = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def table() -> str:
    """Return the table of all settings as Markdown."""
    rows = [_row(Settings, (name,)) for name in setting_names()]
    rows += [_row(ModelSettings, ("models", "NAME", name)) for name in setting_names(ModelSettings)]
    rows += [_row(ProfileSettings, ("step_profiles", "NAME", name)) for name in setting_names(ProfileSettings)]
    rows += [_row(ServiceSettings, ("service", name)) for name in setting_names(ServiceSettings)]
    return "\n".join(("| setting | type | default | meaning |", "|---|---|---|---|", *rows))


def with_table(page: str) -> str:
    """Return the page with an updated table."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def _row(owner: type, path: KeyPath) -> str:
    spec = find_setting(path)
    assert spec is not None
    kind = type_name(path) + (f", {spec.limits}" if spec.limits else "")
    return f"| `{'.'.join(path)}` | {kind} | {_default(owner, path[-1])} | {spec.doc} |"


def _default(owner: type, name: str) -> str:
    value = next(field.default for field in fields(owner) if field.name == name)
    value = ", ".join(value) if isinstance(value, tuple) else value
    return f"`{value}`" if isinstance(value, (int, float)) or (isinstance(value, str) and value) else ""


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
