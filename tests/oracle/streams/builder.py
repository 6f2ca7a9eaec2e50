"""A case's operators built with `moldau.streams`, as java/oracle/SpecBuilder.java builds them with Kafka Streams.

Start at `build`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.streams import functions
from tests.oracle.streams.processors import annotate, filler, processor, transformer

from moldau.streams import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    KTable,
    LongSerde,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    SessionWindowedSerde,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StringSerde,
    Suppressed,
    TableJoined,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    with_key,
)

__all__ = ["Built", "build"]

Operator = Mapping[str, Any]
TEXT = StringSerde()
NUMBER = LongSerde()


@dataclass(frozen=True, slots=True)
class _Flow:
    """Something the DSL returned, and the serdes of its keys and values."""

    handle: Any
    keys: Any = TEXT
    values: Any = TEXT


@dataclass(frozen=True, slots=True)
class Built:
    """A topology, the topics it writes and the stores that were given names."""

    topology: Topology
    sink_topics: tuple[str, ...]
    stores: tuple[str, ...]


def build(case: Mapping[str, Any]) -> Built:
    building = _Building()
    for operator in case["ops"]:
        building.add(operator)
    return Built(building.streams.build(case.get("config")), tuple(building.sink_topics), tuple(building.stores))


class _Building:
    def __init__(self) -> None:
        self.streams = StreamsBuilder()
        self.sink_topics: dict[str, None] = {}
        self.stores: dict[str, None] = {}
        self._flows: dict[str, _Flow] = {}

    def add(self, operator: Operator) -> None:
        op = operator["op"]
        if op == "add_store":
            self._remember(operator["store"])
            self.streams.add_state_store(_processor_store(operator))
            return
        if op == "add_global_store":
            store, consumed = _processor_store(operator), _consumed(operator)
            self.streams.add_global_store(store, operator["topic"], consumed, filler(operator))
            return
        inputs = [self._flows[name] for name in operator.get("in", ())]
        made: Callable[..., _Flow | None] = getattr(self, f"_{_METHODS.get(op, op)}")
        flow = made(operator, *inputs)
        if flow is not None:
            self._flows[operator["id"]] = flow

    def _remember(self, store: str) -> None:
        self.stores[store] = None

    def _materialized(self, operator: Operator, keys: Any, values: Any) -> dict[str, Materialized]:
        """The argument that says how state is kept, or none."""
        how = operator.get("as")
        if how is None:
            return {}
        if "versioned" in how:
            supplier = Stores.persistent_versioned_key_value_store(how["store"], how["versioned"])
            return {"materialized": Materialized.as_(supplier).with_key_serde(keys).with_value_serde(values)}
        if "store" in how:
            self._remember(how["store"])
            materialized = Materialized.as_(how["store"]).with_key_serde(keys).with_value_serde(values)
        else:
            materialized = Materialized.with_(keys, values)
        if "retention" in how:
            materialized = materialized.with_retention(how["retention"])
        if not how.get("caching", True):
            materialized = materialized.with_caching_disabled()
        if not how.get("logging", True):
            materialized = materialized.with_logging_disabled()
        return {"materialized": materialized}

    # --- sources and sinks -------------------------------------------------------------------------------------

    def _stream(self, operator: Operator) -> _Flow:
        topics = [operator["topic"], *operator.get("more_topics", ())]
        return _Flow(self.streams.stream(topics, _consumed(operator)))

    def _table(self, operator: Operator) -> _Flow:
        consumed = _consumed(operator)
        return _Flow(self.streams.table(operator["topic"], consumed, **self._materialized(operator, TEXT, TEXT)))

    def _global_table(self, operator: Operator) -> _Flow:
        consumed = _consumed(operator)
        table = self.streams.global_table(operator["topic"], consumed, **self._materialized(operator, TEXT, TEXT))
        # Everybody who reads it has a copy, and how many those are is not to be compared.
        self.stores.pop(operator.get("as", {}).get("store"), None)
        return _Flow(table)

    def _to(self, operator: Operator, flow: _Flow) -> None:
        produced = _named_option(Produced.with_(flow.keys, flow.values), operator)
        if "choose" in operator:
            choices = operator["choose"]
            self.sink_topics.update(dict.fromkeys(choices))
            chooser = lambda key, value, record: choices[functions.digest(key, value) % len(choices)]  # noqa: E731
            flow.handle.to(chooser, produced)
        else:
            self.sink_topics[operator["topic"]] = None
            flow.handle.to(operator["topic"], produced)

    def _split(self, operator: Operator, flow: _Flow) -> None:
        split = flow.handle.split(**_named(operator))
        for number, branch in enumerate(operator["branches"]):
            taken = Branched.with_consumer(self._taker(f"{operator['id']}.{number}", flow), branch.get("name"))
            split = split.branch(functions.predicate(branch), taken)
        if operator["default"]:
            split.default_branch(Branched.with_consumer(self._taker(f"{operator['id']}.default", flow)))
        else:
            split.no_default_branch()

    def _taker(self, name: str, flow: _Flow) -> Callable[[Any], None]:
        def take(branch: Any) -> None:
            self._flows[name] = _Flow(branch, flow.keys, flow.values)

        return take

    # --- streams and tables ------------------------------------------------------------------------------------

    def _filter(self, operator: Operator, flow: _Flow) -> _Flow:
        method = getattr(flow.handle, operator["op"])
        how = self._materialized(operator, flow.keys, flow.values)
        return _Flow(method(functions.predicate(operator["with"]), **_named(operator), **how), flow.keys, flow.values)

    def _map_values(self, operator: Operator, flow: _Flow) -> _Flow:
        function, how = functions.value_mapper(operator["with"]), self._materialized(operator, flow.keys, TEXT)
        if operator.get("has_key"):
            return _Flow(flow.handle.map_values_with_key(function, **_named(operator), **how), flow.keys)
        return _Flow(flow.handle.map_values(_without_key(function), **_named(operator), **how), flow.keys)

    def _flat_map_values(self, operator: Operator, flow: _Flow) -> _Flow:
        function = functions.flattener(operator["with"])
        if operator.get("has_key"):
            return _Flow(flow.handle.flat_map_values_with_key(function, **_named(operator)), flow.keys)
        return _Flow(flow.handle.flat_map_values(_without_key(function), **_named(operator)), flow.keys)

    def _map(self, operator: Operator, flow: _Flow) -> _Flow:
        keys, values = functions.key_selector(operator["key"]), functions.value_mapper(operator["value"])
        return _Flow(flow.handle.map(lambda key, value: (keys(key, value), values(key, value)), **_named(operator)))

    def _flat_map(self, operator: Operator, flow: _Flow) -> _Flow:
        keys, values = functions.key_selector(operator["key"]), functions.flattener(operator["value"])
        mapper = lambda key, value: [(keys(key, each), each) for each in values(key, value)]  # noqa: E731
        return _Flow(flow.handle.flat_map(mapper, **_named(operator)))

    def _select_key(self, operator: Operator, flow: _Flow) -> _Flow:
        selector = functions.key_selector(operator["with"])
        return _Flow(flow.handle.select_key(selector, **_named(operator)), TEXT, flow.values)

    def _peek(self, operator: Operator, flow: _Flow) -> _Flow:
        return _Flow(flow.handle.peek(lambda key, value: None, **_named(operator)), flow.keys, flow.values)

    def _merge(self, operator: Operator, flow: _Flow, other: _Flow) -> _Flow:
        return _Flow(flow.handle.merge(other.handle, **_named(operator)), flow.keys, flow.values)

    def _repartition(self, operator: Operator, flow: _Flow) -> _Flow:
        how = _named_option(Repartitioned.with_(flow.keys, flow.values), operator)
        if "partitions" in operator:
            how = how.with_number_of_partitions(operator["partitions"])
        return _Flow(flow.handle.repartition(how), flow.keys, flow.values)

    def _to_table(self, operator: Operator, flow: _Flow) -> _Flow:
        how = self._materialized(operator, flow.keys, flow.values)
        return _Flow(flow.handle.to_table(**_named(operator), **how), flow.keys, flow.values)

    def _to_stream(self, operator: Operator, flow: _Flow) -> _Flow:
        if "with" in operator:
            selector = functions.key_selector(operator["with"])
            return _Flow(flow.handle.to_stream(selector, **_named(operator)), TEXT, flow.values)
        return _Flow(flow.handle.to_stream(**_named(operator)), flow.keys, flow.values)

    def _suppress(self, operator: Operator, flow: _Flow) -> _Flow:
        if "wait" not in operator:
            how = Suppressed.until_window_closes(BufferConfig.unbounded())
        else:
            how = Suppressed.until_time_limit(operator["wait"], _buffer(operator))
        return _Flow(flow.handle.suppress(_named_option(how, operator)), flow.keys, flow.values)

    def _process(self, operator: Operator, flow: _Flow) -> _Flow:
        stores = operator.get("stores", ())
        return _Flow(flow.handle.process(processor(operator), *stores, **_named(operator)))

    def _process_values(self, operator: Operator, flow: _Flow) -> _Flow:
        stores = operator.get("stores", ())
        return _Flow(flow.handle.process_values(annotate(operator), *stores, **_named(operator)), flow.keys)

    def _transform_values(self, operator: Operator, flow: _Flow) -> _Flow:
        stores, how = operator.get("stores", ()), self._materialized(operator, flow.keys, TEXT)
        return _Flow(flow.handle.transform_values(transformer(operator), *stores, **_named(operator), **how), flow.keys)

    # --- aggregation -------------------------------------------------------------------------------------------

    def _group_by_key(self, operator: Operator, flow: _Flow) -> _Flow:
        grouped = _named_option(Grouped.with_(flow.keys, flow.values), operator)
        return _Flow(flow.handle.group_by_key(grouped), flow.keys, flow.values)

    def _group_by(self, operator: Operator, flow: _Flow) -> _Flow:
        grouped, selector = Grouped.with_(TEXT, flow.values), functions.key_selector(operator["with"])
        grouped = _named_option(grouped, operator)
        if isinstance(flow.handle, KTable):
            pair = lambda key, value: (selector(key, value), value)  # noqa: E731
            return _Flow(flow.handle.group_by(pair, grouped), TEXT, flow.values)
        return _Flow(flow.handle.group_by(selector, grouped), TEXT, flow.values)

    def _cogroup(self, operator: Operator, *flows: _Flow) -> _Flow:
        adders = [functions.aggregator(spec) for spec in operator["adders"]]
        cogrouped = flows[0].handle.cogroup(adders[0])
        for flow, adder in zip(flows[1:], adders[1:], strict=True):
            cogrouped = cogrouped.cogroup(flow.handle, adder)
        return _Flow(cogrouped)

    def _windowed_by(self, operator: Operator, flow: _Flow) -> _Flow:
        windowed = flow.handle.windowed_by(_window(operator["window"]))
        if operator.get("emit") == "final":
            windowed = windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
        return _Flow(windowed, _windowed_keys(operator["window"]), flow.values)

    def _count(self, operator: Operator, flow: _Flow) -> _Flow:
        how = self._materialized(operator, TEXT, NUMBER)
        return _Flow(flow.handle.count(**_named(operator), **how), flow.keys, NUMBER)

    def _reduce(self, operator: Operator, flow: _Flow) -> _Flow:
        reducers = [functions.reducer(operator[part]) for part in ("adder", "subtractor") if part in operator]
        how = self._materialized(operator, TEXT, flow.values)
        return _Flow(flow.handle.reduce(*reducers, **_named(operator), **how), flow.keys, flow.values)

    def _aggregate(self, operator: Operator, flow: _Flow) -> _Flow:
        initial = operator.get("initial")
        folds = [functions.aggregator(operator[part]) for part in ("adder", "subtractor") if part in operator]
        merger = [functions.merger(operator["merger"])] if "merger" in operator else []
        how = self._materialized(operator, TEXT, TEXT)
        table = flow.handle.aggregate(lambda: initial, *folds, *merger, **_named(operator), **how)
        return _Flow(table, flow.keys)

    # --- joins -------------------------------------------------------------------------------------------------

    def _stream_join(self, operator: Operator, left: _Flow, right: _Flow) -> _Flow:
        how = _named_option(StreamJoined.with_(left.keys, left.values, right.values), operator)
        if "as" in operator:
            how = how.with_store_name(operator["as"]["store"])
        method = _joining(left, operator)
        joiner = with_key(functions.joiner(operator["joiner"]))
        return _Flow(method(right.handle, joiner, _join_window(operator["window"]), joined=how), left.keys)

    def _stream_table_join(self, operator: Operator, left: _Flow, right: _Flow) -> _Flow:
        how = _named_option(Joined.with_(left.keys, left.values, right.values), operator)
        if "grace" in operator:
            how = how.with_grace_period(operator["grace"])
        joiner = with_key(functions.joiner(operator["joiner"]))
        return _Flow(_joining(left, operator)(right.handle, joiner, joined=how), left.keys)

    def _global_join(self, operator: Operator, left: _Flow, right: _Flow) -> _Flow:
        selector = functions.key_selector(operator["selector"])
        joiner = with_key(functions.joiner(operator["joiner"]))
        how = {"joined": Named.as_(operator["name"])} if "name" in operator else {}
        return _Flow(_joining(left, operator)(right.handle, joiner, key_selector=selector, **how), left.keys)

    def _table_join(self, operator: Operator, left: _Flow, right: _Flow) -> _Flow:
        how = self._materialized(operator, left.keys, TEXT)
        joiner = _without_key(functions.joiner(operator["joiner"]))
        return _Flow(_joining(left, operator)(right.handle, joiner, **_named(operator), **how), left.keys)

    def _foreign_key_join(self, operator: Operator, left: _Flow, right: _Flow) -> _Flow:
        how: dict[str, Any] = self._materialized(operator, left.keys, TEXT)
        if "name" in operator:
            how["table_joined"] = TableJoined.as_(operator["name"])
        extractor = with_key(functions.key_selector(operator["extractor"]))
        joiner = _without_key(functions.joiner(operator["joiner"]))
        method = left.handle.foreign_key_join if operator["kind"] == "inner" else left.handle.foreign_key_left_join
        return _Flow(method(right.handle, extractor, joiner, **how), left.keys)


_METHODS = {"filter_not": "filter"}


def _named(operator: Operator) -> dict[str, Named]:
    return {"named": Named.as_(operator["name"])} if "name" in operator else {}


def _named_option(option: Any, operator: Operator) -> Any:
    return option.with_name(operator["name"]) if "name" in operator else option


def _buffer(operator: Operator) -> BufferConfig:
    if "max_records" in operator:
        buffer = BufferConfig.max_records(operator["max_records"])
    elif "max_bytes" in operator:
        buffer = BufferConfig.max_bytes(operator["max_bytes"])
    else:
        return BufferConfig.unbounded()
    return buffer.shut_down_when_full() if operator.get("is_strict") else buffer.emit_early_when_full()


def _consumed(operator: Operator) -> Consumed:
    consumed: Consumed = _named_option(Consumed.with_(TEXT, TEXT), operator)
    if "clock" in operator:
        return consumed.with_timestamp_extractor(functions.clock(operator["clock"]))
    return consumed


def _without_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without its first argument."""
    if function.__code__.co_argcount == 3:
        return lambda left, right: function(None, left, right)
    return lambda value: function(None, value)


def _joining(left: _Flow, operator: Operator) -> Callable[..., Any]:
    names = {"inner": "join", "left": "left_join", "outer": "outer_join"}
    method: Callable[..., Any] = getattr(left.handle, names[operator["kind"]])
    return method


def _window(spec: Operator) -> Any:
    match spec["kind"]:
        case "time":
            windows = TimeWindows.of_size_and_grace(spec["size"], spec["grace"])
            return windows.advance_by(spec["advance"]) if "advance" in spec else windows
        case "sliding":
            return SlidingWindows.of_time_difference_and_grace(spec["difference"], spec["grace"])
        case "session":
            return SessionWindows.of_inactivity_gap_and_grace(spec["gap"], spec["grace"])
    return UnlimitedWindows.of().start_on(spec["start"])


def _windowed_keys(spec: Operator) -> Any:
    match spec["kind"]:
        case "session":
            return SessionWindowedSerde(TEXT)
        case "time":
            return TimeWindowedSerde(TEXT, spec["size"])
        case "sliding":
            return TimeWindowedSerde(TEXT, spec["difference"])
    return TimeWindowedSerde(TEXT, 2**63 - 1)


def _join_window(spec: Operator) -> JoinWindows:
    if "grace" in spec:
        return JoinWindows.of_time_difference_and_grace(spec["before"], spec["grace"]).after(spec["after"])
    return JoinWindows.of(spec["before"]).after(spec["after"])


def _processor_store(operator: Operator) -> Any:
    name = operator["store"]
    match operator["kind"]:
        case "key-value":
            builder = Stores.key_value_store_builder(Stores.persistent_key_value_store(name), TEXT, TEXT)
        case "timestamped":
            supplier = Stores.persistent_key_value_store(name)
            builder = Stores.timestamped_key_value_store_builder(supplier, TEXT, TEXT)
        case "window":
            retention, size, has_duplicates = operator["retention"], operator["size"], operator["duplicates"]
            windows = Stores.persistent_window_store(name, retention, size, retain_duplicates=has_duplicates)
            builder = Stores.window_store_builder(windows, TEXT, TEXT)
        case _:
            sessions = Stores.persistent_session_store(name, operator["retention"])
            builder = Stores.session_store_builder(sessions, TEXT, TEXT)
    return builder if operator.get("logging", True) else builder.with_logging_disabled()
