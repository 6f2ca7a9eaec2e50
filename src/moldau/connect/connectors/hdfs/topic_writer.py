"""The open files of one topic partition: written under temporary names, and given their names together.

A name ends with the offsets of the first and the last record in the file. So the files say themselves how far a
partition has been written: a task goes on after the highest last offset, whatever the consumer group says, and what it
had begun before a crash has a temporary name and is deleted. A commit renames the files of several folders one after
the other; a crash between two renames would leave a partition half committed, so the commit is written to a log first,
and finished from there when the partition is opened again. Start at `TopicPartitionWriter.write`.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from moldau.connect.api.records import SinkRecord
from moldau.connect.api.schemas import DataSchema
from moldau.connect.connectors.hdfs.compatibility import Compatibility
from moldau.connect.connectors.hdfs.formats import FileFormat, Writer
from moldau.connect.connectors.hdfs.partitioners import Extract, Partitioner
from moldau.connect.connectors.hdfs.storage import Storage
from moldau.core.ids import TopicPartition

__all__ = ["TopicPartitionWriter"]

DAY_MS: Final = 86_400_000


class _OpenFile:
    def __init__(self, path: str, writer: Writer, first: int) -> None:
        self.path = path
        self.writer = writer
        self.first = first
        self.last = first


class TopicPartitionWriter:
    """Writes the records of a partition."""

    def __init__(
        self,
        partition: TopicPartition,
        values: Mapping[str, Any],
        storage: Storage,
        *,
        file_format: FileFormat,
        partitioner: Partitioner,
        extract: Extract,
    ) -> None:
        self._partition = partition
        self._values = values
        self._storage = storage
        self._format = file_format
        self._partitioner = partitioner
        self._extract = extract
        self._compatibility = Compatibility(values["schema.compatibility"])
        self._files: dict[str, _OpenFile] = {}
        self._schema: DataSchema | None = None
        self._count = 0
        self._first_moment: int | None = None
        self._next_schedule: int | None = None
        topics = values["topics.dir"]
        self._topic_folder = f"{topics}/{partition.topic}"
        self._temporary = f"{topics}/+tmp/{partition.topic}/partition={partition.partition}"
        self._log = f"{values['logs.dir']}/{partition.topic}/{partition.partition}/log"
        self.next_offset: int | None = None
        """Where the committed files end; None if there are none."""

    def recover(self) -> int | None:
        """Finish or forget what a predecessor began; the offset to go on from, None if no file says so."""
        self._replay_log()
        self._storage.delete_tree(self._temporary)
        pattern = re.compile(
            re.escape(f"{self._partition.topic}{self._values['file.delim']}{self._partition.partition}")
            + re.escape(self._values["file.delim"])
            + r"\d+"
            + re.escape(self._values["file.delim"])
            + r"(\d+)\."
        )
        ends = [int(found[1]) for name in self._storage.files(self._topic_folder) if (found := pattern.match(name))]
        self.next_offset = max(ends) + 1 if ends else None
        return self.next_offset

    def write(self, record: SinkRecord) -> None:
        """Take a record; commits first where the record has to begin new files, and after it where files are full."""
        if self.next_offset is not None and record.offset < self.next_offset:
            return
        if self._files and self._must_rotate_before(record):
            self.commit()
        if not self._files:
            self._schema = record.value_schema
        value = self._compatibility.projected(self._schema, record.value_schema, record.value)
        folder = self._partitioner.folder(record)
        open_file = self._files.get(folder)
        if open_file is None:
            open_file = self._files[folder] = self._open(record.offset)
        open_file.writer.write(
            record if record.value_schema is self._schema else record.changed(value_schema=self._schema), value
        )
        open_file.last = record.offset
        if not self._count:
            self._begin(record)
        self._count += 1
        if self._count >= self._values["flush.size"]:
            self.commit()

    def tick(self) -> None:
        """Commit what the schedule, or the interval by the wall clock, says is due although no record comes."""
        if not self._files:
            return
        now = time.time_ns() // 1_000_000
        is_due = self._next_schedule is not None and now >= self._next_schedule
        uses_clock = "wallclock" in str(self._values["timestamp.extractor"]).lower()
        if is_due or (uses_clock and self._is_interval_over(now)):
            self.commit()

    def commit(self) -> None:
        """Give all open files their names."""
        if not self._files:
            return
        renames = []
        for folder, open_file in self._files.items():
            open_file.writer.close()
            renames.append((open_file.path, f"{self._topic_folder}/{folder}/{self._name(open_file)}"))
        if len(renames) > 1:
            self._write_log(renames)
        for old, new in renames:
            self._storage.rename(old, new)
        if len(renames) > 1:
            self._storage.delete(self._log)
        self.next_offset = max(one.last for one in self._files.values()) + 1
        self._forget()

    def abandon(self) -> None:
        """Drop the open files; their records come again."""
        for open_file in self._files.values():
            try:
                open_file.writer.close()
            except Exception:
                continue
        self._forget()
        self._storage.delete_tree(self._temporary)

    def _forget(self) -> None:
        self._files = {}
        self._count = 0
        self._first_moment = self._next_schedule = None

    # Rotation

    def _must_rotate_before(self, record: SinkRecord) -> bool:
        if self._compatibility.needs_new_file(self._schema, record.value_schema):
            return True
        if self._next_schedule is not None and time.time_ns() // 1_000_000 >= self._next_schedule:
            return True
        return self._values["rotate.interval.ms"] > 0 and self._is_interval_over(self._extract(record))

    def _is_interval_over(self, moment: int) -> bool:
        interval: int = self._values["rotate.interval.ms"]
        return interval > 0 and self._first_moment is not None and moment - self._first_moment >= interval

    def _begin(self, record: SinkRecord) -> None:
        if self._values["rotate.interval.ms"] > 0:
            self._first_moment = self._extract(record)
        period: int = self._values["rotate.schedule.interval.ms"]
        if period > 0:
            now = time.time_ns() // 1_000_000
            midnight = datetime.fromtimestamp(now / 1000, ZoneInfo(self._values["timezone"])).replace(
                hour=0, minute=0, second=0, microsecond=0
            )
            since = now - int(midnight.timestamp() * 1000)
            self._next_schedule = now - since % period + period

    # Files

    def _open(self, offset: int) -> _OpenFile:
        path = f"{self._temporary}/{uuid.uuid4()}_tmp.{self._format.extension}"
        codec = self._values["parquet.codec" if self._format.extension == "parquet" else "avro.codec"]
        return _OpenFile(path, self._format.writer(self._storage.create(path), self._schema, codec), offset)

    def _name(self, one: _OpenFile) -> str:
        delim, width = self._values["file.delim"], self._values["filename.offset.zero.pad.width"]
        offsets = f"{one.first:0{width}d}{delim}{one.last:0{width}d}"
        return f"{self._partition.topic}{delim}{self._partition.partition}{delim}{offsets}.{self._format.extension}"

    def _write_log(self, renames: list[tuple[str, str]]) -> None:
        with self._storage.create(f"{self._log}.part") as log:
            log.write(json.dumps(renames).encode())
        self._storage.rename(f"{self._log}.part", self._log)

    def _replay_log(self) -> None:
        folder, _, name = self._log.rpartition("/")
        if name not in self._storage.files(folder):
            return
        for old, new in json.loads(self._storage.read(self._log)):
            if old.rpartition("/")[2] in self._storage.files(old.rpartition("/")[0]):
                self._storage.rename(old, new)
        self._storage.delete(self._log)
