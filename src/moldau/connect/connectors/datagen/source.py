"""The data generator source: records of a named data set, or of an Avro schema with hints.

The offset of a task is how many records it has made. The records are made from the seed in order, so that a task that
starts again goes on with the same sequence: exactly once. Start at `DatagenTask.poll`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Setting,
    at_least,
    one_of_ignoring_case,
)
from moldau.connect.api.connector import ExactlyOnceSupport, SourceConnector, SourceTask
from moldau.connect.api.errors import ConfigError
from moldau.connect.api.limits import Limits
from moldau.connect.api.records import SourceRecord
from moldau.connect.api.schemas import DataSchema, field_schema
from moldau.formats.datagen.quickstarts import QUICKSTARTS
from moldau.formats.datagen.rows import RowMaker
from moldau.formats.errors import FormatError
from moldau.formats.registry.avro_schemas import avro_data_schema
from moldau.schemas.avro.schema import parse_avro
from moldau.schemas.errors import SchemaError

__all__ = ["DatagenConnector", "DatagenTask"]

TASK_ID: Final = "task.id"
MOST_OF_A_BATCH: Final = 1000
LOW: Final = Importance.LOW

CONFIG: Final = ConfigDef(
    Setting("kafka.topic", ConfigType.STRING, "The topic to write to.", synonyms=("topic",)),
    Setting(
        "quickstart",
        ConfigType.STRING,
        f"A data set: {', '.join(QUICKSTARTS)}.",
        None,
        one_of_ignoring_case(*QUICKSTARTS),
        recommend=lambda _values: list(QUICKSTARTS),
    ),
    Setting("schema.filename", ConfigType.STRING, "A file with an Avro schema, in place of a data set.", None),
    Setting("schema.string", ConfigType.STRING, "An Avro schema, in place of a data set.", None),
    Setting("schema.keyfield", ConfigType.STRING, "The field that is the key, too.", None),
    Setting("max.interval", ConfigType.LONG, "Longest wait between records, in ms.", 500, at_least(0)),
    Setting("iterations", ConfigType.INT, "Records of each task; -1 is without end.", -1, at_least(-1)),
    Setting("random.seed", ConfigType.LONG, "The same seed gives the same records.", None, importance=LOW),
    Setting(
        "moldau.rate",
        ConfigType.DOUBLE,
        "Records a second of each task, in place of max.interval.",
        None,
        importance=LOW,
    ),
    Setting("generate.timeout", ConfigType.LONG, "Accepted; rows are made at once.", None, importance=LOW),
)


class DatagenConnector(SourceConnector):
    """`io.confluent.kafka.connect.datagen.DatagenConnector`."""

    plugin_name = "io.confluent.kafka.connect.datagen.DatagenConnector"
    config_def: ClassVar[ConfigDef] = CONFIG

    def validate(self, settings: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(settings)
        by_name = {value.name: value for value in values}
        given = [key for key in ("quickstart", "schema.filename", "schema.string") if settings.get(key)]
        if len(given) != 1:
            by_name["quickstart"].errors.append(
                f"quickstart, schema.filename or schema.string: exactly one is needed, and {len(given)} are given"
            )
        return values

    def start(self, settings: Mapping[str, str]) -> None:
        super().start(settings)
        _data_set(CONFIG.parse(settings), self.context.limits)

    def task_class(self) -> type[SourceTask]:
        return DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.settings, TASK_ID: str(number)} for number in range(max_tasks)]

    def exactly_once_support(self, settings: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


def _data_set(values: Mapping[str, Any], limits: Limits) -> tuple[Mapping[str, Any], str | None]:
    """The Avro schema and the name of the key's field; raises `ConfigError`."""
    if values["quickstart"]:
        found = QUICKSTARTS[values["quickstart"].lower()]
        return found.schema, values["schema.keyfield"] or found.key
    try:
        text = values["schema.string"] or limits.check_path(values["schema.filename"]).read_text(encoding="utf-8")
        schema = json.loads(text)
        RowMaker(schema, Random(0))
    except OSError as error:
        raise ConfigError([f"schema.filename: {values['schema.filename']} cannot be read: {error.strerror}"]) from None
    except (ValueError, FormatError, SchemaError) as error:
        raise ConfigError([f"the schema cannot be used: {error}"]) from None
    return schema, values["schema.keyfield"]


class DatagenTask(SourceTask):
    """Makes records."""

    def start(self, settings: Mapping[str, str]) -> None:
        values = CONFIG.parse(settings)
        schema, key = _data_set(values, self.context.limits)
        self._schema: DataSchema = replace(
            avro_data_schema(parse_avro(json.dumps(schema)).type), name=schema.get("name")
        )
        self._key = key
        self._key_schema = None if key is None else field_schema(self._schema, key)
        if key is not None and self._key_schema is None:
            raise ConfigError([f"schema.keyfield: the schema has no field {key}"])
        self._topic: str = values["kafka.topic"]
        self._task = int(settings.get(TASK_ID, "0"))
        self._most: int = values["iterations"]
        self._interval_s: float = values["max.interval"] / 1000
        self._rate: float | None = values["moldau.rate"]
        self._resume(schema, values["random.seed"])

    def _resume(self, schema: Mapping[str, Any], given_seed: int | None) -> None:
        self._partition = {"task.id": self._task}
        offset = self.context.offset_reader.offset(self._partition) or {}
        seed = offset.get("seed", given_seed)
        self._seed = Random().getrandbits(48) if seed is None else int(seed)
        self._random = Random(self._seed + self._task)
        self._rows = RowMaker(schema, self._random)
        self._pauses = Random(self._seed)
        self._made = int(offset.get("count", 0))
        for _ in range(self._made):
            self._rows.make()
        self._began, self._began_at = time.monotonic(), self._made

    def poll(self) -> list[SourceRecord] | None:
        if 0 <= self._most <= self._made:
            self.context.wait(1.0)
            return None
        wanted = self._due()
        if wanted == 0:
            return None
        left = wanted if self._most < 0 else min(wanted, self._most - self._made)
        return [self._record() for _ in range(left)]

    def _due(self) -> int:
        """How many records it is time for; waits for the next one."""
        if self._rate is None:
            if self._interval_s > 0 and self.context.wait(min(1.0, self._pauses.uniform(0, self._interval_s))):
                return 0
            return 1 if self._interval_s > 0 else MOST_OF_A_BATCH
        due = int((time.monotonic() - self._began) * self._rate) - (self._made - self._began_at)
        if due <= 0:
            self.context.wait(min(0.5, 1 / self._rate))
            return 0
        return min(due, MOST_OF_A_BATCH)

    def _record(self) -> SourceRecord:
        row = self._rows.make()
        self._made += 1
        return SourceRecord(
            topic=self._topic,
            key=None if self._key is None else row[self._key],
            key_schema=self._key_schema,
            value=row,
            value_schema=self._schema,
            source_partition=self._partition,
            source_offset={"count": self._made, "seed": self._seed},
        )
