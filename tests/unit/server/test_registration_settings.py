"""A zookeeper.properties file as a registration point reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.core.properties import parse_properties
from moldau.server.registration_settings import RegistrationSettings

CONFIG = Path(__file__).parents[3] / "config"


def test_the_file_that_is_shipped_is_the_one_that_courses_start() -> None:
    settings = RegistrationSettings.of(parse_properties((CONFIG / "zookeeper.properties").read_text()))
    assert (settings.data_dir, settings.client_port, settings.host) == ("/tmp/zookeeper", 2181, "")
    assert settings.max_connections_per_ip == 0


def test_zookeepers_own_keys_are_passed_over() -> None:
    settings = RegistrationSettings.of(
        {"dataDir": "data", "tickTime": "2000", "initLimit": "5", "server.1": "a:2888:3888", "clientPortAddress": "::1"}
    )
    assert settings.client_port == 2181
    assert settings.host == "::1"
    assert Path(settings.data_dir).is_absolute()


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({}, "dataDir is missing"),
        ({"dataDir": "d", "clientPort": "many"}, "clientPort=many"),
        ({"dataDir": "d", "clientPort": "70000"}, "clientPort=70000"),
        ({"dataDir": "d", "server.1": "a:1:2", "server.2": "b:1:2"}, "server.1, server.2: an ensemble of 2"),
    ],
)
def test_what_cannot_be_used_is_named(properties: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfigError, match=named):
        RegistrationSettings.of(properties)
