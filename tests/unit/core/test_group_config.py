"""A group's own settings: what they fall back to and how far they may go."""

from __future__ import annotations

import pytest

from moldau.core.config import BrokerConfig
from moldau.core.config.describe import ConfigSource, group_entries
from moldau.core.config.group_keys import parse_group_overrides
from moldau.core.errors import InvalidConfigError

CONFIG = BrokerConfig({"group.consumer.session.timeout.ms": "46000"}, node_id=1)


def test_what_is_not_set_is_the_brokers() -> None:
    entries = {one.name: one for one in group_entries(CONFIG, {"consumer.heartbeat.interval.ms": "6000"})}
    session, interval = entries["consumer.session.timeout.ms"], entries["consumer.heartbeat.interval.ms"]
    assert (session.value, session.source) == ("46000", ConfigSource.DEFAULT)
    assert (interval.value, interval.source) == ("6000", ConfigSource.GROUP)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("consumer.session.timeout.ms", "44999", "at least"),
        ("consumer.session.timeout.ms", "60001", "at most"),
        ("consumer.heartbeat.interval.ms", "1", "at least"),
        ("consumer.heartbeat.interval.ms", "15001", "at most"),
        ("consumer.heartbeat.interval.ms", "soon", "32-bit"),
        ("retention.ms", "1", "Unknown group config name"),
    ],
)
def test_what_is_out_of_bounds_is_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidConfigError, match=problem):
        parse_group_overrides({name: value}, CONFIG)
