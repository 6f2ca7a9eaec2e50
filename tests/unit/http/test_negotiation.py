from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.http.errors import HttpError
from moldau.http.negotiation import MediaTypes, negotiate

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
    assert TYPES.choose(accept) == expected
    assert TYPES.choose(accept) == expected, "the kept choice is the same"


def test_endless_new_headers_are_not_all_remembered() -> None:
    for number in range(2000):
        assert TYPES.choose(f"application/b;v={number}") == "application/b"
    assert len(TYPES._choices) <= 256
    assert TYPES.choose("application/b;v=" + "x" * 60_000) == "application/b"
    assert max(map(len, TYPES._choices)) < 1000


def test_a_body_is_understood_by_its_type_or_without_one() -> None:
    assert TYPES.understands(None)
    assert TYPES.understands("Application/A; charset=utf-8")
    assert not TYPES.understands("application/b")


# Rows that share a method and a path: REST v1 and v2 as the contract has them

V1 = MediaTypes(
    produced={"application/vnd.kafka.v1+json": 1.0, "application/vnd.kafka+json": 0.9, "application/json": 0.5},
    consumed=frozenset({"application/vnd.kafka.binary.v1+json", "application/vnd.kafka.v1+json", "application/json"}),
)
V2_BINARY = MediaTypes({"application/vnd.kafka.v2+json": 1.0}, frozenset({"application/vnd.kafka.binary.v2+json"}))
V2_AVRO = MediaTypes({"application/vnd.kafka.v2+json": 1.0}, frozenset({"application/vnd.kafka.avro.v2+json"}))
ANYTHING = MediaTypes({"application/vnd.ksql.v1+json": 1.0}, frozenset({"*/*"}))
ROWS = [V1, V2_BINARY, V2_AVRO]


@pytest.mark.parametrize(
    ("content_type", "accept", "row", "media_type"),
    [
        (None, None, 0, "application/vnd.kafka.v1+json"),
        ("application/vnd.kafka.avro.v2+json", None, 2, "application/vnd.kafka.v2+json"),
        ("application/vnd.kafka.avro.v2+json; charset=utf-8", "*/*", 2, "application/vnd.kafka.v2+json"),
        ("Application/Vnd.Kafka.Binary.V2+json", "application/*", 1, "application/vnd.kafka.v2+json"),
        (None, "application/vnd.kafka.v2+json", 1, "application/vnd.kafka.v2+json"),
        (None, "application/json", 0, "application/json"),
        ("application/json", "application/vnd.kafka+json", 0, "application/vnd.kafka+json"),
        (
            None,
            "application/vnd.kafka.v1+json;q=0.1, application/vnd.kafka.v2+json",
            1,
            "application/vnd.kafka.v2+json",
        ),
    ],
)
def test_the_bodys_type_chooses_the_row_and_then_what_is_accepted(
    content_type: str | None, accept: str | None, row: int, media_type: str
) -> None:
    assert negotiate(ROWS, content_type=content_type, accept=accept, has_body=True) == (row, media_type)


@pytest.mark.parametrize(
    ("content_type", "accept", "status"),
    [
        ("application/vnd.kafka.v2+json", None, 415),
        ("text/plain", "application/json", 415),
        ("application/vnd.kafka.avro.v2+json", "application/vnd.kafka.v1+json", 406),
        (None, "text/html", 406),
    ],
)
def test_what_no_row_understands_or_offers_is_refused(content_type: str, accept: str, status: int) -> None:
    with pytest.raises(HttpError) as caught:
        negotiate(ROWS, content_type=content_type, accept=accept, has_body=True)
    assert caught.value.status == status


def test_a_request_without_a_body_is_not_refused_for_its_type_but_may_be_chosen_by_it() -> None:
    def row(content_type: str) -> int:
        return negotiate(ROWS, content_type=content_type, accept=None, has_body=False).row

    assert row("text/plain") == 0
    assert row("application/vnd.kafka.avro.v2+json") == 2


def test_a_row_that_takes_anything_comes_behind_rows_that_name_the_type() -> None:
    rows = [ANYTHING, V1]
    assert negotiate(rows, content_type="text/plain", accept=None, has_body=True).row == 0
    assert negotiate(rows, content_type="application/json", accept=None, has_body=True).row == 1


def test_a_type_with_parameters_is_answered_whole() -> None:
    always = MediaTypes.always("text/plain; version=0.0.4")
    assert always.choose("text/plain") == "text/plain; version=0.0.4"
    assert always.choose("image/png") == "text/plain; version=0.0.4"
    assert MediaTypes.of("text/plain; version=0.0.4").choose("image/png") is None


@given(st.text(alphabet="ap/*;,q=.0159 nif-+e"))
def test_any_accept_header_gets_an_offered_type_or_none(accept: str) -> None:
    assert V1.choose(accept) in {*V1.produced, None}
