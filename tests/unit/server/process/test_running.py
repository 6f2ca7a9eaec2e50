"""Finding the servers that run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from moldau.server.process.running import announce, running_servers


@pytest.fixture(autouse=True)
def _own_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_server_is_listed_while_it_runs() -> None:
    with announce(7, ("broker",)):
        assert [(s.pid, s.node_id, s.process_roles) for s in running_servers()] == [(os.getpid(), 7, ("broker",))]
    assert running_servers() == []


def test_files_of_killed_servers_are_swept_away(tmp_path: Path) -> None:
    folder = tmp_path / f"moldau-{os.getuid()}"
    folder.mkdir()
    recycled = {"pid": os.getpid(), "start_ticks": 1, "node_id": 1, "process_roles": ["broker"]}
    (folder / "1.json").write_text(json.dumps(recycled))
    (folder / "2.json").write_text("not json")
    assert running_servers() == []
    assert list(folder.iterdir()) == []
