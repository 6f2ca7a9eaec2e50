"""The HDFS sink: records of topics as files in folders, exactly once. Start at `HdfsSinkTask`.

The offsets are in the names of the files (see `topic_writer`); those of the consumer group follow them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Setting,
    Validator,
    at_least,
    not_empty,
    one_of_ignoring_case,
)
from moldau.connect.api.connector import SinkConnector, SinkTask
from moldau.connect.api.errors import ConfigError, ConnectError, DataError
from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.hdfs.formats import file_format
from moldau.connect.connectors.hdfs.partitioners import partitioner, timestamp_extractor
from moldau.connect.connectors.hdfs.storage import open_storage
from moldau.connect.connectors.hdfs.topic_writer import TopicPartitionWriter
from moldau.connect.connectors.jdbc.database import zone_problem
from moldau.core.ids import TopicPartition

__all__ = ["HdfsSinkConnector", "HdfsSinkTask"]

STRING, LONG, INT, LIST = ConfigType.STRING, ConfigType.LONG, ConfigType.INT, ConfigType.LIST


def _setting(name: str, kind: ConfigType, doc: str, default: Any, valid: Validator | None = None) -> Setting:
    return Setting(name, kind, doc, default, valid, Importance.MEDIUM)


CONFIG: Final = ConfigDef(
    Setting(
        "store.url",
        STRING,
        "Where the files go: hdfs://host:port, file:///folder or a path.",
        valid=not_empty,
        synonyms=("hdfs.url",),
    ),
    Setting("flush.size", INT, "Records of a partition before its files are committed.", valid=at_least(1)),
    _setting("rotate.interval.ms", LONG, "Commit when records span this time; -1 is never.", -1),
    _setting("rotate.schedule.interval.ms", LONG, "Commit each so often, counted from midnight; -1 is never.", -1),
    _setting(
        "format.class",
        STRING,
        "Avro, Parquet, ORC, JSON or text, by class name.",
        "io.confluent.connect.hdfs.avro.AvroFormat",
    ),
    _setting("partitioner.class", STRING, "How records are divided into folders.", "DefaultPartitioner"),
    _setting("partition.field.name", LIST, "Fields for the FieldPartitioner.", []),
    _setting("partition.duration.ms", LONG, "For the TimeBasedPartitioner.", -1),
    _setting("path.format", STRING, "Date pattern for the TimeBasedPartitioner.", ""),
    _setting("locale", STRING, "Accepted; names of months are English.", ""),
    _setting("timezone", STRING, "Zone of folders and schedules.", "UTC", lambda text: zone_problem(text or "UTC")),
    _setting("timestamp.extractor", STRING, "Wallclock, Record or RecordField.", "Wallclock"),
    _setting("timestamp.field", STRING, "The field for RecordField.", "timestamp"),
    _setting("topics.dir", STRING, "The folder above those of topics.", "topics", not_empty),
    _setting("logs.dir", STRING, "The folder of logs of commits under way.", "logs", not_empty),
    _setting("directory.delim", STRING, "Between folders.", "/"),
    _setting("file.delim", STRING, "Between the parts of a file's name.", "+", not_empty),
    _setting("filename.offset.zero.pad.width", INT, "Digits of offsets in names.", 10, at_least(0)),
    _setting(
        "schema.compatibility",
        STRING,
        "What happens when schemas change.",
        "NONE",
        one_of_ignoring_case("NONE", "BACKWARD", "FORWARD", "FULL"),
    ),
    _setting("avro.codec", STRING, "Compression of Avro files.", "null"),
    _setting("parquet.codec", STRING, "Compression of Parquet files.", "snappy"),
    _setting("retry.backoff.ms", LONG, "Wait before a failed write is tried again.", 5000, at_least(0)),
)


class HdfsSinkConnector(SinkConnector):
    """`io.confluent.connect.hdfs.HdfsSinkConnector`."""

    plugin_name = "io.confluent.connect.hdfs.HdfsSinkConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(settings)
        if any(value.errors for value in values):
            return values
        by_name = {value.name: value for value in values}
        parsed = CONFIG.parse(settings)
        for name, check in (
            ("format.class", lambda: file_format(parsed["format.class"])),
            ("timestamp.extractor", lambda: timestamp_extractor(parsed)),
            ("partitioner.class", lambda: partitioner(parsed)),
        ):
            try:
                check()
            except (ConfigError, ConnectError) as error:
                by_name[name].errors.append(str(error))
        return values

    def task_class(self) -> type[SinkTask]:
        return HdfsSinkTask

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        open_storage(CONFIG.parse(settings)["store.url"], self.context.limits)

    def alter_offsets(self, settings: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        raise ConnectError(
            "this sink's offsets are the names of its files: to write records again, move the files with the highest "
            "offsets away, then resume the connector"
        )


class HdfsSinkTask(SinkTask):
    """Writes the files of its partitions."""

    def start(self, settings: Mapping[str, str]) -> None:
        self._values = CONFIG.parse(settings)
        self._storage = open_storage(self._values["store.url"], self.context.limits)
        self._format = file_format(self._values["format.class"])
        self._partitioner = partitioner(self._values)
        self._extract = timestamp_extractor(self._values)
        self._writers: dict[TopicPartition, TopicPartitionWriter] = {}

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        known = {}
        for partition in partitions:
            writer = self._writers[partition] = TopicPartitionWriter(
                partition,
                self._values,
                self._storage,
                file_format=self._format,
                partitioner=self._partitioner,
                extract=self._extract,
            )
            start = writer.recover()
            if start is not None:
                known[partition] = start
        if known:
            self.context.rewind(known)

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if self._format.needs_schema and record.value_schema is None:
                raise DataError(
                    f"{self._values['format.class']} needs data with schemas, and record "
                    f"{record.topic_partition}@{record.offset} has none; use a converter with schemas, or JsonFormat"
                )
            self._writers[record.topic_partition].write(record)
        for writer in self._writers.values():
            writer.tick()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Only what has its final name counts."""
        for writer in self._writers.values():
            writer.tick()
        return {
            partition: writer.next_offset
            for partition, writer in self._writers.items()
            if writer.next_offset is not None
        }

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            writer = self._writers.pop(partition, None)
            if writer is not None:
                writer.abandon()

    def stop(self) -> None:
        for writer in getattr(self, "_writers", {}).values():
            writer.abandon()
