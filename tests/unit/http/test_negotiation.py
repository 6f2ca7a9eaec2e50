from __future__ import annotations

import pytest

from moldau.http.negotiation import MediaTypes

TYPES = MediaTypes(produced={"application/a": 1.0, "application/b": 0.5}, consumed=frozenset({"application/a"}))


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "application/a"),
        ("", "application/a"),
        ("*/*", "application/a"),
        ("application/*;q=0.1", "application/a"),
        ("application/b", "application/b"),
        ("application/a;q=0.4, application/b", "application/b"),
        ("application/a;q=0.6, application/b", "application/a"),
        ("APPLICATION/B", "application/b"),
        ("*/*, application/a;q=0", "application/b"),
        ("text/plain", None),
        ("nonsense", None),
        ("application/a;q=x", None),
        ("application/a;q=0", None),
    ],
)
def test_the_best_type_that_both_like_is_chosen(accept: str | None, expected: str | None) -> None:
    assert TYPES.chosen(accept) == expected
    assert TYPES.chosen(accept) == expected, "the kept choice is the same"


def test_endless_new_headers_are_not_all_remembered() -> None:
    for number in range(2000):
        assert TYPES.chosen(f"application/b;v={number}") == "application/b"
    assert len(TYPES._kept) <= 256


def test_a_body_is_understood_by_its_type_or_without_one() -> None:
    assert TYPES.understands(None)
    assert TYPES.understands("Application/A; charset=utf-8")
    assert not TYPES.understands("application/b")
