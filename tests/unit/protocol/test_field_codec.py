"""Field tables written and read: classic and flexible forms, null, arrays, tags, and bytes that do not fit."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.protocol.field_reader import DAMAGE, Cursor, DamagedError, read_uvarint, struct_reader
from moldau.protocol.field_writer import struct_writer, write_uvarint
from moldau.protocol.fields import Field, Struct, default_of


def struct_of(*fields: Field, is_flexible: bool = True) -> Struct:
    return Struct("Sample", fields, is_flexible, SimpleNamespace)


def encoded(table: Struct, **values: Any) -> bytes:
    output = bytearray()
    struct_writer(table)(output, SimpleNamespace(**values))
    return bytes(output)


def decoded(table: Struct, data: bytes) -> Any:
    return struct_reader(table)(Cursor(data))


ID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("field", "value", "classic", "flexible"),
    [
        (Field("f", "int8"), -1, b"\xff", b"\xff\x00"),
        (Field("f", "int16"), 258, b"\x01\x02", b"\x01\x02\x00"),
        (Field("f", "uint16"), 65535, b"\xff\xff", b"\xff\xff\x00"),
        (Field("f", "int32"), -2, b"\xff\xff\xff\xfe", b"\xff\xff\xff\xfe\x00"),
        (Field("f", "uint32"), 2**32 - 1, b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x00"),
        (Field("f", "int64"), 1, b"\0\0\0\0\0\0\0\1", b"\0\0\0\0\0\0\0\1\0"),
        (Field("f", "float64"), 1.0, b"\x3f\xf0\0\0\0\0\0\0", b"\x3f\xf0\0\0\0\0\0\0\0"),
        (Field("f", "bool"), True, b"\1", b"\1\0"),
        (Field("f", "uuid"), ID, ID.bytes, ID.bytes + b"\0"),
        (Field("f", "uuid"), None, bytes(16), bytes(17)),
        (Field("f", "string"), "ž", b"\0\2\xc5\xbe", b"\3\xc5\xbe\0"),
        (Field("f", "string", is_nullable=True), None, b"\xff\xff", b"\0\0"),
        (Field("f", "string", is_nullable=True), "", b"\0\0", b"\1\0"),
        (Field("f", "bytes"), b"ab", b"\0\0\0\2ab", b"\3ab\0"),
        (Field("f", "bytes", is_nullable=True), None, b"\xff\xff\xff\xff", b"\0\0"),
        (Field("f", "int16", is_array=True), [1, 2], b"\0\0\0\2\0\1\0\2", b"\3\0\1\0\2\0"),
        (Field("f", "string", is_array=True), ["a", ""], b"\0\0\0\2\0\1a\0\0", b"\3\2a\1\0"),
        (Field("f", "int16", is_array=True, is_nullable=True), None, b"\xff\xff\xff\xff", b"\0\0"),
    ],
)
def test_values_have_the_bytes_kafka_gives_them(field: Field, value: Any, classic: bytes, flexible: bytes) -> None:
    for is_flexible, wire in ((False, classic), (True, flexible)):
        table = struct_of(field, is_flexible=is_flexible)
        assert encoded(table, f=value) == wire
        assert decoded(table, wire).f == value
        for end in range(len(wire)):
            with pytest.raises(DAMAGE):
                decoded(table, wire[:end])


def test_structs_nest_and_may_be_null() -> None:
    inner = struct_of(Field("n", "int8"))
    table = struct_of(Field("one", inner, is_nullable=True), Field("many", inner, is_array=True))
    some = SimpleNamespace(n=7)
    assert encoded(table, one=None, many=[some]) == b"\xff\x02\x07\x00\x00"
    assert encoded(table, one=some, many=[]) == b"\x01\x07\x00\x01\x00"
    assert decoded(table, b"\x01\x07\x00\x01\x00") == SimpleNamespace(one=some, many=[])
    assert decoded(table, b"\xff\x02\x07\x00\x00") == SimpleNamespace(one=None, many=[some])


TAGGED = struct_of(
    Field("late", "int16", tag=9, default=-1),
    Field("plain", "int8"),
    Field("early", "string", is_nullable=True, tag=2, default=None),
    Field("list", "int8", is_array=True, tag=200),
)


def test_tags_come_in_order_of_their_numbers_and_only_when_they_say_something() -> None:
    assert encoded(TAGGED, plain=1, late=-1, early=None, list=[]) == b"\x01\x00"
    assert encoded(TAGGED, plain=1, late=-1, early=None, list=()) == b"\x01\x00"
    wire = encoded(TAGGED, plain=1, late=5, early="e", list=(3,))
    assert wire == b"\x01\x03" + b"\x02\x02\x02e" + b"\x09\x02\x00\x05" + b"\xc8\x01\x02\x02\x03"
    assert vars(decoded(TAGGED, wire)) == {"plain": 1, "early": "e", "late": 5, "list": [3]}


def test_missing_tags_read_as_their_defaults() -> None:
    assert vars(decoded(TAGGED, b"\x01\x00")) == {"plain": 1, "late": -1, "early": None, "list": []}


def test_a_struct_in_a_tag_is_null_by_a_zero_and_not_by_a_negative_byte() -> None:
    empty = SimpleNamespace(f=0)
    table = struct_of(Field("one", struct_of(Field("f", "int8")), is_nullable=True, tag=0, default=empty))
    for value, wire in (
        (None, b"\x01\x00\x01\x00"),
        (SimpleNamespace(f=7), b"\x01\x00\x03\x01\x07\x00"),
        (empty, b"\x00"),
    ):
        assert encoded(table, one=value) == wire
        assert decoded(table, wire).one == value


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02\x09\x02\x00\x05\x09\x02\x00\x05",
        b"\x01\x09\x01\x00",
        b"\x01\x09\x03\x00\x05\x00",
        b"\x01\x63\x7fx",
        b"\xff\xff\xff\xff\x0f",
    ],
    ids=["twice", "too short", "too long", "beyond the end", "four billion"],
)
def test_tags_that_contradict_themselves_are_damage(tags: bytes) -> None:
    with pytest.raises(DAMAGE):
        decoded(TAGGED, b"\x01" + tags)


@pytest.mark.parametrize("wire", [b"\xff\xfe", b"\x80\x00"], ids=["-2", "-32768"])
def test_lengths_below_null_are_damage(wire: bytes) -> None:
    with pytest.raises(DamagedError):
        decoded(struct_of(Field("f", "string", is_nullable=True), is_flexible=False), wire)


def test_null_where_a_value_is_due_is_damage_to_read_and_a_mistake_to_write() -> None:
    for is_flexible, wire in ((True, b"\0\0"), (False, b"\xff\xff")):
        table = struct_of(Field("f", "string"), is_flexible=is_flexible)
        with pytest.raises(DamagedError, match="null"):
            decoded(table, wire)
        with pytest.raises(ValueError, match="must not be null"):
            encoded(table, f=None)


def test_a_count_is_held_against_the_least_that_its_elements_take() -> None:
    pair = struct_of(Field("a", "int64"), Field("b", "string"), is_flexible=False)
    table = struct_of(Field("pairs", pair, is_array=True), is_flexible=False)
    with pytest.raises(DamagedError, match="3 elements claimed, 29 bytes left"):
        decoded(table, struct.pack(">i", 3) + bytes(29))
    assert len(decoded(table, struct.pack(">i", 3) + bytes(30)).pairs) == 3


def test_elements_are_limited_over_all_arrays_together() -> None:
    table = struct_of(Field("a", "int8", is_array=True), Field("b", "string", is_array=True))
    wire = encoded(table, a=[1, 2], b=["x", "y"])
    read: Callable[[Cursor], Any] = struct_reader(table)
    assert read(Cursor(wire, 0, 4)).b == ["x", "y"]
    with pytest.raises(DamagedError, match="more elements"):
        read(Cursor(wire, 0, 3))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**31, 2**32 - 1])
def test_varints_come_back(number: int) -> None:
    output = bytearray()
    write_uvarint(output, number)
    assert read_uvarint(Cursor(bytes(output))) == number


@pytest.mark.parametrize("wire", [b"\xff" * 5 + b"\x01", b"\xff\xff\xff\xff\x1f", b"\x80" * 4])
def test_varints_beyond_32_bits_or_the_end_are_damage(wire: bytes) -> None:
    with pytest.raises(DAMAGE):
        read_uvarint(Cursor(wire))


def test_defaults_are_null_empty_zero_or_a_struct_of_them() -> None:
    inner = struct_of(Field("n", "int8", default=3), Field("s", "string"))
    assert default_of(Field("f", inner)) == SimpleNamespace(n=3, s="")
    assert default_of(Field("f", "string", is_nullable=True)) is None
    assert default_of(Field("f", "records", is_nullable=True)) == b""
    assert default_of(Field("f", "int64")) == 0
    assert default_of(Field("f", "bool")) is False
    first, second = (default_of(Field("f", "int8", is_array=True, default=[1])) for _ in range(2))
    assert first == second == [1]
    assert first is not second
