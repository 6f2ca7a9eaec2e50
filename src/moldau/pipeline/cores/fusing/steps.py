"""The lines that each processor adds to a fused loop. A processor without an entry in `STEPS` is not fused.

Each step does what the `process` method of its processor does, in the same order; `tests/unit/pipeline/cores/fusing`
compares both. Start at `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moldau.pipeline.cores.aggregations.aggregation import AggregateProcessor, CountProcessor
from moldau.pipeline.cores.aggregations.folding import is_count
from moldau.pipeline.cores.aggregations.windowed_aggregation import TimeWindowProcessor
from moldau.pipeline.cores.calls import callable_of, no_pair, not_several
from moldau.pipeline.cores.fusing.emitter import Emitter, Flow, NotFusedError, Part, is_exact
from moldau.pipeline.cores.joins.stream_table_join import StreamTableJoinProcessor
from moldau.pipeline.cores.outputs import RepartitionOutput, SinkProcessor
from moldau.pipeline.cores.partitioning import partition_hash
from moldau.pipeline.cores.processing_log_output import ProcessingLogOutput
from moldau.pipeline.cores.processor import Link, Processor
from moldau.pipeline.cores.records import ValueAndTimestamp, Windowed
from moldau.pipeline.cores.row_nodes import RecordColumnsProcessor
from moldau.pipeline.cores.serialization import encoder
from moldau.pipeline.cores.stateless import (
    FilterProcessor,
    FlatMapProcessor,
    FlatMapValuesProcessor,
    MapProcessor,
    MapValuesProcessor,
    PassThrough,
    PeekProcessor,
    SelectKeyProcessor,
    SplitProcessor,
)
from moldau.pipeline.cores.stores.key_value_store import TimestampedStore
from moldau.pipeline.cores.tables import TableMapValuesProcessor, ToStreamProcessor
from moldau.pipeline.ir.functions import Function
from moldau.serdes.plain import LongSerde
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import TimeWindowedSerde

__all__ = ["Loop"]

_new = tuple.__new__


class Loop:
    """A loop for everything behind one processor."""

    def __init__(
        self, emitter: Emitter, children: Mapping[Processor, Sequence[Link]], log: ProcessingLogOutput
    ) -> None:
        self.emitter = emitter
        self._children = children
        self._log = log

    def step(self, processor: Processor, flow: Flow, *, takes_value: bool = False) -> None:
        """Add a processor with everything behind it; `takes_value` if it gets a table's new value, not a change."""
        add = (VALUE_STEPS if takes_value else STEPS).get(type(processor))
        if add is None:
            raise NotFusedError(f"{processor.node.name} takes records one by one")
        with self.emitter.owned_by(processor, flow):
            add(self, processor, flow)

    def forward(self, processor: Processor, flow: Flow) -> None:
        """Give a record to all children."""
        for link in self._children[processor]:
            self.step(link.processor, flow)

    def forward_values(self, processor: Processor, flow: Flow) -> None:
        """Give a table's new value to all children, none of which needs the change."""
        for link in self._children[processor]:
            if link.take_value is None:
                raise NotFusedError(f"{link.node.name} needs changes")
            self.step(link.processor, flow, takes_value=True)

    def function(self, function: Function, *parameters: str) -> str:
        """The name of a function that is called with these arguments."""
        return self.emitter.bind("call", callable_of(function, *parameters, log=self._log))

    def dropped(self, processor: Processor, reason: str) -> str:
        """The line that counts a dropped record."""
        drop, node = self.emitter.bind("drop", processor.context.drop), self.emitter.bind("node", processor.node)
        return f"{drop}({node}, {reason!r})"

    def unless(self, condition: str | None, otherwise: str, body: Callable[[], None]) -> None:
        """The body, unless the condition holds; None never holds."""
        if condition is None:
            body()
            return
        with self.emitter.block(f"if {condition}:"):
            self.emitter.add(otherwise)
        with self.emitter.block("else:"):
            body()

    def store_key(self, part: Part, serde: Serde, encode: Any) -> str:
        """A variable with the bytes of a key that is not null, as in a store."""
        known = part.data(serde)
        if known is not None and known.isidentifier():
            return known
        return self.emitter.variable(known or f"{self.emitter.bind('encode', encode)}({part.name()})", "data")

    def serialized(self, part: Part, serde: Serde, encode: Any) -> str:
        """An expression for the bytes of a key or value, None for null."""
        known = part.data(serde)
        if known is not None:
            return known
        name = part.name()
        call = f"{self.emitter.bind('encode', encode)}({name})"
        return f"None if {name} is None else {call}" if part.may_be_null else call


def _nulls(*parts: Part) -> str | None:
    """An expression that is true if one of these is null; None if none can be."""
    return " or ".join(part.is_null() for part in parts if part.may_be_null) or None


def _stored(part: Part, serde: Serde, variable: str) -> Part:
    """A key whose bytes in a store are in a variable."""
    if not is_exact(serde) or part.data(serde) is not None:
        return replace(part, may_be_null=False)
    return replace(part, encoded=(*part.encoded, (serde, lambda: variable)), may_be_null=False)


# --- stateless -------------------------------------------------------------------------------------------------


def _pass(loop: Loop, processor: Processor, flow: Flow) -> None:
    loop.forward(processor, flow)


def _record_columns(loop: Loop, processor: Any, flow: Flow) -> None:
    node, emitter = processor.node, loop.emitter
    if node.headers:
        raise NotFusedError("it reads headers")
    no_key = emitter.bind("no_key", processor.no_key)
    key = flow.key.name()
    of_key = f"(*{key}[0], *{key}[1])" if node.has_window else f"(*{key},)"
    if flow.key.may_be_null:
        of_key = f"({no_key} if {key} is None else {of_key})"
    place = f"({flow.timestamp}, {emitter.column('partition')}, {emitter.column('offset')})"
    value = flow.value.name()
    row = emitter.variable(f"None if {value} is None else {value} + {place} + {of_key}", "value")
    loop.forward(processor, replace(flow, value=Part(row, may_be_null=flow.value.may_be_null)))


def _filter(loop: Loop, processor: Any, flow: Flow) -> None:
    holds = loop.function(processor.node.predicate, "key", "value")
    negation = "not " if processor.node.is_negated else ""
    with loop.emitter.block(f"if {negation}{holds}({flow.key.name()}, {flow.value.name()}):"):
        loop.emitter.add("pass")
        loop.forward(processor, flow)


def _map_values(loop: Loop, processor: Any, flow: Flow) -> None:
    made = loop.emitter.variable(_mapped(loop, processor.node, flow), "value")
    loop.forward(processor, replace(flow, value=Part(made)))


def _mapped(loop: Loop, node: Any, flow: Flow) -> str:
    if node.has_key:
        mapper = loop.function(node.mapper, "key", "value")
        return f"{mapper}({flow.key.name()}, {flow.value.name()})"
    return f"{loop.function(node.mapper, 'value')}({flow.value.name()})"


def _map(loop: Loop, processor: Any, flow: Flow) -> None:
    mapper = loop.function(processor.node.mapper, "key", "value")
    pair = loop.emitter.variable(f"{mapper}({flow.key.name()}, {flow.value.name()})", "pair")
    key, value = _unpack_pair(loop, pair)
    loop.forward(processor, Flow(Part(key), Part(value), flow.timestamp))


def _unpack_pair(loop: Loop, pair: str) -> tuple[str, str]:
    emitter = loop.emitter
    key, value = emitter.new("key"), emitter.new("value")
    with emitter.block("try:"):
        emitter.add(f"{key}, {value} = {pair}")
    with emitter.block("except (TypeError, ValueError):"):
        emitter.add(f"raise {emitter.bind('no_pair', no_pair)}({pair}) from None")
    return key, value


def _several(loop: Loop, made: str) -> str:
    emitter, results = loop.emitter, loop.emitter.new("results")
    with emitter.block("try:"):
        emitter.add(f"{results} = iter({made})")
    with emitter.block("except TypeError:"):
        emitter.add(f"raise {emitter.bind('not_several', not_several)}({made}) from None")
    return results


def _flat_map(loop: Loop, processor: Any, flow: Flow) -> None:
    mapper = loop.function(processor.node.mapper, "key", "value")
    made = loop.emitter.variable(f"{mapper}({flow.key.name()}, {flow.value.name()})", "made")
    results, pair = _several(loop, made), loop.emitter.new("pair")
    with loop.emitter.block(f"for {pair} in {results}:"):
        key, value = _unpack_pair(loop, pair)
        loop.forward(processor, Flow(Part(key), Part(value), flow.timestamp))


def _flat_map_values(loop: Loop, processor: Any, flow: Flow) -> None:
    made = loop.emitter.variable(_mapped(loop, processor.node, flow), "made")
    results, value = _several(loop, made), loop.emitter.new("value")
    with loop.emitter.block(f"for {value} in {results}:"):
        loop.emitter.add("pass")
        loop.forward(processor, replace(flow, value=Part(value)))


def _select_key(loop: Loop, processor: Any, flow: Flow) -> None:
    selector = loop.function(processor.node.selector, "key", "value")
    key = loop.emitter.variable(f"{selector}({flow.key.name()}, {flow.value.name()})", "key")
    loop.forward(processor, replace(flow, key=Part(key)))


def _peek(loop: Loop, processor: Any, flow: Flow) -> None:
    action = loop.emitter.bind("action", processor.node.action.call)
    loop.emitter.add(f"{action}({flow.key.name()}, {flow.value.name()})")
    loop.forward(processor, flow)


def _split(loop: Loop, processor: Any, flow: Flow) -> None:
    predicates = processor.node.predicates
    links = loop._children[processor]
    given = f"({flow.key.name()}, {flow.value.name()})"
    for index in range(len(predicates) + 1):
        if index < len(predicates):
            line = f"{'if' if index == 0 else 'elif'} {loop.function(predicates[index], 'key', 'value')}{given}:"
        else:
            line = "else:"
        with loop.emitter.block(line):
            loop.emitter.add("pass")
            for link in links:
                if getattr(link.node, "index", None) == index:
                    loop.step(link.processor, flow)


def _to_stream(loop: Loop, processor: Any, flow: Flow) -> None:
    if processor.node.selector is not None:
        _select_key(loop, processor, flow)
    else:
        loop.forward(processor, flow)


# --- with state ------------------------------------------------------------------------------------------------


def _count(loop: Loop, processor: Any, flow: Flow) -> None:
    if processor.is_caching or processor.take_new_value is None:
        raise NotFusedError("its changes are held back, or have old values")
    emitter, store = loop.emitter, processor.context.timestamped_store(processor.node.table)
    serde = processor.node.table.key_serde
    rows, load = emitter.bind("rows", store.cache.entries), emitter.bind("load", store.cache.get)
    find, dirty = emitter.bind("find", store.cache.entries.get), emitter.bind("dirty", store.cache.dirty.add)

    def count() -> None:
        data = loop.store_key(flow.key, serde, store.encode_key)
        row = emitter.variable(f"{find}({data}) or {load}({data})", "row")
        number, time = _one_more(loop, row, flow.timestamp)
        emitter.add(f"{rows}[{data}] = {_held(loop, number, time)}")
        emitter.add(f"{dirty}({data})")
        counted = Part(number, may_be_null=False)
        loop.forward_values(processor, Flow(_stored(flow.key, serde, data), counted, time))

    loop.unless(_nulls(flow.key, flow.value), loop.dropped(processor, "null key or value"), count)


def _aggregate(loop: Loop, processor: Any, flow: Flow) -> None:
    if processor.is_caching or processor.sends_old_values or processor.take_new_value is None:
        raise NotFusedError("its changes are held back, or have old values")
    emitter, store = loop.emitter, processor.context.timestamped_store(processor.node.table)
    serde, folding = processor.node.table.key_serde, processor.folding
    load, put = emitter.bind("load", store.row), emitter.bind("put", store.put_row)
    first, add = emitter.bind("first", folding.add_value), emitter.bind("add", folding.add)

    def fold() -> None:
        data = loop.store_key(flow.key, serde, store.encode_key)
        row = emitter.variable(f"{load}({data})", "row")
        new, time = emitter.new("value"), emitter.variable(flow.timestamp, "time")
        with emitter.block(f"if {row} is None:"):
            emitter.add(f"{new} = {first}({flow.key.name()}, {flow.value.name()}, None)")
        with emitter.block("else:"):
            emitter.add(f"{new} = {add}({flow.key.name()}, {flow.value.name()}, {row}[0])")
            with emitter.block(f"if {row}[1] > {time}:"):
                emitter.add(f"{time} = {row}[1]")
        emitter.add(f"{put}({data}, {new}, {time})")
        loop.forward_values(processor, Flow(_stored(flow.key, serde, data), Part(new), time))

    loop.unless(_nulls(flow.key, flow.value), loop.dropped(processor, "null key or value"), fold)


def _table_map_values(loop: Loop, processor: Any, flow: Flow) -> None:
    """A table without a store: its new row is computed from that of its input."""
    if processor.take_new_value is None:
        raise NotFusedError("its changes have old values")
    computed = _mapped(loop, processor.node, flow)
    if flow.value.may_be_null:
        computed = f"None if {flow.value.is_null()} else {computed}"
    loop.forward_values(processor, replace(flow, value=Part(loop.emitter.variable(computed, "value"))))


def _one_more(loop: Loop, row: str, timestamp: str) -> tuple[str, str]:
    """Variables with the next count and the largest timestamp."""
    emitter = loop.emitter
    number, time = emitter.new("number"), emitter.new("time")
    with emitter.block(f"if {row} is None:"):
        emitter.add(f"{number} = 1")
        emitter.add(f"{time} = {timestamp}")
    with emitter.block("else:"):
        emitter.add(f"{number}, {time} = {row}")
        emitter.add(f"{number} += 1")
        with emitter.block(f"if {time} < {timestamp}:"):
            emitter.add(f"{time} = {timestamp}")
    return number, time


def _held(loop: Loop, value: str, time: str) -> str:
    new, kind = loop.emitter.bind("new", _new), loop.emitter.bind("Row", ValueAndTimestamp)
    return f"{new}({kind}, ({value}, {time}))"


def _windowed_count(loop: Loop, processor: Any, flow: Flow) -> None:
    """A count in tumbling windows: the window of the last record is kept at hand."""
    table = processor.node.table
    is_plain = processor.can_be_fused and isinstance(table.value_serde, LongSerde) and is_count(processor.folding)
    if not is_plain or processor.is_caching or processor.take_new_value is None:
        raise NotFusedError("only counts in tumbling windows, without caching")
    emitter, store, serde = loop.emitter, processor.store, table.key_serde
    size, observed = processor.size_ms, emitter.bind("observed", processor.observed)
    get, put = emitter.bind("get", store.rows.get), emitter.bind("put", store.rows.put)
    at_hand = emitter.bind("at_hand", store.rows.at_hand)
    names = [emitter.new(stem) for stem in ("seen", "current", "entries", "dirty", "is_whole")]
    seen, current, entries, dirty, is_whole = names
    emitter.before += [f"{seen} = {observed}.value", f"{current} = {entries} = {dirty} = {is_whole} = None"]
    emitter.after.append(f"{observed}.value = {seen}")

    def count() -> None:
        time = flow.timestamp
        with emitter.block(f"if {time} > {seen}:"):
            emitter.add(f"{seen} = {time}")
        start = emitter.variable(f"{time} - {time} % {size}", "start")
        with emitter.block(f"if {start} + {size} > {seen} - {processor.grace_ms}:"):
            data = loop.store_key(flow.key, serde, store.encode_key)
            row = emitter.new("row")
            with emitter.block(f"if {start} == {current}:"):
                emitter.add(f"{row} = {entries}.get({data})")
                with emitter.block(f"if {row} is None and not {is_whole} and {data} not in {entries}:"):
                    emitter.add(f"{row} = {get}({start}, {data})")
            with emitter.block("else:"):
                emitter.add(f"{row} = {get}({start}, {data})")
            number, latest = _one_more(loop, row, time)
            held = emitter.variable(_held(loop, number, latest), "held")
            with emitter.block(f"if {start} == {current}:"):
                emitter.add(f"{entries}[{data}] = {held}")
                emitter.add(f"{dirty}.add({data})")
            with emitter.block("else:"):
                emitter.add(f"{put}({start}, {data}, {held})")
                emitter.add(f"{current}, {entries}, {dirty}, {is_whole} = {at_hand}({start})")
            key = _windowed_key(loop, processor, flow, data, start)
            loop.forward_values(processor, Flow(key, Part(number, may_be_null=False), latest))
        with emitter.block("else:"):
            emitter.add(loop.dropped(processor, "expired window"))

    loop.unless(_nulls(flow.key), loop.dropped(processor, "null key"), count)


def _windowed_key(loop: Loop, processor: Any, flow: Flow, data: str, start: str) -> Part:
    emitter, variable = loop.emitter, loop.emitter.new("windowed")
    serde = processor.node.table.key_serde

    def make() -> str:
        new, kind = emitter.bind("new", _new), emitter.bind("Windowed", Windowed)
        window = emitter.bind("window", processor.window_at)
        emitter.add(f"{variable} = {new}({kind}, ({flow.key.name()}, {window}({start})))")
        return variable

    known = (TimeWindowedSerde(serde, processor.size_ms), lambda: f"{data} + {start}.to_bytes(8, 'big', signed=True)")
    inner = (_Inner(serde), lambda: data)
    encoded: Any = (known, inner) if is_exact(serde) else ()
    return Part(variable, make, encoded, may_be_null=False)


class _Inner:
    """Stands for the serde of the key within a windowed key."""

    def __init__(self, serde: Serde) -> None:
        self._serde = serde

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inner) and other._serde == self._serde

    def __hash__(self) -> int:
        return hash(type(self._serde))


def _join(loop: Loop, processor: Any, flow: Flow) -> None:
    store = processor.context.view(processor.node.right)
    if type(store) is not TimestampedStore:
        raise NotFusedError("the table is computed when it is read")
    emitter, node = loop.emitter, processor.node
    is_left, serde = processor.is_left, node.right.table.key_serde
    find, load = emitter.bind("find", store.cache.entries.get), emitter.bind("load", store.row)

    def join() -> None:
        if is_left and flow.key.may_be_null:
            row, key = emitter.variable("None", "row"), flow.key
            with emitter.block(f"if not ({flow.key.is_null()}):"):
                look_up(row)
        else:
            row = emitter.variable("None", "row")
            key = _stored(flow.key, serde, look_up(row))
        joined = emitter.new("value")
        others = f"{flow.value.name()}, None if {row} is None else {row}[0]" if is_left else None
        arguments = others or f"{flow.value.name()}, {row}[0]"
        call = f"{joined} = {_joiner(loop, node)}({flow.key.name() + ', ' if node.has_key else ''}{arguments})"
        result = Flow(key, Part(joined), flow.timestamp)
        if is_left:
            emitter.add(call)
            loop.forward(processor, result)
        else:
            with emitter.block(f"if {row} is not None:"):
                emitter.add(call)
                loop.forward(processor, result)

    def look_up(row: str) -> str:
        data = loop.store_key(flow.key, serde, store.encode_key)
        if store.holding.is_plain:
            emitter.add(f"{row} = {find}({data}) or {load}({data})")
        else:
            emitter.add(f"{row} = {load}({data})")
        return data

    def with_key() -> None:
        has_key = None if is_left or not flow.key.may_be_null else flow.key.is_null()
        loop.unless(has_key, loop.dropped(processor, "null key"), join)

    loop.unless(_nulls(flow.value), loop.dropped(processor, "null value"), with_key)


def _joiner(loop: Loop, node: Any) -> str:
    return loop.function(node.joiner, *(("key", "left", "right") if node.has_key else ("left", "right")))


# --- outputs ---------------------------------------------------------------------------------------------------


def _output_lists(loop: Loop, processor: Any, *, has_partitions: bool) -> str:
    emitter = loop.emitter
    for known, prefix in emitter.outputs:
        if known is processor:
            return prefix  # Records that arrive by several ways stay in order.
    prefix = emitter.new("out")
    names = ["keys", "values", "times"]
    names += ["headers"] if emitter.has_headers else []
    names += ["causes"] if emitter.notes_causes else []
    names += ["partitions"] if has_partitions else []
    for name in names:
        emitter.before.append(f"{prefix}_{name} = []; {prefix}_add_{name} = {prefix}_{name}.append")
    emitter.outputs.append((processor, prefix))
    return prefix


def _write(loop: Loop, prefix: str, data: tuple[str, str], timestamp: str, partition: str | None) -> None:
    emitter = loop.emitter
    emitter.add(f"{prefix}_add_keys({data[0]})")
    emitter.add(f"{prefix}_add_values({data[1]})")
    emitter.add(f"{prefix}_add_times({timestamp})")
    if emitter.has_headers:
        emitter.add(f"{prefix}_add_headers({emitter.column('headers')})")
    if emitter.notes_causes:
        emitter.add(f"{prefix}_add_causes({emitter.column('index')})")
    if partition is not None:
        emitter.add(f"{prefix}_add_partitions({partition})")


def _sink(loop: Loop, processor: Any, flow: Flow) -> None:
    node, context = processor.node, processor.context
    if node.topic is None or node.partitioner is not None or processor.looks_at_headers:
        raise NotFusedError("topic or partition are chosen record by record")
    encoders = [encoder(serde, node.topic) for serde in (node.key_serde, node.value_serde)]
    partition = None
    if processor.places_windows:
        inner = flow.key.data(_Inner(node.key_serde.inner))  # type: ignore[arg-type]
        if inner is None:
            raise NotFusedError("the partition of a windowed key is that of the key in it")
        count = context.partition_counts[node.topic]
        partition = f"{loop.emitter.bind('hash', partition_hash())}({inner}, {count})"
    key = loop.serialized(flow.key, node.key_serde, encoders[0])
    value = loop.serialized(flow.value, node.value_serde, encoders[1])
    prefix = _output_lists(loop, processor, has_partitions=partition is not None)
    _write(loop, prefix, (key, value), flow.timestamp, partition)


def _repartition(loop: Loop, processor: Any, flow: Flow) -> None:
    node, emitter = processor.node, loop.emitter
    if node.partitioner is not None or processor.looks_at_headers or node.carries_changes:
        raise NotFusedError("the partition is chosen record by record")
    encoders = [encoder(serde, processor.topic) for serde in (node.key_serde, node.value_serde)]
    if emitter.counts:
        write = _counting(loop, processor, flow, encoders)
    else:
        write = _repartitioning(loop, processor, flow, encoders)
    drops = node.drops_null_keys and flow.key.may_be_null
    loop.unless(flow.key.is_null() if drops else None, loop.dropped(processor, "null key"), write)


def _repartitioning(loop: Loop, processor: Any, flow: Flow, encoders: list[Any]) -> Callable[[], None]:
    node, emitter = processor.node, loop.emitter
    count = processor.context.partition_counts[node.topic]
    prefix = _output_lists(loop, processor, has_partitions=True)

    def write() -> None:
        key = emitter.variable(loop.serialized(flow.key, node.key_serde, encoders[0]), "data")
        value = loop.serialized(flow.value, node.value_serde, encoders[1])
        partition = f"{emitter.bind('hash', partition_hash())}({key}, {count})"
        partition = f"0 if {key} is None else {partition}" if flow.key.may_be_null else partition
        _write(loop, prefix, (key, value), flow.timestamp, partition)

    return write


def _counting(loop: Loop, processor: Any, flow: Flow, encoders: list[Any]) -> Callable[[], None]:
    """Records for an aggregation that only counts them: they are counted here, by key."""
    node, emitter = processor.node, loop.emitter
    if (processor, "counted") not in emitter.outputs:
        emitter.before += ["counts = {}", "count_of = counts.get", "latest = {}", "latest_of = latest.get"]
        emitter.outputs.append((processor, "counted"))

    def write() -> None:
        data = emitter.variable(loop.serialized(flow.key, node.key_serde, encoders[0]), "data")
        is_missing = [f"{data} is None"] if flow.key.may_be_null and not node.drops_null_keys else []
        is_missing += [flow.value.is_null()] if flow.value.may_be_null else []
        with emitter.block(f"if not ({' or '.join(is_missing)}):" if is_missing else "if True:"):
            if flow.value.data(node.value_serde) is None:
                # Only to find out whether it can be written, as without this short cut.
                check = f"{emitter.bind('encode', encoders[1])}({flow.value.name()})"
                is_same = node.key_serde == node.value_serde
                emitter.add(f"{flow.value.name()} is {flow.key.name()} or {check}" if is_same else check)
            emitter.add(f"counts[{data}] = count_of({data}, 0) + 1")
            if emitter.is_sorted:
                emitter.add(f"latest[{data}] = {flow.timestamp}")
            else:
                with emitter.block(f"if {flow.timestamp} > latest_of({data}, -1):"):
                    emitter.add(f"latest[{data}] = {flow.timestamp}")

    return write


Step = Callable[[Loop, Any, Flow], None]

STEPS: dict[type[Processor], Step] = {
    PassThrough: _pass,
    RecordColumnsProcessor: _record_columns,
    FilterProcessor: _filter,
    MapProcessor: _map,
    MapValuesProcessor: _map_values,
    FlatMapProcessor: _flat_map,
    FlatMapValuesProcessor: _flat_map_values,
    SelectKeyProcessor: _select_key,
    PeekProcessor: _peek,
    SplitProcessor: _split,
    CountProcessor: _count,
    AggregateProcessor: _aggregate,
    TimeWindowProcessor: _windowed_count,
    StreamTableJoinProcessor: _join,
    SinkProcessor: _sink,
    RepartitionOutput: _repartition,
}

VALUE_STEPS: dict[type[Processor], Step] = {
    ToStreamProcessor: _to_stream,
    TableMapValuesProcessor: _table_map_values,
}
"""For processors that get the new values of a table instead of changes."""
