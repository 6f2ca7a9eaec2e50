"""Which topics a pattern means."""

from __future__ import annotations

import pytest

from moldau.cli.options import UsageError
from moldau.cli.tool import ToolError
from moldau.cli.topics.selection import matching, must_exist

NAMES = ["__consumer_offsets", "orders", "orders-eu", "payments"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (None, NAMES),
        ("orders", ["orders"]),
        ("orders.*", ["orders", "orders-eu"]),
        ("orders,payments", ["orders", "payments"]),
        (" orders , payments ", ["orders", "payments"]),
        ('"orders"', ["orders"]),
        ("nothing", []),
    ],
)
def test_a_pattern_must_cover_the_whole_name_and_a_comma_means_or(pattern: str | None, found: list[str]) -> None:
    assert matching(NAMES, pattern) == found


def test_internal_topics_can_be_left_out() -> None:
    assert matching(NAMES, None, exclude_internal=True) == NAMES[1:]


def test_a_broken_pattern_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="invalid regex"):
        matching(NAMES, "(")


def test_a_named_topic_must_exist_unless_told_otherwise() -> None:
    must_exist([], None, is_optional=False)
    must_exist([], "x", is_optional=True)
    with pytest.raises(ToolError, match=r"^Topic 'x' does not exist as expected$"):
        must_exist([], "x", is_optional=False)
