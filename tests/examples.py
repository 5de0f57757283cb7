"""How many examples a property is tried with: a quarter of them in `make check`, all in `make test`."""

from hypothesis import settings

_USUAL = 100
# How long an example takes says more about the machine than about the code.
settings.register_profile("all", parent=settings.default, deadline=None, max_examples=_USUAL)
settings.register_profile("quarter", parent=settings.default, deadline=None, max_examples=_USUAL // 4)


def use_examples(*, all_of_them: bool) -> None:
    """Choose how many there are, before the modules with tests are imported."""
    settings.load_profile("all" if all_of_them else "quarter")


def examples(count: int) -> settings:
    """Return settings for a number of examples that is not the usual one."""
    return settings(max_examples=max(1, count * settings.default.max_examples // _USUAL))
