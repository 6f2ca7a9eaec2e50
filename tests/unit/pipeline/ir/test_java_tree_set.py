from __future__ import annotations

import random

from moldau.pipeline.ir.java_tree_set import TreeSet


def test_elements_come_out_in_order_and_once() -> None:
    numbers = list(range(200)) * 2
    random.Random(7).shuffle(numbers)
    tree: TreeSet[int] = TreeSet(lambda one, other: one - other)
    for number in numbers:
        tree.add(number)
    assert list(tree) == list(range(200))


def test_an_element_stays_where_it_was_put_though_its_order_changed() -> None:
    weight = {"a": 1, "b": 2}
    tree: TreeSet[str] = TreeSet(lambda one, other: weight[one] - weight[other])
    tree.add("a")
    tree.add("b")
    weight["a"] = 3
    assert list(tree) == ["a", "b"]
