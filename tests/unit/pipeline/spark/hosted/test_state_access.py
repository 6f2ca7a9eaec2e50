"""State through PySpark's public classes, and when that way is taken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.pipeline.spark.hosted.state_access import StateMaps, opened_state
from moldau.pipeline.spark.hosted.state_channel import StateChannel

MESSAGES = "pyspark.sql.streaming.proto.StateMessage_pb2"


class MapInMemory:
    """What PySpark's map state offers."""

    def __init__(self) -> None:
        self.entries: dict[tuple[bytes], tuple[bytes]] = {}

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:  # noqa: N802
        return self.entries.get(key)

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:  # noqa: N802
        self.entries[key] = value

    def removeKey(self, key: tuple[bytes]) -> None:  # noqa: N802
        self.entries.pop(key, None)

    def iterator(self) -> Iterator[tuple[tuple[bytes], tuple[bytes]]]:
        return iter(self.entries.items())


class Handle:
    """What PySpark passes to a processor; `client` is the part that it does not promise to keep."""

    def __init__(self, client: Any = None) -> None:
        if client is not None:
            self._statefulProcessorApiClient = client

    def getMapState(self, name: str, key: Any, value: Any) -> MapInMemory:  # noqa: N802
        return MapInMemory()


WITH_CLIENT = SimpleNamespace(sockfile=None)


def test_entries_come_back_and_go() -> None:
    maps = StateMaps({"one": MapInMemory(), "other": MapInMemory()})
    maps.write([("one", b"a", b"1"), ("one", b"b", b"2"), ("other", b"a", b"3"), ("one", b"b", None)])
    assert maps.get_many("one", [b"a", b"b"]) == [b"1", None]
    assert maps.get("other", b"a") == b"3"
    assert list(maps.items("one")) == [(b"a", b"1")]


def test_the_fast_way_is_taken_where_pyspark_has_it() -> None:
    assert isinstance(opened_state(Handle(WITH_CLIENT), ["s"]), StateChannel)  # type: ignore[arg-type]


def test_the_public_way_is_taken_on_request() -> None:
    assert isinstance(opened_state(Handle(WITH_CLIENT), ["s"], public_only=True), StateMaps)  # type: ignore[arg-type]


@pytest.mark.parametrize("client", [None, SimpleNamespace()])
def test_the_public_way_is_taken_without_pysparks_client_or_its_socket(client: Any) -> None:
    assert isinstance(opened_state(Handle(client), ["s"]), StateMaps)  # type: ignore[arg-type]


def test_the_public_way_is_taken_without_the_message_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MESSAGES, None)
    assert isinstance(opened_state(Handle(WITH_CLIENT), ["s"]), StateMaps)  # type: ignore[arg-type]


def test_the_public_way_is_taken_with_other_message_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

    monkeypatch.setattr(messages, "GetValue", messages.Exists)
    assert isinstance(opened_state(Handle(WITH_CLIENT), ["s"]), StateMaps)  # type: ignore[arg-type]
