"""Where settings come from, and which source wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.server.config import (
    data_folder,
    gather,
    laptop_defaults,
    load_file,
    parse_overrides,
    settings_from_environment,
    with_address,
)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("KAFKA_MY__KEY", "my_key"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_LISTENER_NAME_CLIENT___X_SASL_MECHANISM", "listener.name.client-x.sasl.mechanism"),
    ],
)
def test_environment_names_become_keys(name: str, key: str) -> None:
    assert settings_from_environment({name: "1"}) == {key: "1"}


def test_jmx_port_asks_for_metrics() -> None:
    assert settings_from_environment({"JMX_PORT": "9999"}) == {"metrics.http.port": "9999"}
    both = {"JMX_PORT": "9999", "KAFKA_METRICS_HTTP_PORT": "1"}
    assert settings_from_environment(both) == {"metrics.http.port": "1"}


def test_variables_of_kafkas_own_scripts_are_no_settings() -> None:
    assert settings_from_environment({"KAFKA_HEAP_OPTS": "-Xmx1g", "HOME": "/home/a", "KAFKA_": "x"}) == {}


def test_overrides_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("a=file\nb=file\nc=file\n")
    settings = gather(
        defaults={"a": "default", "b": "default", "c": "default", "d": "default"},
        file=file,
        environ={"KAFKA_B": "env", "KAFKA_C": "env"},
        overrides=["c=override"],
    )
    assert settings == {"a": "file", "b": "env", "c": "override", "d": "default"}


def test_an_override_without_a_value_says_what_was_expected() -> None:
    with pytest.raises(StartupError, match="expected key=value"):
        parse_overrides(["log.dirs"])


def test_an_override_may_hold_equals_signs_and_be_empty() -> None:
    assert parse_overrides(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"nowhere\.properties: no such file"):
        load_file(tmp_path / "nowhere.properties")


def test_data_folder_follows_the_desktop_convention() -> None:
    assert data_folder({"HOME": "/h"}) == Path("/h/.local/share/moldau/log")
    assert data_folder({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == Path("/d/moldau/log")


def test_without_a_file_only_this_machine_can_connect(tmp_path: Path) -> None:
    assert laptop_defaults({})["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\n")
    assert laptop_defaults({}, file)["listeners"] == "PLAINTEXT://:9092"


@pytest.mark.parametrize(
    ("listeners", "host", "port", "expected"),
    [
        ("PLAINTEXT://127.0.0.1:9092", None, None, "PLAINTEXT://127.0.0.1:9092"),
        ("PLAINTEXT://127.0.0.1:9092", "0.0.0.0", None, "PLAINTEXT://0.0.0.0:9092"),
        ("PLAINTEXT://127.0.0.1:9092", None, 0, "PLAINTEXT://127.0.0.1:0"),
        ("PLAINTEXT://127.0.0.1:9092", "::1", 1, "PLAINTEXT://[::1]:1"),
        ("PLAINTEXT://:9092,CONTROLLER://:9093", "[::]", None, "PLAINTEXT://[::]:9092,CONTROLLER://[::]:9093"),
        ("PLAINTEXT://:9092,CONTROLLER://:9093", None, 1, "PLAINTEXT://:1"),
    ],
)
def test_host_and_port_change_where_it_listens(
    listeners: str, host: str | None, port: int | None, expected: str
) -> None:
    assert with_address({"listeners": listeners, "a": "b"}, host, port) == {"listeners": expected, "a": "b"}


def test_a_file_of_zookeepers_time_says_itself_who_the_broker_is(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=0\nzookeeper.connect=localhost:2181\n")
    config = BrokerConfig(gather(defaults=laptop_defaults({}, file), file=file, environ={}, overrides=[]))
    assert config.node_id == 0
    assert config.value("process.roles") == ["broker"]
