"""A zookeeper.properties file, and the controller that it describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.config import BrokerConfig
from moldau.core.errors import InvalidConfigError
from moldau.core.properties import parse_properties
from moldau.server.zookeeper.properties_file import ZooKeeperFile

CONFIG = Path(__file__).parents[4] / "config"


def test_the_file_that_is_shipped_is_the_one_that_courses_start() -> None:
    file = ZooKeeperFile.of(parse_properties((CONFIG / "zookeeper.properties").read_text()))
    assert (file.data_dir, file.client_port, file.host, file.node_id) == ("/tmp/zookeeper", 2181, "", 3001)
    config = BrokerConfig(file.settings())
    assert config.value("process.roles") == ["controller"]
    assert config.value("max.connections.per.ip") == 2**31 - 1
    assert [str(one) for one in config.listeners] == ["CONTROLLER://:2181"]


def test_keys_of_controllers_count_and_zookeepers_own_are_passed_over() -> None:
    file = ZooKeeperFile.of(
        {
            "dataDir": "data",
            "tickTime": "2000",
            "server.1": "a:2888:3888",
            "clientPortAddress": "::1",
            "broker.session.timeout.ms": "6000",
            "node.id": "0",
        }
    )
    assert Path(file.data_dir).is_absolute()
    config = BrokerConfig(file.settings())
    assert config.listeners[0].host == "::1"
    assert config.value("broker.session.timeout.ms") == 6000
    assert config.node_id == 3001


def test_an_ensemble_is_a_quorum_whose_members_know_their_number(tmp_path: Path) -> None:
    (tmp_path / "myid").write_text("2\n")
    servers = {"server.1": "a:2888:3888", "server.2": "b:2888:3888;0.0.0.0:2182", "server.3": "c:2888:3888"}
    file = ZooKeeperFile.of({"dataDir": str(tmp_path), "clientPort": "2181", **servers})
    assert file.node_id == 3002
    assert BrokerConfig(file.settings()).value("controller.quorum.voters") == [
        "3001@a:2181",
        "3002@b:2182",
        "3003@c:2181",
    ]


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({}, "dataDir is missing"),
        ({"dataDir": "d", "clientPort": "many"}, "clientPort=many"),
        ({"dataDir": "d", "clientPort": "70000"}, "clientPort=70000"),
        ({"dataDir": "d", "maxClientCnxns": "-1"}, "maxClientCnxns=-1"),
        ({"dataDir": "d", "server.1": "a:1:2", "server.2": "b:1:2"}, r"myid must hold this server's number.*\[1, 2\]"),
        ({"dataDir": "d", "server.1": ":1:2", "server.2": "b:1:2"}, "write host:2888:3888;2181"),
    ],
)
def test_what_cannot_be_used_is_named(properties: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        ZooKeeperFile.of(properties)
