from __future__ import annotations

import pytest

from moldau.core.config import BrokerConfig
from moldau.net.limits import Limits, parse_overrides


def test_overrides_are_read_by_the_last_colon() -> None:
    assert parse_overrides(" 10.0.0.1:5, ::1:7,[fe80::2]:0 ") == {"10.0.0.1": 5, "::1": 7, "fe80::2": 0}
    assert parse_overrides("") == {}


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:x", ":5", "a:-1"])
def test_overrides_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:count"):
        parse_overrides(text)


def test_an_address_with_an_override_has_its_own_limit() -> None:
    limits = Limits(max_connections_per_ip=2, per_ip_overrides={"10.0.0.1": 9})
    assert (limits.connections_of("10.0.0.1"), limits.connections_of("10.0.0.2")) == (9, 2)


def test_kafkas_default_buffer_leaves_the_size_to_the_kernel() -> None:
    config = BrokerConfig({"socket.send.buffer.bytes": "65536", "socket.request.max.bytes": "1000"})
    limits = config.section(Limits)
    assert (limits.receive_buffer_bytes, limits.send_buffer_bytes, limits.request_max_bytes) == (-1, 65_536, 1000)
