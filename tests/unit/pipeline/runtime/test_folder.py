"""One process at a time works in an application's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.pipeline.runtime.errors import AlreadyRunningError, StreamsError
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.streams.application import identity_of
from moldau.streams.settings import StreamsSettings


def folder(state_dir: object) -> PipelineFolder:
    config = {"application.id": "app", "bootstrap.servers": "localhost:9092", "state.dir": str(state_dir)}
    return PipelineFolder(identity_of(StreamsSettings.of(config)))


def test_a_second_one_is_told_who_holds_it(tmp_path: Path) -> None:
    first, second = folder(tmp_path), folder(tmp_path)
    first.acquire()

    with pytest.raises(AlreadyRunningError, match=rf"process {os.getpid()}"):
        second.acquire()

    first.release()
    second.acquire()
    second.release()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StreamsError, match="cannot be used"):
        folder(tmp_path / "file").acquire()


def test_a_uri_of_this_machine_is_a_folder(tmp_path: Path) -> None:
    assert folder(tmp_path.as_uri()).checkpoint_location == f"{tmp_path}/app/checkpoint"


def test_elsewhere_only_the_checkpoint_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    elsewhere = folder("hdfs://name/streams/")

    assert elsewhere.checkpoint_location == "hdfs://name/streams/app/checkpoint"
    assert elsewhere.stores_file == tmp_path / "moldau" / "streams" / "app" / "stores.sqlite"


def test_deleting_leaves_nothing_of_the_application(tmp_path: Path) -> None:
    ours = folder(tmp_path)
    ours.acquire()
    (ours.local / "checkpoint" / "offsets").mkdir(parents=True)
    for name in ("topology.json", "stores.sqlite", "stores.sqlite-wal"):
        (ours.local / name).write_text("{}")

    ours.delete()
    ours.release()

    assert [path.name for path in ours.local.iterdir()] == ["lock"]
