"""Which hosts are this machine's alone."""

from __future__ import annotations

import pytest

from moldau.core.addresses import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "kafka-1", "localhost.example"])
def test_open_to_others(host: str) -> None:
    assert not is_loopback(host)
