from __future__ import annotations

import pytest

from moldau.log.cleaning.offset_map import DictOffsetMap, OffsetMap, PackedOffsetMap, offset_map_for

MAPS = [lambda: DictOffsetMap(100), lambda: PackedOffsetMap(200)]


@pytest.mark.parametrize("make", MAPS)
def test_the_newest_offset_of_a_key_is_remembered(make: type[OffsetMap]) -> None:
    newest = make()
    for offset in range(300):
        assert newest.put(b"key-%d" % (offset % 100), offset)
    assert [newest.get(b"key-%d" % key) for key in range(100)] == list(range(200, 300))
    assert newest.get(b"other") == -1
    assert len(newest) == 100


@pytest.mark.parametrize("make", MAPS)
def test_long_keys_with_a_common_beginning_are_told_apart(make: type[OffsetMap]) -> None:
    newest = make()
    newest.put(b"x" * 500 + b"1", 1)
    newest.put(b"x" * 500 + b"2", 2)
    newest.put(b"", 3)
    assert (newest.get(b"x" * 500 + b"1"), newest.get(b"x" * 500 + b"2"), newest.get(b"")) == (1, 2, 3)


@pytest.mark.parametrize("make", [lambda: DictOffsetMap(2), lambda: PackedOffsetMap(3, 0.9)])
def test_a_full_map_takes_known_keys_only(make: type[OffsetMap]) -> None:
    newest = make()
    assert newest.put(b"a", 1)
    assert newest.put(b"b", 2)
    assert not newest.put(b"c", 3)
    assert newest.put(b"a", 4)
    assert (newest.get(b"a"), newest.get(b"c")) == (4, -1)


def test_few_records_get_the_fast_form_and_many_the_dense_one() -> None:
    assert isinstance(offset_map_for(1_000, 1_000_000), DictOffsetMap)
    dense = offset_map_for(1_000_000, 1_000_000)
    assert isinstance(dense, PackedOffsetMap)
    assert 30_000 < dense.capacity < 42_000


def test_there_is_room_for_one_key_however_small_the_budget() -> None:
    assert offset_map_for(10, 0).put(b"a", 1)
    assert offset_map_for(0, 0).put(b"a", 1)
