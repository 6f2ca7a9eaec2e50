"""Stores over a backend: what they read and write of it, order, retention, and nothing shared with users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp, Window, Windowed
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.key_value_store import KeyValueStore, TimestampedStore
from moldau.pipeline.cores.stores.session_store import SessionStore
from moldau.pipeline.cores.stores.store import Codec, codec_of
from moldau.pipeline.cores.stores.window_store import DuplicatesWindowStore, TimestampedWindowStore, WindowStore
from moldau.pipeline.cores.stores.write_back import WriteBack
from moldau.pipeline.ir.nodes import Materialization
from moldau.serdes.plain import JsonSerde, StringSerde
from moldau.serdes.serde import Serde


def codec(value_serde: Serde | None = None) -> Codec:
    table = Materialization(store="s", key_serde=StringSerde(), value_serde=value_serde or StringSerde())
    return codec_of(table, "changelog")


class CountingBackend(MemoryBackend):
    """A backend that knows how often it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0
        self.scans = 0

    def get(self, key: bytes, /) -> bytes | None:
        self.gets += 1
        return super().get(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        for item in super().items():
            self.scans += 1
            yield item


def windows(backend: MemoryBackend, observed: Cell, kind: type[WindowStore] = WindowStore, **options: Any) -> Any:
    given = {"retention_ms": 100_000, "window_size_ms": 10} | options
    return kind("w", backend, codec(), observed=observed, **given)


def sessions(backend: MemoryBackend, observed: Cell, retention_ms: int = 100_000) -> SessionStore:
    return SessionStore("s", backend, codec(), observed=observed, retention_ms=retention_ms)


def session(key: str, start: int, end: int) -> Windowed:
    return Windowed(key, Window(start, end))


# --- key-value stores


def test_a_store_of_an_empty_backend_never_asks_it() -> None:
    backend = CountingBackend()
    store = KeyValueStore("s", backend, codec())
    for number in range(10):
        assert store.get(str(number)) is None
        store.put(str(number), "x")
    store.flush()

    assert store.get("never put") is None
    assert backend.gets == 0


def test_a_store_asks_a_full_backend_once_for_each_key_it_needs() -> None:
    backend = CountingBackend()
    first = KeyValueStore("s", backend, codec())
    first.put_all([(str(number), "x") for number in range(100)])
    first.flush()

    second = KeyValueStore("s", backend, codec())
    for _ in range(3):
        assert second.get("7") == "x"
        assert second.get("absent") is None

    assert backend.gets == 2
    assert backend.scans == 0


def test_iteration_is_in_byte_order_and_of_this_moment() -> None:
    store = KeyValueStore("s", MemoryBackend(), codec())
    store.put_all([(key, key.upper()) for key in ["b", "a", "ä", "ab"]])
    everything = store.all()
    store.delete("a")

    assert list(everything) == [("a", "A"), ("ab", "AB"), ("b", "B"), ("ä", "Ä")]
    assert list(store.range("ab", "b")) == [("ab", "AB"), ("b", "B")]
    assert list(store.reverse_range(None, "b")) == [("b", "B"), ("ab", "AB")]
    assert next(store.reverse_all()) == ("ä", "Ä")
    assert list(store.prefix_scan(b"a")) == [("ab", "AB")]
    assert store.approximate_num_entries() == 3


def test_iteration_sees_what_is_flushed_what_is_not_and_no_deleted_entries() -> None:
    backend = MemoryBackend()
    store = KeyValueStore("s", backend, codec())
    store.put_all([("a", "1"), ("b", "2")])
    store.flush()

    again = KeyValueStore("s", backend, codec())
    again.put("c", "3")
    again.delete("a")

    assert list(again.all()) == [("b", "2"), ("c", "3")]
    again.flush()
    assert sorted(backend.entries) == [b"b", b"c"]


def test_a_mutable_value_is_never_shared_with_the_store() -> None:
    store = KeyValueStore("s", MemoryBackend(), codec(JsonSerde()))
    given = {"list": [1]}
    store.put("a", given)
    given["list"].append(2)
    store.get("a")["list"].append(3)

    assert store.get("a") == {"list": [1]}


def test_put_if_absent_and_delete_tell_what_was_there() -> None:
    store = KeyValueStore("s", MemoryBackend(), codec())

    assert store.put_if_absent("a", "1") is None
    assert store.put_if_absent("a", "2") == "1"
    assert store.delete("a") == "1"
    assert store.delete("a") is None


def test_timestamps_survive_the_backend() -> None:
    for serde in (StringSerde(), JsonSerde()):
        backend = MemoryBackend()
        store = TimestampedStore("s", backend, codec(serde))
        store.put("a", ValueAndTimestamp("x", 7))
        store.put_row(b"b", "y", 8)
        store.flush()

        again = TimestampedStore("s", backend, codec(serde))
        assert list(again.all()) == [("a", ("x", 7)), ("b", ("y", 8))]
        assert again.row(b"b") == ValueAndTimestamp("y", 8)


def test_a_queryable_store_tells_what_it_wrote() -> None:
    store = TimestampedStore("s", MemoryBackend(), codec())
    store.is_queryable = True
    store.put_row(b"a", "x", 7)
    store.put_row(b"b", "y", 8)
    store.put_row(b"b", None, 9)

    assert sorted(store.flush()) == [(b"a", b"x", 7, None), (b"b", None, None, None)]
    assert store.flush() == []


def test_a_cache_that_grew_too_large_forgets_what_the_backend_knows() -> None:
    backend = MemoryBackend()
    cache = WriteBack(backend, bytes, bytes, capacity=2)
    for key in (b"a", b"b", b"c"):
        cache.put(key, key)
    cache.flush()

    assert len(cache.entries) == 2
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [b"a", b"b", b"c"]
    assert cache.get(b"d") is None


# --- window stores


def test_windows_are_fetched_by_key_and_by_time() -> None:
    store = windows(MemoryBackend(), Cell("t", -1))
    for key, start in [("b", 0), ("a", 20), ("a", 0), ("a", 10)]:
        store.put(key, f"{key}{start}", start)

    assert store.fetch_at("a", 10) == "a10"
    assert store.fetch_at("b", 10) is None
    assert list(store.fetch("a", 0, 10)) == [(0, "a0"), (10, "a10")]
    assert list(store.backward_fetch("a", 5, 99)) == [(20, "a20"), (10, "a10")]
    assert [(windowed.key, windowed.window) for windowed, _ in store.fetch_all(0, 10)] == [
        ("a", (0, 10)),
        ("b", (0, 10)),
        ("a", (10, 20)),
    ]
    assert [value for _, value in store.fetch_key_range("b", None, 0, 99)] == ["b0"]


def test_a_deleted_window_is_gone_and_can_come_back() -> None:
    store = windows(MemoryBackend(), Cell("t", -1))
    store.put("a", "x", 0)
    list(store.fetch("a", 0, 99))
    store.put("a", None, 0)

    assert list(store.fetch("a", 0, 99)) == []
    store.flush()
    store.put("a", "y", 0)
    assert list(store.fetch("a", 0, 99)) == [(0, "y")]


def test_a_window_is_out_of_view_the_moment_its_retention_is_over() -> None:
    store = windows(MemoryBackend(), Cell("t", -1))
    store.put("a", "x", 0)
    store.put("b", "x", 99_999)
    assert store.fetch_at("a", 0) == "x"

    store.put("b", "x", 100_000)
    assert store.fetch_at("a", 0) is None
    assert list(store.fetch("a", 0, 10**9)) == []
    assert [windowed.key for windowed, _ in store.all()] == ["b", "b"]


def test_a_window_that_emits_at_close_is_seen_a_moment_longer() -> None:
    store = windows(MemoryBackend(), Cell("t", -1), shown_ms=100_000)
    store.put("a", "x", 0)
    store.put("b", "x", 100_000)

    assert store.fetch_at("a", 0) == "x"


def test_a_window_is_not_written_once_its_segment_is_gone() -> None:
    observed = Cell("t", -1)
    store = windows(MemoryBackend(), observed, kind=TimestampedWindowStore)

    assert store.put_row(170_000, b"a", "x", 170_000)
    assert store.put_row(60_000, b"a", "old but alive", 0)
    assert not store.put_row(59_999, b"a", "too old", 0)


def test_expired_windows_leave_the_backend() -> None:
    backend = MemoryBackend()
    store = windows(backend, Cell("t", -1))
    store.put("a", "x", 0)
    store.flush()
    store.put("a", "x", 170_000)
    store.flush()

    assert len(backend.entries) == 1


def test_a_window_store_made_anew_goes_on_and_reads_no_more_than_it_must() -> None:
    backend, observed = CountingBackend(), Cell("t", -1)
    store = windows(backend, observed)
    for start in range(0, 100, 10):
        store.put("a", str(start), start)
    store.flush()

    again = windows(backend, observed)
    assert again.fetch_at("a", 50) == "50"
    assert again.fetch_at("a", 100) is None
    assert (backend.gets, backend.scans) == (1, 0)
    assert [value for _, value in again.fetch("a", 70, 99)] == ["70", "80", "90"]


def test_duplicates_are_kept_where_asked_for() -> None:
    backend, observed = MemoryBackend(), Cell("t", -1)
    store = windows(backend, observed, kind=DuplicatesWindowStore)
    store.put("a", "x", 0)
    store.put("a", "x", 0)
    store.put("a", None, 0)
    store.flush()

    again = windows(backend, observed, kind=DuplicatesWindowStore)
    again.put("a", "y", 0)
    assert list(again.fetch("a", 0, 9)) == [(0, "x"), (0, "x"), (0, "y")]
    assert again.fetch_at("a", 0) == "x"


# --- session stores


def test_sessions_are_found_by_overlap_and_told_by_end() -> None:
    store = sessions(MemoryBackend(), Cell("t", -1))
    for start, end in [(30, 40), (0, 10), (0, 5), (20, 25)]:
        store.put(session("a", start, end), f"{start}-{end}")
    store.put(session("b", 0, 100), "other")

    assert [value for _, value in store.find_sessions("a", 10, 20)] == ["0-10", "20-25"]
    assert [value for _, value in store.fetch("a")] == ["0-5", "0-10", "20-25", "30-40"]
    assert store.fetch_session("a", 0, 10) == "0-10"
    assert store.fetch_session("a", 0, 11) is None
    store.remove(session("a", 0, 10))
    assert store.fetch_session("a", 0, 10) is None


def test_sessions_survive_the_backend_key_by_key() -> None:
    backend, observed = CountingBackend(), Cell("t", -1)
    store = sessions(backend, observed)
    for key in "abc":
        store.put(session(key, 0, 10), key)
        store.put(session(key, 20, 30), key * 2)
    store.flush()

    again = sessions(backend, observed)
    assert list(again.fetch("b")) == [(session("b", 0, 10), "b"), (session("b", 20, 30), "bb")]
    assert backend.gets == 1
    assert len(list(again.all())) == 6


def test_sessions_expire_by_their_end() -> None:
    backend = MemoryBackend()
    store = sessions(backend, Cell("t", -1))
    store.is_queryable = True
    store.put(session("a", 0, 10), "x")
    store.flush()
    store.put(session("b", 0, 100_010), "y")
    assert list(store.fetch("a")) == []
    assert backend.entries

    store.put(session("b", 0, 200_000), "z")
    assert (b"a", None, None, (0, 10)) in store.flush()
    assert [key for key in backend.entries if key == b"a"] == []
