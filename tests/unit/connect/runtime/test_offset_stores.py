from __future__ import annotations

from pathlib import Path

import pytest

from moldau.connect.api.errors import ConnectError
from moldau.connect.runtime.offset_stores import OffsetFile, StoredOffsets, decode_key, encode_key


def test_a_key_is_the_same_whatever_the_order_of_its_partition() -> None:
    assert encode_key("c", {"b": 1, "a": 2}) == encode_key("c", {"a": 2, "b": 1}) == b'["c",{"a":2,"b":1}]'
    assert decode_key(b'["c",{"a":2}]') == ("c", {"a": 2})
    assert decode_key(b"nonsense") is None


def test_a_file_keeps_offsets_of_each_connector(tmp_path: Path) -> None:
    file = OffsetFile(tmp_path / "deep" / "offsets")
    one, two = encode_key("one", {"p": 1}), encode_key("two", {"p": 1})
    file.update({one: {"n": 1}, two: {"n": 2}})
    file.update({two: {"n": 3}})
    assert file.of("two") == {two: {"n": 3}}
    assert StoredOffsets("one", file.of("one")).offsets([{"p": 1}, {"p": 9}]) == [{"n": 1}, None]
    file.update({one: None})
    assert OffsetFile(file.path).load() == {two: {"n": 3}}


def test_a_file_of_java_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "connect.offsets"
    path.write_bytes(b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap")
    with pytest.raises(ConnectError, match=r"offset\.storage\.file\.filename"):
        OffsetFile(path).load()
