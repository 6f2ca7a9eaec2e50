"""A registry as users run it, in a process of its own. Start at `RegistryProcess`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.integration.server_process import ServerProcess, wait_until

__all__ = ["RegistryProcess"]

_READY = re.compile(r"schema registry started: (http://\S+)")


class RegistryProcess(ServerProcess):
    """It can be killed, and ends when the block is left."""

    def __init__(self, servers: str, settings: Mapping[str, str]) -> None:
        overrides = [word for key, text in settings.items() for word in ("--override", f"{key}={text}")]
        arguments = ["--port", "0", "--host", "127.0.0.1", "-b", servers, *overrides]
        super().__init__(arguments, program=("-m", "moldau.cli.main", "registry"))

    @property
    def url(self) -> str:
        wait_until(lambda: _READY.search(self.output) or self.has_ended, what="the registry's start")
        found = _READY.search(self.output)
        assert found, self.output
        return found.group(1)
