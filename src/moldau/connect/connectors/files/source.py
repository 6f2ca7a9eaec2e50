"""The file source: each row of each file once; finished files are moved away, deleted, or remembered.

A folder is looked through for files that match `input.file.pattern`; a file is read when it has not changed for
`file.minimum.age.ms`, and is expected not to change after that. The offset of a file is the position after a row, and
`done` after the last one. Files go to the tasks by a hash of their names. Start at `FileSourceTask.poll`.
"""

from __future__ import annotations

import csv
import logging
import re
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Setting,
    at_least,
    not_empty,
    one_of,
)
from moldau.connect.api.connector import ExactlyOnceSupport, SourceConnector, SourceTask
from moldau.connect.api.errors import ConnectError, DataError
from moldau.connect.api.records import SourceRecord
from moldau.connect.connectors.files.reading import Rows, open_rows

__all__ = ["FileSourceConnector", "FileSourceTask"]

TASK_NUMBER, TASK_COUNT = "moldau.task.number", "moldau.task.count"
LOW, MEDIUM = Importance.LOW, Importance.MEDIUM
log = logging.getLogger(__name__)


def _one_character(text: str) -> str | None:
    return None if len(text) == 1 else "must be one character"


def _regex_problem(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"is not a regular expression: {error}"
    return None


CONFIG: Final = ConfigDef(
    Setting("topic", ConfigType.STRING, "The topic to write to.", valid=not_empty),
    Setting("input.path", ConfigType.STRING, "A file or a folder.", valid=not_empty, synonyms=("file",)),
    Setting("input.file.pattern", ConfigType.STRING, "Which files of a folder are read.", ".*", _regex_problem),
    Setting("format", ConfigType.STRING, "csv or json (a document on each line).", "csv", one_of("csv", "json")),
    Setting("finished.path", ConfigType.STRING, "Where finished files are moved to.", None, importance=MEDIUM),
    Setting("error.path", ConfigType.STRING, "Where files with a broken row are moved to.", None, importance=MEDIUM),
    Setting(
        "cleanup.policy",
        ConfigType.STRING,
        "What becomes of finished files: move (to finished.path), delete, or none (they are remembered).",
        None,
        one_of("move", "delete", "none"),
        MEDIUM,
    ),
    Setting("halt.on.error", ConfigType.BOOLEAN, "Whether a broken row fails the task.", True, importance=MEDIUM),
    Setting("batch.size", ConfigType.INT, "Most rows of one batch.", 1000, at_least(1), LOW),
    Setting("empty.poll.wait.ms", ConfigType.LONG, "Wait when there is no new file.", 500, at_least(1), LOW),
    Setting("file.minimum.age.ms", ConfigType.LONG, "How long a file must not have changed.", 0, at_least(0), LOW),
    Setting("file.charset", ConfigType.STRING, "The encoding of CSV files.", "utf-8", importance=LOW),
    Setting("key.field", ConfigType.STRING, "A column that is the key, too.", None, importance=MEDIUM),
    Setting("schema.name", ConfigType.STRING, "The name of the rows' schema.", "row", importance=LOW),
    Setting("csv.first.row.as.header", ConfigType.BOOLEAN, "Whether the first line names the columns.", True),
    Setting("csv.columns", ConfigType.LIST, "Names of the columns.", [], importance=MEDIUM),
    Setting("csv.separator.char", ConfigType.STRING, "Between values.", ",", _one_character, LOW),
    Setting("csv.quote.char", ConfigType.STRING, "Around values.", '"', _one_character, LOW),
)


class FileSourceConnector(SourceConnector):
    """CSV and JSON-lines files."""

    plugin_name = "moldau.connect.connectors.files.FileSourceConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(settings)
        if settings.get("cleanup.policy") == "move" and not settings.get("finished.path"):
            next(one for one in values if one.name == "finished.path").errors.append(
                "finished.path is needed for cleanup.policy=move"
            )
        return values

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        _checked_paths(CONFIG.parse(settings), self.context.limits)

    def task_class(self) -> type[SourceTask]:
        return FileSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.settings, TASK_NUMBER: str(number), TASK_COUNT: str(max_tasks)} for number in range(max_tasks)]

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


def _checked_paths(values: Mapping[str, Any], limits: Any) -> Path:
    for key in ("finished.path", "error.path"):
        if values[key] and not limits.check_path(values[key]).is_dir():
            raise ConnectError(f"{key}={values[key]} is not a folder; make it first")
    path: Path = limits.check_path(values["input.path"])
    return path


class FileSourceTask(SourceTask):
    """Reads its share of the files, one after the other."""

    def start(self, settings: Mapping[str, str]) -> None:
        self._values = CONFIG.parse(settings)
        self._input = _checked_paths(self._values, self.context.limits)
        self._number, self._count = int(settings.get(TASK_NUMBER, "0")), int(settings.get(TASK_COUNT, "1"))
        self._pattern = re.compile(self._values["input.file.pattern"])
        self._path: Path | None = None
        self._rows: Rows | None = None
        self._done: set[Path] = set()
        self._to_clean: list[Path] = []
        """Finished, but their last rows may not be stored yet."""

    def poll(self) -> list[SourceRecord] | None:
        if self._rows is None and not self._open_next():
            self.context.wait(self._values["empty.poll.wait.ms"] / 1000)
            return None
        assert self._rows is not None
        assert self._path is not None
        try:
            rows = self._rows.take(self._values["batch.size"])
        except (DataError, csv.Error, UnicodeError) as error:
            self._failed(error)
            return None
        records = [self._record(row.value, {"position": row.position}) for row in rows]
        if self._rows.is_done:
            self._finish(records)
        return records

    def commit(self) -> None:
        """The rows of finished files are stored now: the files can go."""
        for path in self._to_clean:
            self._clean(path)
        self._to_clean = []

    def stop(self) -> None:
        if getattr(self, "_rows", None) is not None:
            self._rows.close()  # type: ignore[union-attr]

    def _open_next(self) -> bool:
        candidates = [path for path in self._candidates() if path not in self._done]
        offsets = self.context.offset_reader.offsets([_partition(path) for path in candidates])
        for path, offset in zip(candidates, offsets, strict=True):
            if offset is not None and offset.get("done"):
                # A predecessor read it and had no time to move it.
                self._done.add(path)
                self._to_clean.append(path)
                continue
            try:
                self._rows = open_rows(path, int((offset or {}).get("position", 0)), self._values)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ConnectError(f"{path} cannot be read: {error.strerror}") from error
            self._path = path
            return True
        return False

    def _candidates(self) -> list[Path]:
        if self._input.is_file():
            return [self._input] if self._number == 0 else []
        try:
            found = [path for path in self._input.iterdir() if path.is_file() and self._pattern.fullmatch(path.name)]
        except FileNotFoundError:
            return []
        youngest = time.time() - self._values["file.minimum.age.ms"] / 1000
        mine = [path for path in found if zlib.crc32(path.name.encode()) % self._count == self._number]
        ready = [(path.stat().st_mtime, path) for path in mine]
        return [path for changed, path in sorted(ready) if changed <= youngest]

    def _record(self, value: Any, offset: dict[str, Any]) -> SourceRecord:
        assert self._rows is not None
        assert self._path is not None
        key_field = self._values["key.field"]
        schema = self._rows.schema
        key = value.get(key_field) if key_field and isinstance(value, dict) else None
        key_schema = next((one.schema for one in schema.fields if one.name == key_field), None) if schema else None
        return SourceRecord(
            topic=self._values["topic"],
            key=key,
            key_schema=key_schema,
            value=value,
            value_schema=schema,
            timestamp=time.time_ns() // 1_000_000,
            source_partition=_partition(self._path),
            source_offset=offset,
        )

    def _finish(self, records: list[SourceRecord]) -> None:
        assert self._rows is not None
        assert self._path is not None
        if records:
            records[-1].source_offset = {**(records[-1].source_offset or {}), "done": True}
        self._rows.close()
        self._done.add(self._path)
        self._to_clean.append(self._path)
        self._rows = self._path = None

    def _failed(self, error: Exception) -> None:
        assert self._rows is not None
        assert self._path is not None
        path = self._path
        self._rows.close()
        self._rows = self._path = None
        self._done.add(path)
        if self._values["error.path"]:
            path.rename(Path(self._values["error.path"]) / path.name)
        if self._values["halt.on.error"]:
            raise ConnectError(f"{path}: {error}; correct the file, or set halt.on.error=false") from error
        log.warning("the rest of %s is left out: %s", path, error)

    def _clean(self, path: Path) -> None:
        policy = self._values["cleanup.policy"] or ("move" if self._values["finished.path"] else "none")
        try:
            if policy == "move":
                path.rename(Path(self._values["finished.path"]) / path.name)
            elif policy == "delete":
                path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConnectError(f"{path} was read, and cannot be cleaned up: {error.strerror}") from error


def _partition(path: Path) -> dict[str, str]:
    return {"file": str(path)}
