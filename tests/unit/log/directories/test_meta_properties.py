"""Which cluster, node and directory a log directory belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import StartupError
from moldau.log.directories.meta_properties import (
    META_FILE,
    MetaProperties,
    check_agreement,
    load_meta_properties,
    save_meta_properties,
)
from moldau.log.files import Files

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def test_a_formatted_directory_reads_back(tmp_path: Path) -> None:
    saved = save_meta_properties(Files(), str(tmp_path / "logs"), CLUSTER, 3)
    assert load_meta_properties(Files(), str(tmp_path / "logs")) == saved
    assert saved.directory_id is not None
    assert "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=3\ndirectory.id=" in saved.render()


def test_an_unformatted_directory_has_none(tmp_path: Path) -> None:
    assert load_meta_properties(Files(), str(tmp_path)) is None


def test_kafkas_own_file_is_understood(tmp_path: Path) -> None:
    (tmp_path / META_FILE).write_text(
        "#\n#Mon Jan 05 10:00:00 UTC 2026\ncluster.id=abc\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZQ\nnode.id=1\nversion=1\n"
    )
    loaded = load_meta_properties(Files(), str(tmp_path))
    assert loaded is not None
    assert (loaded.cluster_id, loaded.node_id) == ("abc", 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=0\nbroker.id=1\ncluster.id=abc\n", "ZooKeeper"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\ncluster.id=abc\nnode.id=one\n", "one"),
        ("version=7\n", "version 7"),
    ],
)
def test_an_unusable_file_stops_the_start(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / META_FILE).write_text(text)
    with pytest.raises(StartupError, match=reason):
        load_meta_properties(Files(), str(tmp_path))


def test_directories_must_agree() -> None:
    one = MetaProperties("abc", 1)
    assert check_agreement({"/a": one, "/b": MetaProperties("abc", 1)}, 1) == "abc"
    with pytest.raises(StartupError, match="disagree"):
        check_agreement({"/a": one, "/b": MetaProperties("xyz", 1)}, 1)
    with pytest.raises(StartupError, match=r"node\.id is 1"):
        check_agreement({"/a": one}, 2)
    with pytest.raises(StartupError, match="format"):
        check_agreement({}, 1)
