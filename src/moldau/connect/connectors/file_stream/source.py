"""The FileStream source: the lines of a file, which it follows as it grows.

The offset is the position in bytes after a line, and the file's identity (its inode) with it: a file that was replaced
or truncated is read from its start, and the rest of a renamed file is read to its end before the new one begins. Lines
end with `\\n`, `\\r\\n` or `\\r`; one without an end waits for it. Start at `FileStreamSourceTask.poll`.
"""

from __future__ import annotations

import logging
import os
import re
import select
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, Final

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, at_least, not_empty
from moldau.connect.api.connector import ExactlyOnceSupport, SourceConnector, SourceTask
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.records import SourceRecord
from moldau.connect.api.schemas import STRING

__all__ = ["FileStreamSourceConnector", "FileStreamSourceTask"]

CONFIG: Final = ConfigDef(
    Setting("file", ConfigType.STRING, "The file to read; standard input by default.", None),
    Setting("topic", ConfigType.STRING, "The topic to write to.", valid=not_empty),
    Setting("batch.size", ConfigType.INT, "Most lines of one batch.", 2000, at_least(1), importance=Importance.LOW),
)
LINE: Final = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r(?=[^\n]))")
"""A line with its end; a `\\r` that is the last byte so far may be the first half of `\\r\\n`."""

CHUNK_BYTES: Final = 1 << 20
IDLE_SECONDS: Final = 0.1
MISSING_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class FileStreamSourceConnector(SourceConnector):
    """`FileStreamSource`: one task, whatever `tasks.max` says."""

    plugin_name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        file = CONFIG.parse(settings)["file"]
        if file:
            self.context.limits.check_path(file)

    def task_class(self) -> type[SourceTask]:
        return FileStreamSourceTask

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        # Standard input has no positions to go back to.
        return ExactlyOnceSupport.SUPPORTED if settings.get("file") else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, settings: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        if not settings.get("file"):
            raise ConnectError("a source that reads standard input has no offsets to alter")
        for partition, offset in offsets:
            if set(partition) != {"filename"}:
                raise ConnectError(f"Source partition {dict(partition)} must have the one key 'filename'")
            position = None if offset is None else offset.get("position")
            is_number = isinstance(position, int) and not isinstance(position, bool) and position >= 0
            if offset is not None and not is_number:
                raise ConnectError(f"The offset {dict(offset)} needs 'position', a number of bytes from 0 on")
        return True


class FileStreamSourceTask(SourceTask):
    """Reads one file."""

    def start(self, settings: Mapping[str, str]) -> None:
        values = CONFIG.parse(settings)
        self._topic: str = values["topic"]
        self._batch_size: int = values["batch.size"]
        self._name: str | None = values["file"] or None
        if self._name is not None:
            self.context.limits.check_path(self._name)
        self._file: BinaryIO | None = None
        self._pending = b""
        self._position = 0
        self._is_missing = False
        self._has_started = False

    def poll(self) -> list[SourceRecord] | None:
        if self._file is None and not self._open():
            self.context.wait(MISSING_SECONDS)
            return None
        lines = self._lines()
        if not lines and not self._read_more():
            if self._has_ended_for_good():
                # Nobody will write the end of its last line any more.
                last = [(self._pending, self._position + len(self._pending))] if self._pending else []
                records = self._records(last)
                self._close_file()
                return records
            self.context.wait(IDLE_SECONDS)
            return None
        return self._records(lines or self._lines())

    def stop(self) -> None:
        self._close_file()

    # The file

    def _open(self) -> bool:
        if self._name is None:
            self._file = sys.stdin.buffer
            return True
        try:
            file = open(self._name, "rb")  # noqa: SIM115 - kept open until the task stops or the file is replaced
        except FileNotFoundError:
            if not self._is_missing:
                log.warning("%s is not there yet; the source waits for it", self._name)
            self._is_missing = True
            return False
        except OSError as error:
            raise ConnectError(
                f"{self._name} cannot be read: {error.strerror}; correct the file's name or rights"
            ) from error
        self._file, self._is_missing = file, False
        self._seek()
        return True

    def _seek(self) -> None:
        """Go to where the stored offset says, unless it is that of another file."""
        assert self._file is not None
        self._position = 0
        self._pending = b""
        if self._has_started:
            # It replaced a file that this task has read to its end.
            return
        self._has_started = True
        offset = self.context.offset_reader.offset({"filename": self._name})
        if offset is None:
            return
        position, inode = offset.get("position"), offset.get("inode")
        if not isinstance(position, int) or position < 0:
            raise ConnectError(f"the stored offset {dict(offset)} of {self._name} has no position; reset the offsets")
        status = os.fstat(self._file.fileno())
        if (inode is not None and inode != status.st_ino) or position > status.st_size:
            log.warning("%s was replaced or truncated since it was last read; it is read from its start", self._name)
            return
        self._file.seek(position)
        self._position = position

    def _read_more(self) -> bool:
        """Read what the file has more of; false if there is nothing."""
        assert self._file is not None
        if self._name is None and not select.select([self._file], [], [], IDLE_SECONDS)[0]:
            return False
        try:
            data = os.read(self._file.fileno(), CHUNK_BYTES) if self._name is None else self._file.read(CHUNK_BYTES)
        except OSError as error:
            raise ConnectError(f"{self._name} cannot be read further: {error.strerror}") from error
        self._pending += data
        return bool(data)

    def _has_ended_for_good(self) -> bool:
        """Whether the file at the end of which we are was truncated, or another took its name."""
        if self._name is None or self._file is None:
            return False
        here = os.fstat(self._file.fileno())
        try:
            named = os.stat(self._name)
        except FileNotFoundError:
            return False
        if (named.st_ino, named.st_dev) != (here.st_ino, here.st_dev):
            log.info("%s was replaced by a new file, which is read from its start", self._name)
            return True
        if named.st_size < self._position + len(self._pending):
            log.info("%s was truncated and is read from its start", self._name)
            return True
        return False

    def _close_file(self) -> None:
        if self._file is not None and self._name is not None:
            self._file.close()
        self._file = None

    # Lines

    def _lines(self) -> list[tuple[bytes, int]]:
        """The whole lines of what was read, at most a batch, with the position after each."""
        found = []
        end = 0
        for match in LINE.finditer(self._pending):
            if match.start() != end:
                break
            end = match.end()
            found.append((match.group(), self._position + end))
            if len(found) >= self._batch_size:
                break
        self._pending = self._pending[end:]
        self._position += end
        return found

    def _records(self, lines: list[tuple[bytes, int]]) -> list[SourceRecord] | None:
        now_ms = time.time_ns() // 1_000_000
        partition = {} if self._name is None else {"filename": self._name}
        inode = None if self._file is None or self._name is None else os.fstat(self._file.fileno()).st_ino
        return [
            SourceRecord(
                topic=self._topic,
                value=line.rstrip(b"\r\n").decode("utf-8", "replace"),
                value_schema=STRING,
                timestamp=now_ms,
                source_partition=partition,
                source_offset=None if self._name is None else {"position": after, "inode": inode},
            )
            for line, after in lines
        ]
