"""The builder of a topology: it reads topics as streams and tables, and builds a `Topology` from them.

Start at `StreamsBuilder`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, overload

from moldau.pipeline.dsl.functions import callable_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.kstream import KStream
from moldau.pipeline.dsl.ktable import GlobalKTable, KTable
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.operators import Consumed
from moldau.pipeline.dsl.options.stores import StoreBuilder
from moldau.pipeline.dsl.processing import supplier_of
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.missing_serdes import missing_serde
from moldau.pipeline.ir.nodes import (
    GlobalStoreSource,
    GlobalTableSource,
    Materialization,
    Node,
    Source,
    Split,
    StreamSource,
    TableSource,
)
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.rewrites.null_keys import drop_null_keys
from moldau.pipeline.ir.rewrites.optimizing import SETTING, optimizations, optimize
from moldau.pipeline.ir.rewrites.rebuilding import rebuild, replace_fields
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ir.type_variables import K, V
from moldau.serdes.serde import Serde

__all__ = ["StreamsBuilder", "reader_of"]


AnyTableSource = TypeVar("AnyTableSource", TableSource, GlobalTableSource, GlobalStoreSource)


class StreamsBuilder(Hinting):
    """Builds one topology from topics, streams and tables.

    Read topics, apply operators to the streams and tables, then call `build`:

        builder = StreamsBuilder()
        visits = builder.stream("visits", Consumed.with_(Serdes.string(), Serdes.string()))
        visits.group_by_key().count().to_stream().to("counts", Produced.with_(Serdes.string(), Serdes.long()))
        topology = builder.build()
    """

    def __init__(self) -> None:
        self._graph = Graph()

    def stream(
        self, topics: str | Iterable[str] | re.Pattern[str], consumed: Consumed[K, V] | None = None
    ) -> KStream[K, V]:
        """Read a topic, several topics, or all topics whose name matches a pattern, as one stream.

        A second call for the same topics reuses the first source: the topics are read only once.

            builder.stream("orders", Consumed.with_(Serdes.string(), Serdes.json()))
            builder.stream(re.compile(r"orders-.*"))
        """
        options = option_of(consumed, Consumed)
        pattern = topics.pattern if isinstance(topics, re.Pattern) else None
        names = () if isinstance(topics, re.Pattern) else _topic_names(topics)
        name = self._graph.names.given_or_next(options.name, "KSTREAM-SOURCE-")
        node = StreamSource(
            name=name,
            origin=callers_origin(),
            topics=names,
            topic_pattern=pattern,
            key_serde=Part.of(options.key_serde).key_serde(),
            value_serde=Part.of(options.value_serde).value_serde(),
            timestamps=_timestamps(options),
            offset_reset=options.reset,
        )
        source = reader_of(node, self._graph.nodes) or self._graph.add(node)
        keys, values = Part.of(options.key_serde), Part.of(options.value_serde)
        return KStream(self._graph, source, keys, values, has_new_keys=False)

    @overload
    def table(self, topic: str, consumed: Consumed[K, V], materialized: Materialized | None = None) -> KTable[K, V]: ...

    @overload
    def table(
        self, topic: str, consumed: None = None, materialized: Materialized[K, V] | None = None
    ) -> KTable[K, V]: ...

    def table(self, topic: str, consumed: Any = None, materialized: Any = None) -> KTable:
        """Read a topic as a table: each record replaces the row of its key, a null value deletes the row."""
        options, table = self._table_options(topic, consumed, materialized)
        serdes = table.key_serde, table.value_serde
        node = self._table_source(TableSource, topic, options, table, serdes=serdes)
        store = table.store if table.is_queryable else None
        keys, values = Part.of(options.key_serde), Part.of(options.value_serde)
        return KTable(self._graph, node, keys, values, store=store)

    @overload
    def global_table(
        self, topic: str, consumed: Consumed[K, V], materialized: Materialized | None = None
    ) -> GlobalKTable[K, V]: ...

    @overload
    def global_table(
        self, topic: str, consumed: None = None, materialized: Materialized[K, V] | None = None
    ) -> GlobalKTable[K, V]: ...

    def global_table(self, topic: str, consumed: Any = None, materialized: Any = None) -> GlobalKTable:
        """Read a topic as a table of which every task has all rows.

        A stream can join it by any field, without repartitioning:

            products = builder.global_table("products", Consumed.with_(Serdes.string(), Serdes.json()))
            orders.join(products, joiner, key_selector=lambda order_id, order: order["product"])
        """
        if option_of(materialized, Materialized).history_ms is not None:
            raise TopologyError("a global table cannot be versioned", callers_origin())
        options, table = self._table_options(topic, consumed, materialized)
        serdes = table.key_serde, table.value_serde
        node = self._table_source(GlobalTableSource, topic, options, table, serdes=serdes)
        return GlobalKTable(self._graph, node, Part.of(options.key_serde), Part.of(options.value_serde))

    def add_state_store(self, store: StoreBuilder) -> StreamsBuilder:
        """Add a store, built with `Stores`, that processors use by its name; the same builder may be added again."""
        if not isinstance(store, StoreBuilder):
            raise TopologyError(f"add_state_store takes what Stores builds, not {store!r}", callers_origin())
        if self._graph.state_stores.get(store.name) is not store.store:
            self._graph.state_stores[self._graph.claim_store(store.name)] = store.store
        return self

    def add_global_store(
        self, store: StoreBuilder, topic: str, consumed: Consumed | None, supplier: Callable[[], Any]
    ) -> StreamsBuilder:
        """Add a store of which every task has all entries, filled from a topic by your own processor.

        `supplier` () returns a processor with process(record), and optionally init(context) and close(). It writes the
        records to the store, which it gets with context.get_state_store(name), and forwards nothing. All processors of
        the topology may read the store without listing its name.
        """
        if not isinstance(store, StoreBuilder):
            raise TopologyError(f"add_global_store takes what Stores builds, not {store!r}", callers_origin())
        options, wanted = option_of(consumed, Consumed), store.store
        self._graph.claim_store(store.name)
        self._table_source(
            GlobalStoreSource,
            topic,
            options,
            replace(wanted.table, is_logging=False),
            serdes=(Part.of(options.key_serde).key_serde(), Part.of(options.value_serde).value_serde()),
            supplier=supplier_of(supplier, "add_global_store", "process"),
            kind=wanted.kind,
            window_size_ms=wanted.window_size_ms,
            retain_duplicates=wanted.retain_duplicates,
        )
        return self

    def build(self, config: Mapping[str, Any] | None = None) -> Topology:
        """The topology described so far; `config` is the application's config, read for `topology.optimization`.

        If `config` is the complete config (it has an `application.id`), an operator without a serde is refused here;
        otherwise `KafkaStreams` or `TopologyTestDriver` refuse it, where the settings are known.
        """
        wanted = optimizations((config or {}).get(SETTING))
        if not self._graph.nodes:
            raise TopologyError("this topology is empty: read a topic with stream, table or global_table first")
        nodes = rebuild(self._graph.nodes, self._with_branches)
        if config is not None and "application.id" in config:
            refusal = missing_serde(nodes, config)
            if refusal is not None:
                raise refusal
        return Topology(drop_null_keys(optimize(nodes, wanted)))

    def _with_branches(self, node: Node) -> tuple[Node, ...]:
        if not isinstance(node, Split):
            return (node,)
        predicates = tuple(self._graph.branches[node.name])
        return (replace_fields(node, predicates=predicates, has_default=node.name in self._graph.default_branches),)

    def _table_source(
        self,
        node_class: type[AnyTableSource],
        topic: str,
        options: Consumed,
        table: Materialization,
        *,
        serdes: tuple[Serde, Serde],
        **more: Any,
    ) -> AnyTableSource:
        """Add a source node that stores the records it reads; `serdes` are those of the topic's keys and values."""
        source = self._graph.names.suffixed_or_next(options.name, "-source", "KSTREAM-SOURCE-")
        name = self._graph.names.given_or_next(options.name, "KTABLE-SOURCE-")
        node = node_class(
            name=name,
            origin=callers_origin(),
            parts=(source, name),
            topics=_topic_names(topic),
            key_serde=serdes[0],
            value_serde=serdes[1],
            timestamps=_timestamps(options),
            offset_reset=options.reset,
            table=table,
            **more,
        )
        reader_of(node, self._graph.nodes)
        return self._graph.add(node)

    def _table_options(
        self, topic: str, consumed: Consumed | None, materialized: Materialized | None
    ) -> tuple[Consumed, Materialization]:
        options = option_of(consumed, Consumed)
        given = option_of(materialized, Materialized)
        if consumed is None and materialized is not None:
            options = Consumed.with_(given.key_serde, given.value_serde)
        key_serde, value_serde = options.key_serde or given.key_serde, options.value_serde or given.value_serde
        stored = replace(given, key_serde=key_serde, value_serde=value_serde)
        store = stored.store_name or self._graph.names.store(f"{topic}-")
        return options, stored.under(self._graph.claim_store(store))


def _topic_names(topics: str | Iterable[str]) -> tuple[str, ...]:
    names = tuple(topics) if isinstance(topics, Iterable) and not isinstance(topics, str) else (topics,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise TopologyError(f"a topic's name, several, or a pattern is needed, not {topics!r}", callers_origin())
    return tuple(dict.fromkeys(names))


def _timestamps(options: Consumed) -> PythonFunction | None:
    if options.timestamp_extractor is None:
        return None
    return callable_of(options.timestamp_extractor, "timestamp_extractor", "record", "previous timestamp")


def reader_of(node: Source, nodes: Iterable[Node]) -> StreamSource | None:
    """The stream source among `nodes` that already reads the same topics, or None.

    Raises `TopologyError` if another kind of source reads one of them, or if a stream reads them with other options.
    """
    for other in nodes:
        if not isinstance(other, Source) or not _overlap(node, other):
            continue
        if isinstance(node, StreamSource) and isinstance(other, StreamSource):
            _check_alike(node, other)
            return other
        raise TopologyError(
            f"{_topics_of(other)} is read already ({other.origin}); read it once, as a stream, and use "
            "to_table() where a table is wanted",
            node.origin,
        )
    return None


def _overlap(node: Source, other: Source) -> bool:
    if node.topic_pattern is not None or other.topic_pattern is not None:
        if node.topic_pattern == other.topic_pattern:
            return True
        named, pattern = (node, other) if other.topic_pattern is not None else (other, node)
        return any(re.fullmatch(pattern.topic_pattern or "", topic) for topic in named.topics)
    return bool(set(node.topics) & set(other.topics))


def _check_alike(node: StreamSource, other: StreamSource) -> None:
    """Raise `TopologyError` if two sources read the same topic with different options."""
    if set(node.topics) != set(other.topics) or node.topic_pattern != other.topic_pattern:
        raise TopologyError(
            f"{_topics_of(other)} ({other.origin}) and {_topics_of(node)} overlap; read each topic in one place only",
            node.origin,
        )
    if _clock(node) is not _clock(other):
        raise TopologyError(
            f"{_topics_of(node)} is read with one timestamp_extractor ({other.origin}) and again with another or none; "
            "choose one",
            node.origin,
        )
    for what in ("key_serde", "value_serde", "offset_reset"):
        one, two = getattr(other, what), getattr(node, what)
        if one != two:
            raise TopologyError(
                f"{_topics_of(node)} is read with {what} {one!r} ({other.origin}) and again with {two!r}; choose one",
                node.origin,
            )


def _clock(source: Source) -> object:
    return source.timestamps.call if isinstance(source.timestamps, PythonFunction) else source.timestamps


def _topics_of(source: Source) -> str:
    if source.topic_pattern is not None:
        return f"topics like {source.topic_pattern}"
    return f"topic{'s' if len(source.topics) > 1 else ''} {', '.join(source.topics)}"
