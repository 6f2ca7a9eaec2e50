"""`moldau up` on a disk that is full: the services are still watched, and people are told what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.running_platform import Platform, until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here; it needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_services_are_watched_on_a_full_disk_and_status_tells_of_it(small_disk: Path) -> None:
    platform = Platform(small_disk / "platform", "registry", "rest")
    assert platform.up().returncode == 0
    try:
        assert platform.produce("kept") == 0
        filling = small_disk / "filling"
        _fill(filling)
        until(lambda: "the disk is full" in platform.rows()["broker"]["note"])
        platform.kill("REST proxy")
        filling.unlink()
        until(lambda: platform.rows()["broker"]["note"] == "")
        assert platform.produce("kept") == 1
    finally:
        assert platform.moldau("down").returncode == 0


def test_nothing_is_started_on_a_full_disk(small_disk: Path) -> None:
    platform = Platform(small_disk / "platform", "registry", "rest")
    _fill(small_disk / "filling")
    refused = platform.up()
    assert refused.returncode == 1
    assert "the disk is full" in refused.stderr
    assert "--data chooses another folder" in refused.stderr


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 65536)
        except OSError:
            pass  # no room is left
