"""Processors a case may name, each with a twin of the same name in java/oracle/Processors.java.

Start at `processor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.oracle.streams.functions import clip, digest, text

from moldau.streams import PunctuationType, Record, ValueAndTimestamp, Window, Windowed

__all__ = ["annotate", "filler", "processor", "transformer"]

Spec = Mapping[str, Any]
TICKS = "#ticks"


def processor(spec: Spec) -> Callable[[], _Processor]:
    """A supplier of the processor a case names."""
    kind = _KINDS[spec["processor"]]
    return lambda: kind(spec)


def filler(spec: Spec) -> Callable[[], _Processor]:
    """A supplier of the one processor that fills global stores."""
    return lambda: _Fill(spec)


def annotate(spec: Spec) -> Callable[[], _Processor]:
    """A supplier of the one processor that changes values only."""
    return lambda: _Annotate(spec)


def transformer(spec: Spec) -> Callable[[], _Processor]:
    """A supplier of the one transformer of tables."""
    return lambda: _Numbered(spec)


class _Processor:
    """Knows its case, its context and the first store it was given."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.context: Any = None
        self.store: Any = None

    def init(self, context: Any) -> None:
        self.context = context
        if self.spec.get("stores"):
            self.store = context.get_state_store(self.spec["stores"][0])

    def process(self, record: Record) -> None:
        raise NotImplementedError

    def forward(self, record: Record, **changed: Any) -> None:
        self.context.forward(record._replace(**changed))


class _Changed(_Processor):
    """Passes on what differs from the last value of the key."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        before = self.store.get(record.key)
        if record.value is None:
            self.store.delete(record.key)
        else:
            self.store.put(record.key, record.value)
        if text(before) != text(record.value):
            self.forward(record, value=clip(f"{text(before)}>{text(record.value)}"))


class _Stamp(_Processor):
    """Moves the timestamp, adds a header, and tells where the record came from and what time it is."""

    def process(self, record: Record) -> None:
        place = self.context.record_metadata()
        value = f"{text(record.value)}^{place.topic}{place.offset}^{self.context.current_stream_time_ms()}"
        timestamp = max(0, record.timestamp + self.spec.get("shift", 0))
        headers = (*record.headers, ("stamp", text(record.key).encode()))
        self.forward(record, value=clip(value), timestamp=timestamp, headers=headers)


class _Twice(_Processor):
    """Every record under its own key and then under the key "all"."""

    def process(self, record: Record) -> None:
        self.forward(record)
        self.forward(record, key="all", timestamp=record.timestamp + 1)


class _Tick(_Processor):
    """Counts by key, and tells all counts at every tick of stream time or of the wall clock."""

    def init(self, context: Any) -> None:
        super().init(context)
        is_wall_clock = self.spec["clock"] == "wall"
        kind = PunctuationType.WALL_CLOCK_TIME if is_wall_clock else PunctuationType.STREAM_TIME
        self._schedule = context.schedule(self.spec["interval"], kind, self._tick)

    def process(self, record: Record) -> None:
        key = "none" if record.key is None else record.key
        before = self.store.get(key)
        self.store.put(key, clip(("" if before is None else f"{before},") + text(record.value)))

    def _tick(self, timestamp: int) -> None:
        # How often it ticked is kept with the rest, so that a task made anew goes on counting.
        ticks = 1 + int(self.store.get(TICKS) or 0)
        for key, value in list(self.store.all()):
            if key == TICKS:
                continue
            self.context.forward(Record(key, clip(f"{value}!{timestamp}"), timestamp))
            if digest(key, value) % 3 == 0:
                self.store.delete(key)
        self.store.put(TICKS, str(ticks))
        if "limit" in self.spec and ticks >= self.spec["limit"]:
            self._schedule.cancel()


class _Neighbours(_Processor):
    """What a window store holds of the key near the record's time, forwards and backwards, and of all keys."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        first, last = max(0, record.timestamp - self.spec["reach"]), record.timestamp + self.spec["reach"]
        self.store.put(record.key, record.value, record.timestamp)
        near = [f"{start}={value} " for start, value in self.store.fetch(record.key, first, last)]
        backward = [f"{start} " for start, _ in self.store.backward_fetch(record.key, first, last)]
        # Their order depends on how the store lies on disk, so it is not compared.
        every = sorted(f"{windowed.key}{windowed.window.start} " for windowed, _ in self.store.fetch_all(first, last))
        between = self.store.fetch_key_range(None, record.key, first, last) if first % 2 else ()
        between = self.store.fetch_key_range(record.key, None, first, last) if first % 3 == 0 else between
        every += sorted(f"{windowed.key}{windowed.window.start};" for windowed, _ in between)
        # By the exact time, Kafka Streams finds only the value put last where a store has room for several.
        at_first = "" if self.spec["duplicates"] else text(self.store.fetch_at(record.key, first))
        self.forward(record, value="".join([*near, "<", *backward, "*", *every, ".", at_first]))


class _Sessions(_Processor):
    """Sessions by hand: those near the record are merged into one."""

    def process(self, record: Record) -> None:
        if record.key is None or record.value is None:
            return
        start = end = record.timestamp
        reach, merged, old = self.spec["reach"], "", []
        for windowed, value in self.store.find_sessions(record.key, max(0, start - reach), end + reach):
            start, end = min(start, windowed.window.start), max(end, windowed.window.end)
            merged += f"{value}+"
            old.append(windowed)
        for windowed in old:
            self.store.remove(windowed)
        self.store.put(Windowed(record.key, Window(start, end)), clip(merged + text(record.value)))
        every = [f"{text(windowed)}={value} " for windowed, value in self.store.fetch(record.key)]
        self.forward(record, value="".join(every))


class _Previous(_Processor):
    """The value before and when it was written, from a store that keeps timestamps."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        before = self.store.get(record.key)
        after = None if record.value is None else ValueAndTimestamp(record.value, record.timestamp)
        self.store.put(record.key, after)
        told = "none" if before is None else f"{before.value}@{before.timestamp}"
        self.forward(record, value=clip(f"{told}>{text(record.value)}"))


class _Ranges(_Processor):
    """Ranges of a key-value store, both ways, and what is put only where nothing was."""

    def process(self, record: Record) -> None:
        key = "none" if record.key is None else record.key
        found = f"{text(self.store.put_if_absent(key, record.value))}>"
        found += "".join(each for each, _ in self.store.range("b", key))
        found += "<" + "".join(each for each, _ in self.store.reverse_all())
        if digest(key, record.value) % 4 == 0:
            found += f"-{text(self.store.delete(key))}"
        self.forward(record, key=key, value=found)


class _Lookup(_Processor):
    """What a table's own store says about the key at that moment."""

    def process(self, record: Record) -> None:
        row = None if record.key is None else self.store.get(record.key)
        told = "none" if row is None else f"{row.value}@{row.timestamp}"
        self.forward(record, value=clip(f"{told}?{text(record.value)}"))


class _Fill(_Processor):
    """Puts what a global topic says into its store: the last two values of a key, or nothing after a null."""

    def process(self, record: Record) -> None:
        store = self.context.get_state_store(self.spec["store"])
        key = "nobody" if record.key is None else record.key
        news = f"{record.value}/{self.context.record_metadata().topic}/{len(record.headers)}"
        before = store.get(key)
        if record.value is None:
            store.put(key, None)
        elif self.spec["kind"] == "timestamped":
            value = self._joined(None if before is None else before.value, news)
            store.put(key, ValueAndTimestamp(value, record.timestamp))
        else:
            store.put(key, self._joined(before, news))

    @staticmethod
    def _joined(before: Any, news: str) -> str:
        return clip(f"{text(before).rpartition(';')[2]};{news}")


class _Consult(_Processor):
    """What a global store knows of the key at that moment, and how many keys it knows."""

    def process(self, record: Record) -> None:
        store = self.context.get_state_store(self.spec["global"])
        row = store.get("nobody" if record.key is None else record.key)
        told = f"{row.value}@{row.timestamp}" if isinstance(row, ValueAndTimestamp) else text(row)
        self.forward(record, value=clip(f"{told}?{text(record.value)}#{len(list(store.all()))}"))


class _Numbered(_Processor):
    """Values of a table with the number of times the key was seen, where there is a store to count in."""

    def transform(self, key: Any, value: Any) -> str | None:
        if value is None:
            return None
        if self.store is None:
            return clip(f"{text(key)}~{text(value)}")
        seen = 1 + int(self.store.get(text(key)) or 0)
        self.store.put(text(key), str(seen))
        return clip(f"{text(value)}#{seen}")


class _Annotate(_Processor):
    """Keeps the key: a value with the number of headers and the key's text, and a header more."""

    def process(self, record: Record) -> None:
        value = f"{text(record.value)}/{len(record.headers)}"
        if self.store is not None:
            value += f"/{text(self.store.get('last'))}"
            self.store.put("last", text(record.key))
        headers = (*record.headers, ("note", text(record.key).encode()))
        self.forward(record, value=clip(value), headers=headers)


_KINDS: dict[str, type[_Processor]] = {
    "changed": _Changed,
    "stamp": _Stamp,
    "twice": _Twice,
    "tick": _Tick,
    "neighbours": _Neighbours,
    "sessions": _Sessions,
    "previous": _Previous,
    "ranges": _Ranges,
    "lookup": _Lookup,
    "consult": _Consult,
}
