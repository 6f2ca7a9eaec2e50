"""Completion keeps the case that was typed."""

from __future__ import annotations

from moldau.cli.ksql.shell.completion import candidates


def test_words_and_names_complete_in_the_case_that_was_typed() -> None:
    assert candidates("desc", ()) == ["describe"]
    assert candidates("DESC", ()) == ["DESCRIBE"]
    assert candidates("or", {"ORDERS"}) == ["or", "orders"]
    assert candidates("Ord", {"Orders", "ORDERS"}) == ["ORDERS", "Orders"]
