"""Regular expressions that are compiled on first use: the program has hundreds, and a start needs few."""

import re
from types import ModuleType
from typing import TYPE_CHECKING, AnyStr

if TYPE_CHECKING:

    def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """Return a pattern like `re.compile`; an error in it is raised on first use."""
else:

    class lazy_pattern:  # noqa: N801 (used like `re.compile`)
        """A pattern; each of its methods is looked up once and then stored on the instance."""

        def __init__(self, pattern, flags=0):
            self._source = pattern, flags

        def __getattr__(self, name):
            value = getattr(re.compile(*self._source), name)
            setattr(self, name, value)
            return value


def compile_patterns(module: ModuleType) -> None:
    """Compile the patterns of a module before they are used."""
    for value in vars(module).values():
        if type(value) is lazy_pattern:
            # Any attribute access compiles it.
            value.pattern  # noqa: B018
