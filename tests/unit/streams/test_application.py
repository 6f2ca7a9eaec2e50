"""What settings make of a pipeline. The names are those that earlier versions have left in clusters and on disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.streams.application import clients_of, identity_of, options_of
from moldau.streams.settings import StreamsSettings

LEAST = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def test_everything_is_called_by_the_application_id(tmp_path: Path) -> None:
    identity = identity_of(StreamsSettings.of({**LEAST, "state.dir": str(tmp_path)}))

    assert (identity.name, identity.group_id, identity.transactional_id) == ("app", "app", "app")
    assert identity.progress_topic == "app-progress"
    assert identity.title == "application app"
    assert identity.reset_command == "moldau streams reset --application-id app"


@pytest.mark.parametrize("suffix", ["", "/"])
def test_files_stay_where_earlier_versions_put_them(tmp_path: Path, suffix: str) -> None:
    folder = PipelineFolder(identity_of(StreamsSettings.of({**LEAST, "state.dir": f"{tmp_path}{suffix}"})))

    assert folder.location == str(tmp_path / "app")
    assert folder.checkpoint_location == f"{tmp_path}/app/checkpoint"
    assert folder.layout_file == f"{tmp_path}/app/topology.json"
    assert folder.stores_file == tmp_path / "app" / "stores.sqlite"
    assert folder.process_lock_file == tmp_path / "app" / "lock.spark"


def test_without_a_state_dir_the_users_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert PipelineFolder(identity_of(StreamsSettings.of(LEAST))).local == tmp_path / "moldau" / "streams" / "app"


def test_clients_get_what_is_meant_for_them() -> None:
    clients = clients_of(StreamsSettings.of({**LEAST, "producer.linger.ms": "7", "security.protocol": "SSL"}))

    assert clients.bootstrap_servers == "localhost:9092"
    assert clients.producer == {"client.id": "app", "security.protocol": "SSL", "linger.ms": "7"}
    assert clients.admin == clients.consumer == {"client.id": "app", "security.protocol": "SSL"}


def test_options_follow_the_settings() -> None:
    config = {
        "processing.guarantee": "exactly_once_v2",
        "moldau.latency": "realtime",
        "commit.interval.ms": "200",
        "auto.offset.reset": "latest",
        "application.server": "localhost:0",
        "errors.dead.letter.queue.topic.name": "dead",
        "spark.sql.shuffle.partitions": "3",
    }
    options = options_of(StreamsSettings.of({**LEAST, **config}))

    assert (options.is_exactly_once, options.is_realtime, options.interval_ms) == (True, True, 200)
    assert (options.offset_reset, options.dead_letter_topic) == (OffsetReset.LATEST, "dead")
    assert options.store_server == ("localhost", 0)
    assert options.spark == {"spark.sql.shuffle.partitions": "3"}
    assert options.task_settings["application.id"] == "app"
