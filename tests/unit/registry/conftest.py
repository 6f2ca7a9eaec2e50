from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.registry.sites import Site


@pytest.fixture
def site() -> Iterator[Site]:
    yield from _site({})


@pytest.fixture
def old_site() -> Iterator[Site]:
    """One that answers as registries up to 7.9 did."""
    yield from _site({"moldau.registry.dialect": "7.x"})


def _site(settings: dict[str, str]) -> Iterator[Site]:
    site = Site(settings)
    yield site
    site.registry.close()
