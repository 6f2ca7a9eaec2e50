"""What a user's function should have returned: errors for operators that found something else."""

from __future__ import annotations

from moldau.core.errors import MoldauError

__all__ = ["WrongResultError", "no_pair", "not_several"]


class WrongResultError(MoldauError):
    """A user's function returned what its operator cannot use."""


def no_pair(returned: object) -> WrongResultError:
    """Where a key and a value were wanted."""
    return _wrong("a pair (key, value)", returned)


def not_several(returned: object) -> WrongResultError:
    """Where any number of results was wanted."""
    return _wrong("any number of results, such as a list", returned)


def _wrong(wanted: str, returned: object) -> WrongResultError:
    return WrongResultError(f"the function must return {wanted}, and returned {returned!r} ({type(returned).__name__})")
