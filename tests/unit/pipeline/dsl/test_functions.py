"""What may be given as a function, and what is refused where it was written."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from moldau.pipeline.dsl.expressions import aggregate, key, left, value
from moldau.pipeline.dsl.functions import callable_of, function_of, keyed_function_of, with_key
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Call
from moldau.pipeline.ir.functions import PythonFunction


def both(key: Any, value: Any) -> Any:
    return key, value


class Adder:
    def __init__(self, amount: int = 0) -> None:
        self.amount = amount

    def __call__(self, value: int) -> int:
        return value + self.amount


def test_a_callable_is_taken_with_the_line_it_is_on() -> None:
    function = function_of(both, "map", "key", "value")
    assert isinstance(function, PythonFunction)
    assert function.call is both
    assert str(function.origin).startswith("test_functions.py:")


@pytest.mark.parametrize("given", [Adder(2), partial(both, 1), len, str, lambda value, more=1: value])
def test_whatever_can_be_called_with_the_arguments_will_do(given: Any) -> None:
    assert callable_of(given, "map_values", "value").call is given


def test_a_function_of_other_arguments_is_refused_by_name_and_line() -> None:
    with pytest.raises(
        TopologyError,
        match=r"filter calls its function with \(key, value\), but <lambda> takes other .* \(test_functions.py:\d+\)",
    ):
        function_of(lambda value: value, "filter", "key", "value")


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TopologyError, match="map_values needs a function of value, not 5"):
        function_of(5, "map_values", "value")  # type: ignore[arg-type]


def test_an_expression_is_taken_if_it_asks_for_nothing_unknown() -> None:
    assert isinstance(function_of(key + value, "filter", "key", "value"), Call)
    with pytest.raises(TopologyError, match=r"filter knows \(key, value\) but the expression asks for aggregate"):
        function_of(aggregate > 1, "filter", "key", "value")


def test_pairs_and_dicts_of_expressions_are_expressions() -> None:
    assert isinstance(function_of((value, key), "map", "key", "value"), Call)
    assert isinstance(function_of({"v": value}, "map_values", "value"), Call)
    with pytest.raises(TopologyError, match=r"a pair is \(key, value\), not 3 expressions"):
        function_of((value, key, key), "map", "key", "value")


def test_a_joiner_gets_the_key_when_it_asks_for_it() -> None:
    assert keyed_function_of(both, "join", "left", "right")[1] is False
    function, has_key = keyed_function_of(with_key(lambda key, one, two: key), "join", "left", "right")
    assert has_key
    assert isinstance(function, PythonFunction)
    assert keyed_function_of(key + left, "join", "left", "right")[1] is True
    with pytest.raises(TopologyError, match=r"join calls its function with \(key, left, right\)"):
        keyed_function_of(with_key(both), "join", "left", "right")


def test_with_key_is_refused_where_the_key_is_given_anyway() -> None:
    with pytest.raises(TopologyError, match="takes no with_key"):
        function_of(with_key(both), "filter", "key", "value")  # type: ignore[arg-type]


def test_an_expression_has_no_truth_and_no_length() -> None:
    with pytest.raises(TopologyError, match=r"& \| ~.*\(a < b\) & \(b < c\)"):
        bool(value > 1 and value < 3)
    with pytest.raises(TopologyError, match="flat_map_values"):
        list(value)
    with pytest.raises(TopologyError, match="cannot be part of an expression"):
        value + object()
