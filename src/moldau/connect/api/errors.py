"""The errors of connectors, and what the worker does about each. Start at `ConnectError`."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.core.errors import InvalidConfigError, MoldauError

__all__ = ["ConfigError", "ConnectError", "DataError", "NotAllowedError", "RetriableError"]


class ConnectError(MoldauError):
    """Something that no retry repairs: the task fails with it, unless errors are tolerated at its stage."""


class RetriableError(ConnectError):
    """Something that may pass: `put` gets the same records again, `poll` is called again."""


class DataError(ConnectError):
    """A record that a converter, a transform or a connector cannot handle."""


class NotAllowedError(ConnectError):
    """A path or host that the worker's settings keep connectors from."""


class ConfigError(InvalidConfigError):
    """A connector's configuration with everything that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        """One line for each bad key, with the key in it."""

        super().__init__("\n".join(problems))
