"""Consume, transform, produce: exactly once, whoever is killed. The long version is `scripts/exactly-once`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration import exactly_once


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_order_has_one_invoice_although_workers_and_broker_are_killed(protocol: str, tmp_path: Path) -> None:
    report = exactly_once.run(kills=7, seed=4, folder=tmp_path, protocol=protocol)

    assert report.problems == []
    assert report.worker_kills
    assert report.broker_kills
    assert report.orders == report.invoices


def test_the_audit_notices_what_is_lost_doubled_or_out_of_order() -> None:
    sent = {"a": 3}

    assert exactly_once.problems_of(sent, {"a": [0, 1, 2]}) == []
    assert "lost [1]" in exactly_once.problems_of(sent, {"a": [0, 2]})[0]
    assert "doubled [1]" in exactly_once.problems_of(sent, {"a": [0, 1, 1, 2]})[0]
    assert "out of order" in exactly_once.problems_of(sent, {"a": [0, 2, 1]})[0]
    assert exactly_once.problems_of(sent, {"a": [0, 1, 2], "b": [0]})
