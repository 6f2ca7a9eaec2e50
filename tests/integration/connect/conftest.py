"""Databases, started once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.connect.databases import KINDS, Server, running


@pytest.fixture(scope="session", params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server
