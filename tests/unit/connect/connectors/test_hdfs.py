"""The file-system sink on a real folder: formats, folders, rotation, schemas that change, crashes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.orc
import pyarrow.parquet
import pytest

from moldau.connect.api import ConfigError, ConnectError, DataError, SinkRecord, TopicPartition
from moldau.connect.api.schemas import (
    DATE,
    FLOAT32,
    INT32,
    STRING,
    TIMESTAMP,
    array,
    decimal,
    map_of,
    optional,
    struct,
    with_default,
)
from moldau.connect.connectors.hdfs.partitioners import Partitioner
from moldau.connect.testing import SinkRunner

SCHEMA = struct({"id": INT32, "name": optional(STRING)}, name="row", version=1)
HOUR_MS = 3_600_000


def sink(folder: Path, **more: str) -> SinkRunner:
    settings = {"store.url": str(folder), "flush.size": "3", "format.class": "JsonFormat"}
    settings.update({key.replace("_", "."): value for key, value in more.items()})
    return SinkRunner("HdfsSink", settings)


def row(offset: int, partition: int = 0, **more: Any) -> SinkRecord:
    value = {"id": offset, "name": f"n{offset}"}
    return SinkRecord(
        **{
            **{"topic": "t", "partition": partition, "offset": offset, "value": value},
            **{"value_schema": SCHEMA, "timestamp": 1_700_000_000_000},
            **more,
        }
    )


def rows(first: int, last: int, **more: Any) -> list[SinkRecord]:
    return [row(offset, **more) for offset in range(first, last + 1)]


def files(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder / "topics")) for one in (folder / "topics").rglob("*") if one.is_file())


def test_files_are_named_by_offsets_and_only_whole_files_are_committed(tmp_path: Path) -> None:
    with sink(tmp_path) as runner:
        runner.put(rows(0, 6))
        assert runner.commit() == {("t", 0): 6}
        runner.close()
    assert files(tmp_path) == [
        "t/partition=0/t+0+0000000000+0000000002.json",
        "t/partition=0/t+0+0000000003+0000000005.json",
    ]
    lines = (tmp_path / "topics" / files(tmp_path)[0]).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": n, "name": f"n{n}"} for n in range(3)]


def test_after_a_crash_each_record_is_there_once(tmp_path: Path) -> None:
    runner = sink(tmp_path)
    with runner:
        runner.put(rows(0, 4))
        # Nothing was committed to the group: everything comes again.
        runner.restart()
        runner.open(TopicPartition("t", 0))
        assert runner.rewound() == {TopicPartition("t", 0): 3}
        runner.put(rows(0, 8))
    found = [
        json.loads(line)["id"] for name in files(tmp_path) for line in (tmp_path / "topics" / name).read_text().split()
    ]
    assert found == list(range(9))


def test_a_commit_of_several_folders_that_was_cut_off_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moldau.connect.connectors.hdfs.storage import LocalStorage

    renames = LocalStorage.rename
    done: list[str] = []

    def failing(self: LocalStorage, old: str, new: str) -> None:
        if len(done) == 2:
            raise OSError("the power is gone")
        done.append(new)
        renames(self, old, new)

    options = {"partitioner_class": "FieldPartitioner", "partition_field_name": "name"}
    runner = sink(tmp_path, **options)
    with runner:
        monkeypatch.setattr(LocalStorage, "rename", failing)
        with pytest.raises(OSError, match="power"):
            runner.put(rows(0, 2))
        monkeypatch.undo()
        # What the dead task would have done: nothing.
        runner.tasks.clear()
        runner.start_tasks()
        runner.open(TopicPartition("t", 0))
        assert runner.rewound() == {TopicPartition("t", 0): 3}
        runner.put(rows(0, 2))
    assert files(tmp_path) == [f"t/name=n{n}/t+0+000000000{n}+000000000{n}.json" for n in range(3)]


RICH = struct(
    {
        "id": INT32,
        "price": decimal(2, 10),
        "day": DATE,
        "moment": TIMESTAMP,
        "tags": array(STRING),
        "counts": map_of(STRING, INT32),
        "inner": optional(struct({"x": FLOAT32})),
    },
    name="rich",
)
RICH_VALUE = {
    "id": 1,
    "price": Decimal("12.50"),
    "day": 19782,
    "moment": 1709201472123,
    "tags": ["a", "b"],
    "counts": {"k": 3},
    "inner": {"x": 0.5},
}


def test_avro_files(tmp_path: Path) -> None:
    with sink(
        tmp_path, format_class="io.confluent.connect.hdfs.avro.AvroFormat", avro_codec="deflate", flush_size="1"
    ) as runner:
        runner.put([row(0, value_schema=RICH, value=RICH_VALUE)])
    (name,) = files(tmp_path)
    assert name.endswith(".avro")
    with (tmp_path / "topics" / name).open("rb") as file:
        (found,) = list(fastavro.reader(file))
    assert found["price"] == Decimal("12.50")
    assert found["moment"] == datetime(2024, 2, 29, 10, 11, 12, 123000, tzinfo=UTC)
    assert found["counts"] == {"k": 3}


@pytest.mark.parametrize("kind", ["Parquet", "Orc"])
def test_files_of_columns(tmp_path: Path, kind: str) -> None:
    with sink(tmp_path, format_class=f"io.confluent.connect.hdfs.x.{kind}Format", flush_size="2") as runner:
        runner.put([row(n, value_schema=RICH, value={**RICH_VALUE, "id": n, "inner": None}) for n in range(2)])
    path = tmp_path / "topics" / files(tmp_path)[0]
    table = pyarrow.parquet.read_table(path) if kind == "Parquet" else pyarrow.orc.read_table(path)
    found = table.to_pylist()
    assert [one["id"] for one in found] == [0, 1]
    assert found[0]["price"] == Decimal("12.50")
    assert found[0]["day"].isoformat() == "2024-02-29"
    assert found[0]["tags"] == ["a", "b"]
    assert dict(found[0]["counts"]) == {"k": 3}
    assert found[0]["inner"] is None


def test_folders_by_time(tmp_path: Path) -> None:
    with sink(
        tmp_path, partitioner_class="HourlyPartitioner", timestamp_extractor="Record", timezone="Europe/Prague"
    ) as runner:
        runner.put([row(0), row(1, timestamp=1_700_000_000_000 + HOUR_MS), row(2)])
    # 2023-11-14T22:13:20Z is 23:13 in Prague, and the next hour another day.
    assert files(tmp_path) == [
        "t/year=2023/month=11/day=14/hour=23/t+0+0000000000+0000000002.json",
        "t/year=2023/month=11/day=15/hour=00/t+0+0000000001+0000000001.json",
    ]


class ByEvenness(Partitioner):
    def folder(self, record: SinkRecord) -> str:
        return "even" if record.offset % 2 == 0 else f"odd-{self.values['flush.size']}"


def test_a_partitioner_of_ones_own(tmp_path: Path) -> None:
    with sink(tmp_path, partitioner_class=f"{__name__}.ByEvenness") as runner:
        runner.put(rows(0, 2))
    assert [name.split("/")[1] for name in files(tmp_path)] == ["even", "odd-3"]


def test_folders_by_day(tmp_path: Path) -> None:
    with sink(tmp_path, partitioner_class="DailyPartitioner", timestamp_extractor="Record", flush_size="1") as runner:
        runner.put([row(0)])
    assert files(tmp_path) == ["t/year=2023/month=11/day=14/t+0+0000000000+0000000000.json"]


def test_the_interval_by_the_wall_clock_ends_without_records(tmp_path: Path) -> None:
    with sink(tmp_path, flush_size="100", rotate_interval_ms="50") as runner:
        runner.put(rows(0, 1))
        deadline = datetime.now(UTC).timestamp() + 60
        while not runner.commit():
            assert datetime.now(UTC).timestamp() < deadline
            runner.put([])
        assert runner.committed == {("t", 0): 2}


def test_a_custom_time_pattern_and_a_field_with_the_time(tmp_path: Path) -> None:
    options = {
        "partitioner_class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "partition_duration_ms": "86400000",
        "path_format": "'dt'=YYYY-MM-dd",
        "timestamp_extractor": "RecordField",
        "timestamp_field": "at",
        "flush_size": "2",
    }
    with sink(tmp_path, **options) as runner:
        runner.put(
            [
                row(0, value_schema=None, value={"at": "2024-02-29T12:00:00Z"}),
                row(1, value_schema=None, value={"at": 0}),
            ]
        )
        with pytest.raises(DataError, match="at holds"):
            runner.put([row(2, value_schema=None, value={"at": "soon"})])
    assert [name.split("/")[1] for name in files(tmp_path)] == ["dt=1970-01-01", "dt=2024-02-29"]


def test_a_field_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    with sink(tmp_path, partitioner_class="FieldPartitioner", partition_field_name="name", flush_size="1") as runner:
        runner.put([row(0, value={"id": 1, "name": "../../etc"}), row(1, value={"id": 1, "name": None})])
    assert [name.split("/")[1] for name in files(tmp_path)] == ["name=.._.._etc", "name=null"]


def test_rotation_by_the_time_between_records(tmp_path: Path) -> None:
    with sink(tmp_path, flush_size="100", rotate_interval_ms="1000", timestamp_extractor="Record") as runner:
        start = 1_700_000_000_000
        runner.put(
            [row(0), row(1, timestamp=start + 999), row(2, timestamp=start + 1000), row(3, timestamp=start + 1001)]
        )
        assert runner.commit() == {("t", 0): 2}


def test_rotation_by_schedule_comes_without_records(tmp_path: Path) -> None:
    with sink(tmp_path, flush_size="100", rotate_schedule_interval_ms="50") as runner:
        runner.put(rows(0, 0))
        deadline = datetime.now(UTC).timestamp() + 60
        while not runner.commit():
            assert datetime.now(UTC).timestamp() < deadline
            runner.put([])
        assert runner.committed == {("t", 0): 1}


NEWER = struct({"id": INT32, "name": optional(STRING), "size": with_default(INT32, 5)}, name="row", version=2)


def mixed() -> list[SinkRecord]:
    new = {"value_schema": NEWER, "value": {"id": 1, "name": "x", "size": 9}}
    return [row(0), row(1, **new), row(2), row(3, **new)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("NONE", [(0, 0), (1, 1), (2, 2)]),
        ("BACKWARD", [(0, 0)]),
        ("FULL", [(0, 0)]),
        ("FORWARD", []),
    ],
)
def test_schema_changes_rotate_or_project(tmp_path: Path, mode: str, expected: list[tuple[int, int]]) -> None:
    with sink(tmp_path, flush_size="100", schema_compatibility=mode) as runner:
        runner.put(mixed())
        names = [name for name in files(tmp_path) if "+tmp" not in name]
        ends = [tuple(int(part) for part in name.removesuffix(".json").split("+")[2:]) for name in names]
        assert ends == expected


def test_an_older_record_is_projected_to_the_newer_schema(tmp_path: Path) -> None:
    with sink(tmp_path, flush_size="2", schema_compatibility="BACKWARD") as runner:
        runner.put([row(0, value_schema=NEWER, value={"id": 0, "name": "x", "size": 9}), row(1)])
    (name,) = files(tmp_path)
    last = json.loads((tmp_path / "topics" / name).read_text().splitlines()[1])
    assert last == {"id": 1, "name": "n1", "size": 5}


def test_wrong_settings_and_data_without_schema(tmp_path: Path) -> None:
    wrong = sink(tmp_path, format_class="XmlFormat", partitioner_class="FieldPartitioner", timestamp_extractor="Moon")
    with pytest.raises(ConfigError) as caught:
        wrong.start()
    for word in ("XmlFormat", "partition.field.name", "RecordField"):
        assert word in str(caught.value)
    with sink(tmp_path, format_class="AvroFormat") as runner:
        with pytest.raises(ConnectError, match="JsonFormat"):
            runner.put([row(0, value_schema=None)])
        with pytest.raises(ConnectError, match="names of its files"):
            runner.connector.alter_offsets({}, {})  # type: ignore[attr-defined]
