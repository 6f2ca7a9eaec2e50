"""The bytes of serdes are those of Kafka's own; the expected ones were printed by Kafka Streams 4.3.1."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import pytest

from moldau.pipeline.dsl.serdes import Serdes
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.serdes import DefaultSerde, type_of
from moldau.pipeline.ir.types import Array, Primitive, Struct
from moldau.serdes.lists import ListSerde
from moldau.serdes.plain import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from moldau.serdes.serde import Serde, SerdeError
from moldau.serdes.windowed import MAX_TIME_MS, SessionWindowedSerde, TimeWindowedSerde, Window, Windowed

SOME_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")

KAFKAS: list[tuple[Serde, Any, str]] = [
    (StringSerde(), "čaj", "c48d616a"),
    (BytesSerde(), b"\x00\xff", "00ff"),
    (ShortSerde(), -2, "fffe"),
    (IntegerSerde(), 258, "00000102"),
    (LongSerde(), -5, "fffffffffffffffb"),
    (FloatSerde(), 1.5, "3fc00000"),
    (DoubleSerde(), -0.25, "bfd0000000000000"),
    (BooleanSerde(), True, "01"),
    (BooleanSerde(), False, "00"),
    (UuidSerde(), SOME_UUID, "31323334353637382d313233342d353637382d313233342d353637383132333435363738"),
    (ListSerde(IntegerSerde()), [1, None, -3], "0000000001000000010000000300000001fffffffd"),
    (ListSerde(IntegerSerde()), [], "000000000000000000"),
    (ListSerde(StringSerde()), ["a", None, "bc"], "01000000030000000161ffffffff000000026263"),
    (
        ListSerde(UuidSerde()),
        [SOME_UUID],
        "00000000000000000131323334353637382d313233342d353637382d313233342d353637383132333435363738",
    ),
    (JsonSerde(), {"a": [1, None, "ř"]}, '{"a":[1,null,"ř"]}'.encode().hex()),
    (TimeWindowedSerde(StringSerde(), 1000), Windowed("k", Window(5000, 6000)), "6b0000000000001388"),
    (SessionWindowedSerde(StringSerde()), Windowed("k", Window(5000, 6000)), "6b00000000000017700000000000001388"),
]


@pytest.mark.parametrize(("serde", "value", "written"), KAFKAS)
def test_values_are_written_as_kafka_writes_them_and_come_back(serde: Serde, value: Any, written: str) -> None:
    assert serde.serialize("topic", value).hex() == written
    assert serde.deserialize("topic", bytes.fromhex(written)) == value


@pytest.mark.parametrize(("serde", "value", "written"), KAFKAS)
def test_the_fast_way_writes_the_same(serde: Serde, value: Any, written: str) -> None:
    encode, decode = getattr(serde, "encode", None), getattr(serde, "decode", None)
    if encode is not None:
        assert encode(value).hex() == written
    if decode is not None:
        assert decode(bytes.fromhex(written)) == value


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (StringSerde(), 5),
        (BytesSerde(), "text"),
        (LongSerde(), "5"),
        (LongSerde(), 2**63),
        (IntegerSerde(), 2**31),
        (FloatSerde(), 1e300),
        (BooleanSerde(), 1),
        (UuidSerde(), "12345678"),
        (JsonSerde(), {1, 2}),
        (JsonSerde(), float("nan")),
        (ListSerde(StringSerde()), "text"),
        (VoidSerde(), 0),
    ],
)
def test_a_value_of_another_kind_is_refused(serde: Serde, value: Any) -> None:
    with pytest.raises(SerdeError):
        serde.serialize("topic", value)


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (StringSerde(), b"\xff"),
        (LongSerde(), b"1234"),
        (BooleanSerde(), b"\x02"),
        (UuidSerde(), b"no uuid"),
        (JsonSerde(), b"{"),
        (ListSerde(IntegerSerde()), b"\x00\x00"),
        (ListSerde(StringSerde()), b""),
        (ListSerde(StringSerde()), bytes.fromhex("01 00000001 00000003 6162")),
        (ListSerde(StringSerde()), bytes.fromhex("01 00000001 fffffffe 6162")),
        (ListSerde(StringSerde()), bytes.fromhex("00 00000000 7fffffff")),
        (ListSerde(LongSerde()), bytes.fromhex("00 00000000 00000001 00000000")),
        (VoidSerde(), b""),
        (TimeWindowedSerde(StringSerde(), 5), b"short"),
        (SessionWindowedSerde(StringSerde()), b"not long enough"),
    ],
)
def test_bytes_of_another_kind_are_refused(serde: Serde, data: bytes) -> None:
    with pytest.raises(SerdeError):
        serde.deserialize("topic", data)


def test_a_refusal_shows_the_beginning_of_a_long_value() -> None:
    with pytest.raises(SerdeError, match=r"^'x+\.\.\. \(str\) is not a long \(int\); use a serde for its type$"):
        LongSerde().serialize("topic", "x" * 1000)


def test_the_end_of_a_window_is_never_beyond_time() -> None:
    serde = TimeWindowedSerde(StringSerde(), MAX_TIME_MS)
    assert serde.deserialize("topic", serde.serialize("topic", Windowed("k", Window(7, 0)))).window.end == MAX_TIME_MS


def test_serdes_of_one_kind_are_equal_and_travel() -> None:
    assert StringSerde() == StringSerde()
    assert StringSerde() != LongSerde()
    assert pickle.loads(pickle.dumps(ListSerde(LongSerde()))) == ListSerde(LongSerde())


def test_a_serde_knows_the_type_of_its_values() -> None:
    document = Struct((("likes", Primitive.BIGINT),))
    assert type_of(LongSerde()) is Primitive.BIGINT
    assert type_of(ListSerde(StringSerde())) == Array(Primitive.STRING)
    assert type_of(JsonSerde(document)) == document
    assert type_of(JsonSerde()) is None


def test_a_missing_serde_says_where_to_name_one() -> None:
    with pytest.raises(SerdeError, match=r"no serde for a value.*default\.value\.serde"):
        DefaultSerde("value").serialize("topic", 1)
    with pytest.raises(SerdeError, match=r"default\.key\.serde"):
        DefaultSerde("key").deserialize("topic", b"")


def test_two_functions_are_a_serde_whose_failures_are_told_in_its_words() -> None:
    hexadecimal = Serdes.serde_from(lambda number: f"{number:x}".encode(), lambda data: int(data, 16))

    assert hexadecimal.serialize("topic", 255) == b"ff"
    assert hexadecimal.deserialize("topic", b"ff") == 255
    with pytest.raises(SerdeError, match="'text' cannot be written: ValueError"):
        hexadecimal.serialize("topic", "text")  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match="b'xyz' cannot be read: ValueError"):
        hexadecimal.deserialize("topic", b"xyz")
    with pytest.raises(TopologyError, match="the serializer calls its function with value"):
        Serdes.serde_from(lambda: b"", bytes.decode)  # type: ignore[arg-type, misc]
