"""A server without statements from clients: it runs those of a file, the same at every start.

The file takes the place of the command topic: each statement becomes a command that only this process has. Servers
with one service id and the same file share its queries. Start at `FileLog`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from moldau.client.admin import Admin
from moldau.client.coordination.topic_log import LogRecord, LogWrite
from moldau.client.errors import ClientError
from moldau.core.errors import StartupError

__all__ = ["FileLog", "statements_of"]


class FileLog:
    """What the server needs of its log of commands, in memory."""

    def __init__(self, apply: Callable[[LogRecord], None], open_admin: Callable[[], Admin]) -> None:
        self._apply, self._open_admin = apply, open_admin
        self._count = 0
        self.is_ready = False
        self.cluster_id = ""

    async def start(self, timeout_s: float) -> None:
        """Ask who the cluster is; raises `StartupError`."""
        try:
            described = await asyncio.wait_for(asyncio.to_thread(self._describe), timeout_s)
        except (ClientError, TimeoutError) as error:
            raise StartupError(f"no broker answers: {error or f'not within {timeout_s:g} s'}") from None
        self.cluster_id, self.is_ready = described, True

    def _describe(self) -> str:
        return self._open_admin().describe_cluster().cluster_id

    async def append(self, writes: Sequence[LogWrite]) -> Mapping[int, int]:
        """Apply the commands; the offset of the last one, by partition."""
        for write in writes:
            self._apply(LogRecord(0, self._count, write.key, write.value))
            self._count += 1
        return {0: self._count - 1}

    async def wait_until_applied(self, offset: int, partition: int = 0) -> None:
        """All that is written is applied."""

    async def stop(self, timeout_s: float) -> None:
        """Nothing is open."""


def statements_of(file: Path) -> str:
    """The text of a file of statements; raises `StartupError`."""
    try:
        return file.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"ksql.queries.file: {file} cannot be read: {error}") from None
