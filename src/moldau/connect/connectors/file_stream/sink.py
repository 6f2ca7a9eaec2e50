"""The FileStream sink: the texts of values, a line each, appended to a file. Start at `FileStreamSinkTask`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO, ClassVar, Final

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.connector import SinkConnector, SinkTask
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.records import SinkRecord
from moldau.connect.converters.java_text import to_java_string
from moldau.core.ids import TopicPartition

__all__ = ["FileStreamSinkConnector", "FileStreamSinkTask"]

CONFIG: Final = ConfigDef(
    Setting("file", ConfigType.STRING, "The file to append to; standard output by default.", None)
)


class FileStreamSinkConnector(SinkConnector):
    """`FileStreamSink`."""

    plugin_name = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        file = CONFIG.parse(settings)["file"]
        if file:
            self.context.limits.check_path(file)

    def task_class(self) -> type[SinkTask]:
        return FileStreamSinkTask


class FileStreamSinkTask(SinkTask):
    """Appends lines, for others to read at once; what `flush` returns from is on the disk."""

    def start(self, settings: Mapping[str, str]) -> None:
        self._name: str | None = CONFIG.parse(settings)["file"] or None
        if self._name is None:
            self._file: BinaryIO = sys.stdout.buffer
            return
        self.context.limits.check_path(self._name)
        try:
            self._file = open(self._name, "ab")  # noqa: SIM115 - closed by `stop`
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{self._name}' for FileStreamSinkTask: {error.strerror}; correct the "
                "file's name, or make its folder"
            ) from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        lines = [
            record.value if isinstance(record.value, str) else to_java_string(record.value_schema, record.value)
            for record in records
        ]
        if not lines:
            return

        def write() -> None:
            self._file.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))
            self._file.flush()

        self._guarded(write)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._name is not None:
            self._guarded(lambda: os.fsync(self._file.fileno()))

    def stop(self) -> None:
        if getattr(self, "_name", None) is not None and hasattr(self, "_file"):
            self._file.close()

    def _guarded(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            raise ConnectError(f"{self._name or 'standard output'} cannot be written: {error.strerror}") from error
