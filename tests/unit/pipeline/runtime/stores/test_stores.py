"""Stores are fed batch by batch, each once, and are read as Kafka's are."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from moldau.pipeline.cores.records import ValueAndTimestamp
from moldau.pipeline.ir.nodes import Materialization
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.runtime.stores.queryable import QueryableStore, Shape
from moldau.pipeline.runtime.stores.views import StoreViews, UnknownStoreError
from moldau.serdes.plain import LongSerde, StringSerde
from moldau.serdes.windowed import Window, Windowed

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", HEADERS),
        ("partition", pa.int32()),
    ]
)


def queryable(name: str, shape: Shape, retention_ms: int | None = None) -> QueryableStore:
    table = Materialization(
        store=name, key_serde=StringSerde(), value_serde=LongSerde(), is_queryable=True, retention_ms=retention_ms
    )
    return QueryableStore(name, shape, table)


STORES = {
    store.name: store
    for store in (
        queryable("counts", Shape.KEY_VALUE),
        queryable("windows", Shape.WINDOW, 100),
        queryable("sessions", Shape.SESSION, 100),
    )
}


def change(  # noqa: PLR0917, columns in their order
    store: str, key: str, value: int | None, time: int | None = 0, window: Any = None, partition: int = 0
) -> Any:
    headers = None if window is None else [{"key": "window", "value": struct.pack(">qq", *window)}]
    data = None if value is None else struct.pack(">q", value)
    return (store, key.encode(), data, time, headers, partition)


def rows(*changes: Any) -> list[tuple[str, pa.Table]]:
    """The changes of each store, as a batch brings them."""
    stores = dict.fromkeys(store for store, *_ in changes)
    return [(store, _table([change for name, *change in changes if name == store])) for store in stores]


def _table(changes: list[list[Any]]) -> pa.Table:
    columns = zip(*changes, strict=True)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


class Stores:
    """Both sides of one file."""

    def __init__(self, path: Path) -> None:
        self.database = StoreDatabase(path, STORES)
        self.database.open()
        self.views = StoreViews(path, STORES, "app")
        self._batch = -1

    def apply(self, *changes: Any) -> None:
        self._batch += 1
        self.database.apply("checkpoint", self._batch, rows(*changes))


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = Stores(tmp_path / "stores of mine?.sqlite")
    yield opened
    opened.views.close()
    opened.database.close()


def test_the_last_change_of_a_key_counts(stores: Stores) -> None:
    stores.apply(change("counts", "a", 1, 10), change("counts", "b", 1, 11), change("counts", "a", 2, 12))
    stores.apply(change("counts", "b", None))
    view = stores.views.store("counts")

    assert (view.get("a"), view.get("b"), view.get("c")) == (2, None, None)
    assert view.get_with_timestamp("a") == ValueAndTimestamp(2, 12)
    assert view.approximate_num_entries() == 1


def test_keys_come_in_the_order_of_their_bytes(stores: Stores) -> None:
    stores.apply(*(change("counts", key, number) for number, key in enumerate(["b", "a", "ab", "é", "c"])))
    view = stores.views.store("counts")

    assert list(view.all()) == [("a", 1), ("ab", 2), ("b", 0), ("c", 4), ("é", 3)]
    assert list(view.reverse_all()) == list(view.all())[::-1]
    assert list(view.range("ab", "b")) == [("ab", 2), ("b", 0)]
    assert list(view.range(None, "ab")) == [("a", 1), ("ab", 2)]
    assert list(view.reverse_range("b", None)) == [("é", 3), ("c", 4), ("b", 0)]
    assert list(view.prefix_scan(b"a")) == [("a", 1), ("ab", 2)]


def test_a_batch_that_comes_again_changes_nothing(stores: Stores) -> None:
    stores.database.apply("checkpoint", 4, rows(change("counts", "a", 1)))
    stores.database.apply("checkpoint", 4, rows(change("counts", "a", 99)))
    stores.database.apply("checkpoint", 3, rows(change("counts", "a", 98)))

    assert stores.views.store("counts").get("a") == 1
    assert stores.database.last_batch("checkpoint") == 4
    assert stores.database.last_batch("another") is None


def test_a_batch_without_changes_is_remembered(stores: Stores) -> None:
    stores.database.apply("checkpoint", 0, rows())

    assert stores.database.last_batch("checkpoint") == 0


def test_changes_of_unknown_stores_are_passed_over(stores: Stores) -> None:
    stores.apply(change("nobody's", "a", 1), change("counts", "a", 5))

    assert list(stores.views.store("counts").all()) == [("a", 5)]


def test_windows_are_found_by_key_and_time(stores: Stores) -> None:
    stores.apply(
        *(change("windows", "a", start, start, (start, start + 10)) for start in (0, 10, 20)),
        change("windows", "b", 7, 10, (10, 20)),
    )
    view = stores.views.store("windows")

    assert view.fetch_at("a", 10) == 10
    assert view.fetch_at("a", 5) is None
    assert list(view.fetch("a", 5, 20)) == [(10, 10), (20, 20)]
    assert list(view.backward_fetch("a")) == [(20, 20), (10, 10), (0, 0)]
    assert list(view.fetch_all(10, 10)) == [
        (Windowed("a", Window(10, 20)), 10),
        (Windowed("b", Window(10, 20)), 7),
    ]
    assert list(view.fetch_key_range("b", None, 0, 99)) == [(Windowed("b", Window(10, 20)), 7)]
    assert [windowed.window.start for windowed, _ in view.all()] == [0, 10, 10, 20]


def test_a_window_leaves_when_its_partitions_time_has_passed_it(stores: Stores) -> None:
    stores.apply(
        change("windows", "a", 1, 0, (0, 10), 0),
        change("windows", "b", 1, 0, (0, 10), 1),
        change("windows", "a", 1, 10, (10, 20), 0),
    )
    stores.apply(change("windows", "a", 1, 100, (100, 110), 0))
    view = stores.views.store("windows")

    assert [start for start, _ in view.fetch("a")] == [10, 100]
    assert [start for start, _ in view.fetch("b")] == [0]


def test_sessions_are_found_by_key(stores: Stores) -> None:
    stores.apply(change("sessions", "a", 1, 5, (5, 5)), change("sessions", "a", 1, 9, (9, 9)))
    stores.apply(
        change("sessions", "a", None, None, (5, 5)),
        change("sessions", "a", None, None, (9, 9)),
        change("sessions", "a", 2, 9, (5, 9)),
        change("sessions", "b", 3, 2, (1, 2)),
    )
    view = stores.views.store("sessions")

    assert list(view.fetch("a")) == [(Windowed("a", Window(5, 9)), 2)]
    assert view.fetch_session("b", 1, 2) == 3
    assert list(view.find_sessions("a", 10, 20)) == []
    assert [windowed.key for windowed, _ in view.all()] == ["a", "b"]


def test_an_unknown_store_is_told_with_those_there_are(stores: Stores) -> None:
    with pytest.raises(UnknownStoreError, match="counts, sessions, windows"):
        stores.views.store("nothing")


def test_a_pipeline_that_never_started_has_nothing_to_tell(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match="has not started yet"):
        StoreViews(tmp_path / "none.sqlite", STORES, "app").store("counts").get("a")


def test_other_threads_read_while_batches_come(stores: Stores) -> None:
    stores.apply(change("counts", "a", 0))
    found: list[int] = []

    def read() -> None:
        view = stores.views.store("counts")
        while not found or found[-1] < 50:
            found.append(view.get("a"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 51):
        stores.apply(change("counts", "a", number))
    reader.join(10)

    assert found == sorted(found)
    assert found[-1] == 50


def test_beginning_anew_forgets_everything(stores: Stores) -> None:
    stores.apply(change("counts", "a", 1))

    stores.database.clear()

    assert list(stores.views.store("counts").all()) == []
    assert stores.database.last_batch("checkpoint") is None


@pytest.mark.parametrize(
    ("store", "method", "advice"),
    [
        ("counts", "fetch", "KeyValueView has no fetch; this is a key-value store: use get"),
        ("windows", "get", "WindowView has no get; this is a window store: use fetch"),
        ("sessions", "get", "SessionView has no get; this is a session store: use fetch"),
    ],
)
def test_a_view_that_is_asked_like_another_kind_says_how(tmp_path: Path, store: str, method: str, advice: str) -> None:
    views = StoreViews(tmp_path / "stores.sqlite", STORES, "app")

    with pytest.raises(AttributeError, match=advice):
        getattr(views.store(store), method)
