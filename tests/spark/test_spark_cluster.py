"""A program of several files runs on a Spark cluster as it does on one machine, however it is started.

The cluster is a master and two workers on this machine. Nothing of the program's folder is on the workers' path: what
they need of it must come from the driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.cluster_shop import Shop
from tests.spark.java_processes import until
from tests.spark.running_program import PROGRAM, Running
from tests.spark.spark_cluster import SparkCluster

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.testing import Broker

TOOLS = Path(sys.executable).parent
QUICK = "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Executors that start sooner, as these live only for moments."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Broker() as broker:
        yield Shop(broker.bootstrap_servers)


def test_four_applications_give_exactly_their_results(cluster: SparkCluster, shop: Shop, tmp_path: Path) -> None:
    names = ("priced", "per-minute", "addressed", "totals")
    state = f"file://{tmp_path}/state"
    command = [sys.executable, str(PROGRAM), shop.bootstrap, state, *names, f"spark.master={cluster.url}", QUICK]
    shop.send_orders(300)
    with Running(command, tmp_path) as program:
        shop.is_served = program.is_running
        check_all(shop, names)
        shop.send_orders(200)
        check_all(shop, names)

        assert program.stopped() == 0
    assert program.errors() == ""


def test_the_command_line_runs_a_topology_of_a_file(cluster: SparkCluster, shop: Shop, tmp_path: Path) -> None:
    settings = (f"state.dir=file://{tmp_path}/state", "statestore.cache.max.bytes=0", f"spark.master={cluster.url}")
    named = [word for setting in (*settings, "num.stream.threads=1", QUICK) for word in ("-p", setting)]
    command = [str(TOOLS / "moldau"), "streams", "run", f"{PROGRAM}:per_minute", "-a", "counting"]
    shop.send_orders(100)
    with Running([*command, "-b", shop.bootstrap, *named], tmp_path) as program:
        shop.is_served = program.is_running
        shop.check("per-minute")

        assert program.stopped() == 0
    states = ("REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING")
    rest = ("INFO starting Spark, which takes some seconds", "read 100 records, wrote 100")
    # The last state and the summary are said by two threads.
    assert sorted(program.errors().splitlines()) == sorted([*(f"counting is {state}" for state in states), *rest])


def test_spark_submit_runs_the_program_unchanged(cluster: SparkCluster, shop: Shop, tmp_path: Path) -> None:
    jars = subprocess.run([TOOLS / "moldau", "streams", "jars"], capture_output=True, text=True, check=True).stdout
    submit = [str(TOOLS / "spark-submit"), "--master", cluster.url, "--jars", jars.strip(), "--conf", QUICK]
    submit += ["--conf", "spark.cores.max=1"]
    names = ("priced", "addressed")
    shop.send_orders(100)
    command = [*submit, str(PROGRAM), shop.bootstrap, f"file://{tmp_path}/state", *names]
    with Running(command, tmp_path, {"PYSPARK_PYTHON": sys.executable}) as program:
        shop.is_served = program.is_running
        check_all(shop, names)
        # Its Java process ends at once, and takes the program with it.
        program.stopped()
        until(program.is_gone)


def test_a_master_that_is_not_there_is_told_within_seconds(shop: Shop, tmp_path: Path) -> None:
    began = time.monotonic()
    command = [
        sys.executable,
        str(PROGRAM),
        shop.bootstrap,
        str(tmp_path),
        "priced",
        "spark.master=spark://127.0.0.1:1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))

    assert done.returncode == 1
    assert "no Spark master answers at spark://127.0.0.1:1: connection refused" in done.stderr
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_an_application_that_waits_for_executors_says_so(cluster: SparkCluster, shop: Shop, tmp_path: Path) -> None:
    more = (f"spark.master={cluster.url}", "spark.executor.memory=900g")
    command = [sys.executable, str(PROGRAM), shop.bootstrap, f"file://{tmp_path}/state", "priced", *more]
    shop.send_orders(1)
    with Running(command, tmp_path) as program:
        program.says(f"priced: no executor from {cluster.url} for 1")

        assert program.stopped() == 0


def check_all(shop: Shop, applications: tuple[str, ...]) -> None:
    for application in applications:
        if application == "totals":
            shop.check_totals()
        else:
            shop.check(application)
