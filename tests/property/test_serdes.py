"""Whatever a plain serde writes it reads again, and bytes of any other kind are refused with a `SerdeError`."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipeline.cores.serialization import decoder, encoder
from moldau.serdes import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    JSON,
    LONG,
    SHORT,
    STRING,
    UUID,
    ListSerde,
    SerdeError,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    Window,
    Windowed,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    STRING: texts,
    StringSerde("utf-16-le"): texts,
    BYTES: st.binary(),
    SHORT: st.integers(-(2**15), 2**15 - 1),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
    UUID: st.uuids(),
    JSON: documents,
}
plain = st.sampled_from(list(VALUES))


def windows(serde: Any, size_ms: int) -> st.SearchStrategy[Any]:
    starts = st.integers(0, 2**62)
    return st.builds(Windowed, VALUES[serde], starts.map(lambda start: Window(start, start + size_ms)))


with_values = plain.flatmap(
    lambda serde: st.one_of(
        st.tuples(st.just(serde), VALUES[serde]),
        st.tuples(st.just(ListSerde(serde)), st.lists(st.none() | VALUES[serde])),
        st.tuples(st.just(TimeWindowedSerde(serde, 1000)), windows(serde, 1000)),
        st.tuples(st.just(SessionWindowedSerde(serde)), windows(serde, 5)),
    )
)


@given(with_values)
def test_what_is_written_comes_back(pair: tuple[Any, Any]) -> None:
    serde, value = pair
    data = serde.serialize("t", value)
    assert serde.deserialize("t", data) == value
    assert encoder(serde, "t")(value) == data
    assert decoder(serde, "t")(data) == value


@given(plain, st.binary() | st.binary().map(lambda noise: b"\x00" * 5 + noise))
def test_other_bytes_are_read_or_refused(serde: Any, data: bytes) -> None:
    for one in (serde, ListSerde(serde), TimeWindowedSerde(serde, 10), SessionWindowedSerde(serde)):
        with suppress(SerdeError):
            one.deserialize("t", data)


@given(with_values, plain)
def test_values_of_another_type_are_written_or_refused(pair: tuple[Any, Any], other: Any) -> None:
    with suppress(SerdeError):
        other.serialize("t", pair[1])


@given(st.sampled_from([SHORT, INT, LONG]).flatmap(lambda serde: st.tuples(st.just(serde), VALUES[serde])))
def test_numbers_are_read_from_text(pair: tuple[Any, int]) -> None:
    serde, value = pair
    assert serde.from_text("t", str(value)) == value


@given(st.integers())
def test_a_number_fits_or_is_refused(value: int) -> None:
    fits = -(2**63) <= value < 2**63
    try:
        assert struct.unpack(">q", LONG.serialize("t", value)) == (value,)
        assert fits
    except SerdeError:
        assert not fits
