"""The number of a node whose file gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import StartupError
from moldau.log.directories.meta_properties import save_meta_properties
from moldau.log.files import Files
from moldau.server.run import check

OLD = {"zookeeper.connect": "localhost:2181"}


@pytest.mark.parametrize("given", [{}, {"broker.id": "-1"}])
def test_a_file_of_zookeepers_time_is_given_the_first_number_above_the_reserved(
    given: dict[str, str], tmp_path: Path
) -> None:
    assert check(OLD | given | {"log.dirs": str(tmp_path)}).node_id == 1001


def test_a_number_once_given_stays(tmp_path: Path) -> None:
    save_meta_properties(Files(), str(tmp_path), "q1Sh-9_ISia_zwGINzRvyQ", 7)
    assert check(OLD | {"log.dirs": str(tmp_path)}).node_id == 7


@pytest.mark.parametrize(
    "given", [{"process.roles": "broker,controller"}, OLD | {"broker.id.generation.enable": "false"}]
)
def test_every_other_node_needs_one(given: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"node\.id is missing"):
        check(given | {"log.dirs": str(tmp_path)})
