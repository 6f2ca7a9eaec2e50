"""What callers may count on with any serde: headers, settings and schemas reach those that want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.serdes import BYTES, JSON, LONG, STRING, AvroSerde, ListSerde, SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.schema_serde import SchemaSerde
from moldau.serdes.serde import (
    bound_deserializer,
    bound_serializer,
    check_calls,
    ready_serde,
    wants_headers,
    with_inner,
)
from moldau.serdes.windowed import Window, Windowed


class WithHeaders:
    def serialize(self, topic: str, value: str, headers: Any = None) -> bytes:
        return f"{value} {len(headers)}".encode()

    def deserialize(self, topic: str, data: bytes, headers: Any = None) -> str:
        return f"{data.decode()} {len(headers)}"


class WithoutHeaders:
    def serialize(self, topic: str, value: str) -> bytes:
        return value.encode()

    def deserialize(self, topic: str, data: bytes) -> str:
        return data.decode()


ONE = (("h", b"1"),)


def test_headers_are_given_to_those_that_take_them() -> None:
    assert bound_serializer(WithHeaders())("t", "a", ONE) == b"a 1"
    assert bound_deserializer(WithHeaders())("t", b"a", ONE) == "a 1"
    old: Any = WithoutHeaders()
    assert bound_serializer(old)("t", "a", ONE) == b"a"
    assert bound_deserializer(old)("t", b"a", ONE) == "a"


def test_only_serdes_that_look_at_headers_cost_a_pipeline_anything() -> None:
    own: Any = WithoutHeaders()
    assert wants_headers(WithHeaders())
    assert wants_headers(ListSerde(WithHeaders()))
    assert not any(map(wants_headers, (STRING, BYTES, LONG, JSON, AvroSerde(), ListSerde(LONG), own)))


def test_lists_and_windows_hand_headers_on() -> None:
    assert ListSerde(WithHeaders()).deserialize("t", ListSerde(STRING).serialize("t", ["a"]), ONE) == ["a 1"]
    key = Windowed("a", Window(5, 15))
    for serde in (TimeWindowedSerde(WithHeaders(), 10), SessionWindowedSerde(WithHeaders())):
        assert serde.deserialize("t", serde.serialize("t", key, ONE), ONE) == Windowed("a 1 1", Window(5, 15))


class Configured(WithoutHeaders):
    def __init__(self, told: tuple[Any, ...] = ()) -> None:
        self.told = told

    def configured(self, settings: Mapping[str, Any], part: str) -> Configured:
        return Configured((settings["a"], part))


def test_settings_reach_what_is_inside() -> None:
    def connect(url: str, user_info: str | None) -> Any:
        raise AssertionError("nobody asks for schemas here")

    inside: Any = Configured()
    ready: Any = ready_serde(TimeWindowedSerde(ListSerde(inside), 10), {"a": 1}, "key", connect)
    assert ready.inner.inner.told == (1, "key")
    assert ready_serde(LONG, {}, "value", connect) is LONG
    nested = ListSerde(TimeWindowedSerde(LONG, 5))
    assert with_inner(nested, lambda serde: serde) is nested


def test_a_serde_with_a_schema_connects_when_it_is_used_and_in_any_process() -> None:
    asked = []

    def connect(url: str, user_info: str | None) -> Any:
        asked.append((url, user_info))
        raise InvalidConfigError("as good as any")

    settings = {"schema.registry.url": "http://somewhere", "basic.auth.user.info": "me:secret"}
    with pytest.raises(InvalidConfigError, match="as good as any"):
        ready_serde(AvroSerde(), settings, "value", connect)
    assert asked == [("http://somewhere", "me:secret")]
    assert isinstance(AvroSerde().with_schema_source(connect), SchemaSerde)


def test_objects_that_are_no_serdes_are_refused() -> None:
    class Old:
        def serialize(self, data: str, ctx: Any) -> bytes:
            return b""

    check_calls(WithHeaders(), "serialize", "deserialize")
    check_calls(WithoutHeaders(), "serialize", "deserialize")
    for wrong, message in ((Old(), r"Old\.serialize takes \(data, context\)"), (Old, "is a class"), ("x", "no method")):
        with pytest.raises(InvalidConfigError, match=message):
            check_calls(wrong, "serialize")
