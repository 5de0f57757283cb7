"""A setting's value in one layer, and the origin of that value."""

from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass

LayerName: TypeAlias = Literal["default", "file", "profile", ".env", "environment", "flag"]
KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The layer a value came from and the place in it, such as `config.toml:12` or `AGENT_MODEL`."""

    layer: LayerName
    where: str = ""

    def __str__(self) -> str:
        if self.layer == "file":
            return self.where
        return f"{self.layer} {self.where}".rstrip()


DEFAULT = Origin(layer="default")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One value from one layer; errors name its `source`.

    `is_text` values still need parsing; `has_references` values contain variables to be replaced.
    """

    path: KeyPath
    value: object
    origin: Origin
    source: str
    is_text: bool = False
    has_references: bool = False

    @property
    def name(self) -> str:
        return ".".join(self.path)
