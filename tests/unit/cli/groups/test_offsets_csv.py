"""Plans of offsets survive a trip through CSV, and files in odd shapes are refused in words."""

from __future__ import annotations

import pytest

from moldau.cli.groups.offsets_csv import parse_plans, render_plans
from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition

PLANS = {
    "billing": {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 7},
    "a,b": {TopicPartition("t", 0): 0},
}


def test_one_group_is_not_named() -> None:
    text = render_plans({"billing": PLANS["billing"]}, names_groups=False)
    assert text == "orders,0,5\norders,1,7\n"
    assert parse_plans(text, ["billing"]) == {"billing": PLANS["billing"]}


def test_several_groups_are_named_first() -> None:
    text = render_plans(PLANS, names_groups=True)
    assert text == 'billing,orders,0,5\nbilling,orders,1,7\n"a,b",t,0,0\n'
    assert parse_plans(text, ["billing", "a,b"]) == PLANS


def test_quotes_and_blanks_are_taken() -> None:
    assert parse_plans('"orders", "0", "5"\n\n', ["g"]) == {"g": {TopicPartition("orders", 0): 5}}


@pytest.mark.parametrize("text", ["orders,0\n", "orders,zero,5\n", "g,orders,0,many\n", "a,b,c,d,e\n"])
def test_a_row_of_another_shape_is_refused_by_its_number(text: str) -> None:
    with pytest.raises(ToolError, match="line 1 of the file"):
        parse_plans(text, ["g"])


def test_rows_without_a_group_need_a_single_one() -> None:
    with pytest.raises(ToolError, match="is not group,topic,partition,offset"):
        parse_plans("orders,0,5\n", ["g", "h"])
