from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client.connection import load_properties
from moldau.connect.api import Plugins
from moldau.connect.worker.settings import WorkerSettings
from moldau.connect.worker.validation import validate
from moldau.core.errors import InvalidConfigError

CLUSTER = {
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def test_every_missing_key_is_named() -> None:
    with pytest.raises(InvalidConfigError, match=r"group\.id, config.*, offset.*, status.*"):
        WorkerSettings.of({}, standalone=False)
    with pytest.raises(InvalidConfigError, match=r"offset\.storage\.file\.filename"):
        WorkerSettings.of({}, standalone=True)


def test_a_worker_of_this_machine_alone_lets_connectors_touch_everything() -> None:
    settings = WorkerSettings.of(CLUSTER, standalone=False)
    assert (settings.listener.host, settings.listener.port) == ("127.0.0.1", 8083)
    assert settings.allowed("paths") == ("*",)


def test_a_worker_for_others_lets_connectors_touch_what_it_lists() -> None:
    settings = WorkerSettings.of({**CLUSTER, "listeners": "http://0.0.0.0:8083"}, standalone=False)
    assert settings.allowed("paths") == ()
    listed = {**settings.given, "moldau.connect.allowed.hosts": "db.example"}
    assert WorkerSettings.of(listed, standalone=False).allowed("hosts") == ("db.example",)


def test_old_names_of_the_address_still_count() -> None:
    settings = WorkerSettings.of({**CLUSTER, "rest.port": "18083"}, standalone=False)
    assert settings.listener.port == 18083
    assert settings.worker_id(18083) == "127.0.0.1:18083"


def test_unknown_keys_are_told_and_passed_on_ones_are_not() -> None:
    settings = WorkerSettings.of({**CLUSTER, "producer.linger.ms": "1", "grop.id": "x"}, standalone=False)
    assert settings.warnings == ("grop.id is not a known setting",)
    assert settings.client("producer") == {"linger.ms": "1"}


@pytest.mark.parametrize(("name", "standalone"), [("connect-standalone", True), ("connect-distributed", False)])
def test_the_sample_files_are_valid(name: str, standalone: bool) -> None:
    folder = Path(__file__).resolve().parents[4] / "config"
    given = load_properties(str(folder / f"{name}.properties"))
    assert WorkerSettings.of(given, standalone=standalone).warnings == ()
    for connector in ("connect-file-source", "connect-file-sink"):
        config = load_properties(str(folder / f"{connector}.properties"))
        assert validate(config, Plugins(), given).errors == []
