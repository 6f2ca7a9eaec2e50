"""A `state.dir` on a file system that only Spark knows: here Hadoop's view file system, over a folder of the test."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.cluster_shop import Shop
from tests.spark.running_program import PROGRAM

from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles
from moldau.streams import KafkaStreams
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELSEWHERE = "viewfs://elsewhere/state"


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """What is behind `ELSEWHERE`."""
    made = tmp_path / "behind"
    made.mkdir()
    settings: Any = spark.sparkContext._jsc
    settings.hadoopConfiguration().set("fs.viewfs.mounttable.elsewhere.link./state", f"file://{made}")
    settings.hadoopConfiguration().setBoolean("fs.viewfs.impl.disable.cache", True)
    return made


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Broker() as broker:
        yield Shop(broker.bootstrap_servers)


def test_files_elsewhere_are_written_as_a_whole_and_read_again(spark: SparkSession, folder: Path) -> None:
    files = HadoopFiles(spark)
    place = f"{ELSEWHERE}/application/topology.json"

    assert files.read(place) is None
    assert files.names(f"{ELSEWHERE}/application") == []
    files.write(place, "first")
    files.write(place, "zweitens: ü")
    assert files.read(place) == "zweitens: ü"
    assert files.names(f"{ELSEWHERE}/application") == ["topology.json"]
    assert (folder / "application" / "topology.json").read_text() == "zweitens: ü"
    files.delete(f"{ELSEWHERE}/application")
    files.delete(f"{ELSEWHERE}/application")
    assert files.read(place) is None


def test_an_application_goes_on_from_state_elsewhere(
    spark: SparkSession, folder: Path, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    program = importlib.import_module(PROGRAM.stem)
    names = ("per-minute", "addressed")
    for _ in range(2):
        shop.send_orders(100)
        running = [_application(shop, program, name, spark) for name in names]
        for one in running:
            one.start()
        for name in names:
            shop.check(name)
        assert all(one.close() for one in running)

    assert {path.name for path in folder.iterdir()} == {"per-minute", "addressed"}
    assert any((folder / "per-minute" / "checkpoint" / "state").iterdir())
    running[0].clean_up()
    assert not (folder / "per-minute" / "checkpoint").exists()


def _application(shop: Shop, program: Any, name: str, spark: SparkSession) -> KafkaStreams:
    config = {"application.id": name, "bootstrap.servers": shop.bootstrap, "state.dir": ELSEWHERE}
    settings = {**config, **program.SETTINGS.get(name, {})}
    return KafkaStreams(program.APPLICATIONS[name](), settings, engine=Engine(spark=spark))
