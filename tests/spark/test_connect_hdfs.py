"""The file-system sink on a real HDFS: Hadoop's name node and data node, reached over HTTP."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow.orc
import pyarrow.parquet
import pytest
from tests.spark.hdfs import Hdfs

from moldau.connect.api import ConnectError, SinkRecord, TopicPartition
from moldau.connect.api.errors import NotAllowedError
from moldau.connect.api.limits import Limits
from moldau.connect.api.schemas import INT32, STRING, optional, struct
from moldau.connect.connectors.hdfs.storage import Storage, open_storage
from moldau.connect.connectors.hdfs.webhdfs import WebHdfsStorage
from moldau.connect.testing import SinkRunner

SCHEMA = struct({"id": INT32, "name": optional(STRING)}, name="row", version=1)
ANYWHERE = Limits.of(None, None)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running


def sink(url: str, **more: str) -> SinkRunner:
    settings = {"store.url": url, "flush.size": "3", "format.class": "JsonFormat"}
    settings.update({key.replace("_", "."): value for key, value in more.items()})
    return SinkRunner("HdfsSink", settings)


def rows(first: int, last: int) -> list[SinkRecord]:
    return [
        SinkRecord(
            topic="t", partition=0, offset=n, value={"id": n, "name": f"n{n % 2}"}, value_schema=SCHEMA, timestamp=0
        )
        for n in range(first, last + 1)
    ]


def content(storage: Storage, path: str) -> io.BytesIO:
    return io.BytesIO(storage.read(path))


def read_back(kind: str, content: io.BytesIO) -> list[dict[str, Any]]:
    match kind:
        case "avro":
            return [dict(row) for row in fastavro.reader(content) if isinstance(row, dict)]
        case "parquet":
            return list(pyarrow.parquet.read_table(content).to_pylist())
        case "orc":
            return list(pyarrow.orc.read_table(content).to_pylist())
    return [json.loads(line) for line in content.read().splitlines()]


@pytest.mark.parametrize("kind", ["avro", "parquet", "orc", "json"])
def test_every_format(hdfs: Hdfs, kind: str) -> None:
    url = f"{hdfs.web_url}/formats/{kind}"
    with sink(url, format_class=f"io.confluent.connect.hdfs.{kind}.{kind.capitalize()}Format") as runner:
        runner.put(rows(0, 3))
        assert runner.commit() == {("t", 0): 3}
        runner.close()
    storage = open_storage(url, ANYWHERE)
    assert storage.files("topics") == [f"t+0+0000000000+0000000002.{kind}"]
    found = read_back(kind, content(storage, f"topics/t/partition=0/t+0+0000000000+0000000002.{kind}"))
    assert found == [{"id": n, "name": f"n{n % 2}"} for n in range(3)]


def test_each_record_is_there_once_after_crashes_at_every_rename(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    renames = WebHdfsStorage.rename
    for limit in range(4):
        url = f"{hdfs.web_url}/crash {limit}"
        done: list[str] = []

        def failing(self: WebHdfsStorage, old: str, new: str, done: list[str] = done, limit: int = limit) -> None:
            if len(done) == limit:
                raise OSError("the power is gone")
            done.append(new)
            renames(self, old, new)

        runner = sink(url, flush_size="4", partitioner_class="FieldPartitioner", partition_field_name="name")
        with runner:
            monkeypatch.setattr(WebHdfsStorage, "rename", failing)
            with pytest.raises(OSError, match="power") if limit < 3 else pytest.raises(AssertionError, match="done"):
                runner.put(rows(0, 3))
                raise AssertionError("done")
            monkeypatch.undo()
            runner.tasks.clear()
            runner.start_tasks()
            runner.open(TopicPartition("t", 0))
            runner.put(rows(runner.rewound().get(TopicPartition("t", 0), 0), 7))
            runner.close()
        storage = open_storage(url, ANYWHERE)
        found = [
            row["id"]
            for folder in ("name=n0", "name=n1")
            for name in storage.files(f"topics/t/{folder}")
            for row in read_back("json", content(storage, f"topics/t/{folder}/{name}"))
        ]
        assert sorted(found) == list(range(8)), f"after {limit} renames"


def test_what_cannot_be_is_said(hdfs: Hdfs) -> None:
    with pytest.raises(NotAllowedError):
        open_storage(hdfs.web_url, Limits.of(None, ["elsewhere"]))
    storage = open_storage(f"{hdfs.web_url}/none", ANYWHERE)
    assert storage.files("nothing") == []
    storage.delete("nothing")
    storage.delete_tree("nothing")
    with pytest.raises(ConnectError, match="does not exist"):
        storage.read("nothing")
    stranger = open_storage(hdfs.web_url.replace("webhdfs://", "webhdfs://stranger@") + "/forbidden", ANYWHERE)
    with pytest.raises(ConnectError, match=r"403.*Permission denied"), stranger.create("file") as file:
        file.write(b"x")
    with pytest.raises(ConnectError, match="webhdfs://namenode"):
        open_storage("hdfs://127.0.0.1:1/", ANYWHERE)
