"""What a registration point keeps on disk, and what it does about damage."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

import pytest

from moldau.controller.brokers import BrokerRegistration
from moldau.controller.image import Endpoint
from moldau.controller.registration import RegisteredBroker
from moldau.core.errors import StartupError
from moldau.log.files import Files
from moldau.server.registration_files import BROKER_FILE, RegistrationFiles


def registered(cluster_id: str) -> RegisteredBroker:
    endpoints = (Endpoint("PLAINTEXT", "", 9092), Endpoint("SSL", "me.example", 9093, 1))
    broker = BrokerRegistration(0, uuid.uuid4(), endpoints, "rack-1", (uuid.uuid4(), uuid.uuid4()))
    return RegisteredBroker(broker, 7, cluster_id, "127.0.0.1")


def opened(path: Path, files: Files | None = None) -> RegistrationFiles:
    found = RegistrationFiles(str(path), files or Files())
    found.open()
    return found


def test_what_was_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    first = opened(tmp_path / "new" / "zookeeper")
    saved = registered(first.cluster_id)
    first.save(saved)
    first.close()
    second = RegistrationFiles(str(tmp_path / "new" / "zookeeper"), Files())
    assert second.open() == saved
    assert second.cluster_id == saved.cluster_id
    second.close()


def test_a_cluster_id_that_a_broker_brought_is_kept(tmp_path: Path) -> None:
    first = opened(tmp_path)
    own = first.cluster_id
    first.save(registered("q1Sh-9_ISia_zwGINzRvyQ"))
    first.close()
    second = opened(tmp_path)
    assert second.cluster_id == "q1Sh-9_ISia_zwGINzRvyQ" != own
    second.close()


def test_two_points_cannot_share_a_folder(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(StartupError, match="in use by another process"):
        opened(tmp_path)
    first.close()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 9}', "not json", '{"version": 1, "broker_id": "x"}'])
def test_a_damaged_file_is_named_and_nothing_starts(tmp_path: Path, content: str) -> None:
    opened(tmp_path).close()
    (tmp_path / BROKER_FILE).write_text(content)
    with pytest.raises(StartupError, match=BROKER_FILE):
        opened(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match="cannot use dataDir"):
        opened(tmp_path / "file" / "zookeeper")


class FullDisk(Files):
    is_full = False

    def atomic_write(self, path: str, data: bytes, *, sync: bool = True) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().atomic_write(path, data, sync=sync)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    files = FullDisk()
    first = opened(tmp_path, files)
    before = registered(first.cluster_id)
    first.save(before)
    files.is_full = True
    for cluster_id in (first.cluster_id, "q1Sh-9_ISia_zwGINzRvyQ"):
        with pytest.raises(OSError, match="No space left"):
            first.save(registered(cluster_id))
    first.close()
    assert RegistrationFiles(str(tmp_path), Files()).open() == before
