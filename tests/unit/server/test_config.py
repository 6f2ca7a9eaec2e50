"""Where settings come from, and which source wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import StartupError
from moldau.server.config import data_folder, gather, load_file, parse_overrides, settings_from_environment


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
