"""One Spark session and one broker for all tests here; `scripts/compat spark` runs them, in a process of their own.

`MOLDAU_COMPAT_BROKER=kafka` puts Apache Kafka in moldau's place; with `MOLDAU_SPARK_RECORD=1` what Spark sees there
is written down as what it has to see on moldau.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.compat.spark.cluster import Cluster, running
from tests.compat.spark.seen import Seen
from tests.compat.spark.session import spark_session
from tests.compat.spark.source import Kafka
from tests.compat.spark.workload import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if "MOLDAU_COMPAT_BROKER" not in os.environ:
        pytest.skip("these want a Spark session with settings of their own: scripts/compat spark runs them")
    with spark_session() as session:
        yield session


@pytest.fixture(scope="session")
def cluster(spark: SparkSession) -> Iterator[Cluster]:
    with running(os.environ["MOLDAU_COMPAT_BROKER"]) as started:
        yield started


@pytest.fixture
def topics(cluster: Cluster, request: pytest.FixtureRequest) -> Topics:
    return Topics(cluster.bootstrap, re.sub(r"[\W_]+", "-", request.node.name.removeprefix("test_")).strip("-"))


@pytest.fixture
def kafka(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> Iterator[Kafka]:
    opened = Kafka(spark, cluster.bootstrap, tmp_path)
    yield opened
    opened.stop_all()


@pytest.fixture
def seen(request: pytest.FixtureRequest, cluster: Cluster) -> Seen:
    record = cluster.kind == "kafka" and os.environ.get("MOLDAU_SPARK_RECORD") == "1"
    return Seen(request.node.name, record=record)
