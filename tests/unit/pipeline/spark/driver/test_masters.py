"""Where Spark runs, and how soon one hears that nobody is there."""

from __future__ import annotations

import socket
import time

import pytest

from moldau.pipeline.spark.driver.masters import MasterUnreachableError, check_master, cluster_settings, is_local_master


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2, 3]", None])
def test_local_masters_run_on_this_machine(master: str | None) -> None:
    assert is_local_master(master)


@pytest.mark.parametrize("master", ["spark://a:7077", "yarn", "k8s://https://a", "local-cluster[2,1,1024]"])
def test_others_run_elsewhere(master: str) -> None:
    assert not is_local_master(master)


def test_a_master_that_does_not_answer_is_named_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began = time.monotonic()

    with pytest.raises(MasterUnreachableError, match=f"no Spark master answers at .*:{port}: connection"):
        check_master(f"spark://127.0.0.1:{port}")
    assert time.monotonic() - began < 5


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_an_address_without_a_port_is_told() -> None:
    with pytest.raises(MasterUnreachableError, match="'somewhere' is not host:port"):
        check_master("spark://somewhere")


def test_other_cluster_managers_are_left_to_spark() -> None:
    check_master("yarn")


def test_threads_are_the_cores_that_one_driver_takes() -> None:
    assert cluster_settings({}, None) == {}
    assert cluster_settings({}, 3)["spark.cores.max"] == "3"
    assert cluster_settings({"spark.cores.max": "4"}, 3)["spark.cores.max"] == "4"
