"""The nodes that streams and tables become: functions, serdes, stores and types. Names are in `test_descriptions`."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import pytest

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.pipeline.ir.types import Array, Primitive, Struct
from moldau.streams import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    LongSerde,
    Materialized,
    OffsetReset,
    Produced,
    Repartitioned,
    Serdes,
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
    UnlimitedWindows,
    col,
    functions,
    key,
    left,
    right,
    value,
    with_key,
)

TEXT = Consumed.with_(Serdes.string(), Serdes.string())
NUMBERS = Consumed.with_(Serdes.string(), Serdes.long())
TWEET = Struct((("likes", Primitive.BIGINT), ("text", Primitive.STRING)))
TWEETS = Consumed.with_(Serdes.string(), Serdes.json(TWEET))
CLOSE = JoinWindows.of_time_difference_and_grace(1000, 500)

AnyNode = TypeVar("AnyNode", bound=ir.Node)


def only(builder: StreamsBuilder, kind: type[AnyNode]) -> AnyNode:
    (found,) = (node for node in builder.build().nodes if isinstance(node, kind))
    return found


def first(left: Any, right: Any) -> Any:
    return left


class Idle:
    def process(self, record: Any) -> None: ...


def pair(key: Any, value: Any) -> tuple[Any, Any]:
    return value, key


def by_value(key: Any, value: Any) -> Any:
    return value


# --- reading and writing -------------------------------------------------------------------------------------


def test_a_source_reads_as_it_was_told() -> None:
    b = StreamsBuilder()
    options = TEXT.with_offset_reset_policy("latest").with_timestamp_extractor(lambda record, previous: 5)
    b.stream(["one", "two", "one"], options)
    source = only(b, ir.StreamSource)
    assert source.topics == ("one", "two")
    assert (source.key_serde, source.offset_reset) == (StringSerde(), OffsetReset.LATEST)
    assert source.timestamps is not None
    assert source.timestamps.call(None, 0) == 5
    assert str(source.origin).startswith("test_streams_and_tables.py:")


def test_serdes_that_nobody_named_are_the_defaults() -> None:
    b = StreamsBuilder()
    b.stream("in").map_values(str).to("out")
    assert only(b, ir.StreamSource).value_serde == DefaultSerde("value")
    assert only(b, ir.Sink).key_serde == DefaultSerde("key")


def test_a_serde_is_kept_as_long_as_its_values_are() -> None:
    b = StreamsBuilder()
    stream = b.stream("in", TEXT)
    assert stream.filter(by_value).peek(by_value).values.serde == StringSerde()
    assert stream.map_values(len).values.serde is None
    assert stream.map_values(len).keys.serde == StringSerde()
    assert stream.select_key(by_value).keys.serde is None
    assert stream.map(pair).values.serde is None
    assert stream.merge(b.stream("text", TEXT)).values.serde == StringSerde()
    assert stream.merge(b.stream("numbers", NUMBERS)).values.serde is None


def test_a_sink_may_choose_its_topic_and_partition() -> None:
    b = StreamsBuilder()
    partitioned = Produced(key_serde=Serdes.long(), partitioner=lambda topic, key, value, count: 0)
    b.stream("in", TEXT).to(lambda key, value, record: value, partitioned)
    sink = only(b, ir.Sink)
    assert sink.topic is None
    assert sink.chooser is not None
    assert sink.partitioner is not None
    assert (sink.key_serde, sink.value_serde) == (LongSerde(), StringSerde())


def test_reading_a_topic_twice_is_reading_it_once() -> None:
    b = StreamsBuilder()
    b.stream("in", TEXT).to("one")
    b.stream("in", TEXT).to("two")
    source = only(b, ir.StreamSource)
    assert [node.input for node in b.build().sinks] == [source, source]


def test_a_table_has_the_serdes_of_its_topic_and_a_name_makes_it_queryable() -> None:
    b = StreamsBuilder()
    named = b.table("named", TEXT, Materialized.as_("rows").with_caching_disabled())
    quiet = b.table("quiet", materialized=Materialized.with_(Serdes.string(), Serdes.long()))
    assert named.queryable_store_name == "rows"
    assert quiet.queryable_store_name is None
    rows, other = (node for node in b.build().nodes if isinstance(node, ir.TableSource))
    assert (rows.table.is_queryable, rows.table.is_caching, rows.table.value_serde) == (True, False, StringSerde())
    assert (other.table.is_queryable, other.value_serde) == (False, LongSerde())


# --- functions and expressions -------------------------------------------------------------------------------


def test_functions_get_the_value_or_both_by_the_methods_name() -> None:
    b = StreamsBuilder()
    stream = b.stream("in", TEXT)
    stream.map_values(len)
    stream.map_values_with_key(by_value)
    stream.flat_map_values(list)
    stream.flat_map_values_with_key(lambda key, value: [key, value])
    mapped = [node for node in b.build().nodes if isinstance(node, ir.MapValues | ir.FlatMapValues)]
    assert [node.has_key for node in mapped] == [False, True, False, True]


def test_expressions_know_their_types_and_hand_them_on() -> None:
    b = StreamsBuilder()
    tweets = b.stream("tweets", TWEETS)
    popular = tweets.filter(value["likes"] > 10).map_values({"size": functions.length(col("text")), "by": key})
    assert popular.values.type == Struct((("size", Primitive.BIGINT), ("by", Primitive.STRING)))
    words = tweets.map_values(col("text")).flat_map_values(functions.split(value, " "))
    assert words.values.type is Primitive.STRING
    swapped = words.map((value, key))
    assert (swapped.keys.type, swapped.values.type) == (Primitive.STRING, Primitive.STRING)
    assert words.select_key(functions.length(value)).keys.type is Primitive.BIGINT
    predicate = only(b, ir.Filter).predicate
    assert isinstance(predicate, Expression)
    assert predicate.type is Primitive.BOOLEAN
    splitting = only(b, ir.FlatMapValues).mapper
    assert isinstance(splitting, Expression)
    assert splitting.type == Array(Primitive.STRING)


def test_a_key_that_may_have_changed_is_repartitioned_before_it_counts() -> None:
    b = StreamsBuilder()
    stream = b.stream("in", TEXT)
    for changed in (stream.map(pair), stream.flat_map(by_value), stream.select_key(by_value), stream.process(Idle)):
        assert changed.has_new_keys
        assert changed.filter(by_value).map_values(str).has_new_keys
    for same in (stream.map_values(str), stream.process_values(Idle), stream.select_key(by_value).repartition()):
        assert not same.has_new_keys
    assert stream.merge(stream.map(pair)).has_new_keys


def test_a_repartitioning_has_the_partitions_it_was_told() -> None:
    b = StreamsBuilder()
    chosen = Repartitioned(number_of_partitions=7, partitioner=lambda topic, key, value, count: 1)
    b.stream("in", TEXT).repartition(chosen.with_key_serde(Serdes.bytes()))
    node = only(b, ir.Repartition)
    assert (node.partitions, node.key_serde, node.value_serde) == (7, Serdes.bytes(), StringSerde())
    assert node.partitioner is not None
    assert node.drops_null_keys


# --- folding -------------------------------------------------------------------------------------------------


def test_a_count_is_of_longs_under_the_key_of_its_stream() -> None:
    b = StreamsBuilder()
    counts = b.stream("in", TEXT).group_by_key().count()
    table = only(b, ir.Aggregate).table
    assert (table.key_serde, table.value_serde) == (StringSerde(), LongSerde())
    assert counts.to_stream().values.serde == LongSerde()
    assert counts.to_stream().keys.serde == StringSerde()


def test_a_reduction_keeps_the_values_serde_and_an_aggregate_needs_its_own() -> None:
    b = StreamsBuilder()
    grouped = b.stream("in", TEXT).group_by_key()
    assert grouped.reduce(first).values.serde == StringSerde()
    assert grouped.aggregate(list, lambda key, value, aggregate: aggregate).values.serde is None
    stored = Materialized.as_("lists").with_value_serde(Serdes.json())
    assert grouped.aggregate(list, lambda key, value, aggregate: aggregate, stored).queryable_store_name == "lists"


def test_grouping_by_another_key_repartitions_with_the_groups_serdes() -> None:
    b = StreamsBuilder()
    b.stream("in", TEXT).group_by(by_value, Grouped.with_(Serdes.bytes(), None)).count()
    node = only(b, ir.Repartition)
    assert (node.key_serde, node.value_serde) == (Serdes.bytes(), StringSerde())


@pytest.mark.parametrize(
    ("windows", "serde"),
    [
        (TimeWindows.of_size_and_grace(1000, 10), TimeWindowedSerde(StringSerde(), 1000)),
        (SlidingWindows.of_time_difference_with_no_grace(500), TimeWindowedSerde(StringSerde(), 500)),
        (SessionWindows.of_inactivity_gap_with_no_grace(500), SessionWindowedSerde(StringSerde())),
        (UnlimitedWindows.of(), TimeWindowedSerde(StringSerde(), 2**63 - 1)),
    ],
)
def test_the_keys_of_a_windowed_table_are_windowed(windows: Any, serde: Any) -> None:
    b = StreamsBuilder()
    counts = b.stream("in", TEXT).group_by_key().windowed_by(windows).count()
    node = only(b, ir.Aggregate)
    assert node.window == windows.ir_window
    assert node.table.key_serde == StringSerde()
    assert node.table.retention_ms == windows.least_retention_ms
    assert counts.to_stream().keys.serde == serde


def test_windowed_keys_may_wait_for_the_default_serde() -> None:
    b = StreamsBuilder()
    counts = b.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(5)).count()
    counts.to_stream().to("out")
    topology = b.build().with_default_serdes(key=StringSerde(), value=None)
    assert topology.sinks[0].key_serde == TimeWindowedSerde(StringSerde(), 5)


def test_a_window_may_tell_only_its_end_and_be_kept_longer() -> None:
    b = StreamsBuilder()
    windowed = b.stream("in", TEXT).group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(5))
    windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(Materialized.as_("c").with_retention(500))
    node = only(b, ir.Aggregate)
    assert (node.emit, node.table.retention_ms) == (EmitStrategy.ON_WINDOW_CLOSE, 500)


def test_sessions_that_grow_together_are_merged() -> None:
    b = StreamsBuilder()
    sessions = b.stream("in", TEXT).group_by_key().windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(5))
    sessions.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).aggregate(int, lambda k, v, a: a, lambda k, one, other: other)
    fold = only(b, ir.Aggregate).aggregator
    assert isinstance(fold, ir.Fold)
    assert fold.merger is not None


def test_cogrouped_streams_each_have_their_function() -> None:
    b = StreamsBuilder()
    one, two = b.stream("one", TEXT).group_by_key(), b.stream("two", TEXT).group_by_key()
    cogrouped = one.cogroup(lambda key, value, aggregate: 1).cogroup(two, lambda key, value, aggregate: 2)
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(5)
    cogrouped.windowed_by(sessions).aggregate(int, lambda key, one, other: one, Materialized(value_serde=Serdes.long()))
    node = only(b, ir.Cogroup)
    assert [adder.call("k", "v", 0) for adder in node.adders if not isinstance(adder, Expression)] == [1, 2]
    assert [source.name for source in node.inputs] == [one.node.name, two.node.name]
    assert node.table.key_serde == StringSerde()


def test_a_grouped_table_takes_out_what_it_put_in() -> None:
    b = StreamsBuilder()
    grouped = b.table("in", TEXT).group_by(pair, Grouped.with_(Serdes.string(), Serdes.long()))
    grouped.reduce(lambda aggregate, value: aggregate + value, lambda aggregate, value: aggregate - value)
    node = only(b, ir.AggregateTable)
    assert isinstance(node.aggregator, ir.Reduce)
    assert node.aggregator.subtractor is not None
    assert node.table.value_serde == LongSerde()
    moved = only(b, ir.Repartition)
    assert moved.carries_changes
    assert not moved.drops_null_keys


# --- branches ------------------------------------------------------------------------------------------------


def test_branches_are_found_by_name_and_know_their_place() -> None:
    b = StreamsBuilder()
    ends: list[KStream] = []
    branching = b.stream("in", TEXT).split("size-").branch(value == "big", Branched.as_("big"))
    branching = branching.branch(by_value, Branched.with_function(lambda branch: branch.map_values(len), "small"))
    branching = branching.branch(by_value, Branched.with_consumer(ends.append))
    branches = branching.default_branch(Branched.as_("rest"))
    assert list(branches) == ["size-big", "size-small", "size-rest"]
    assert branches["size-small"].values.serde is None
    assert [end.name for end in ends] == ["size-3"]
    nodes = b.build().nodes
    (split,) = (node for node in nodes if isinstance(node, ir.Split))
    assert len(split.predicates) == 3
    assert split.has_default
    outputs = [node for node in nodes if isinstance(node, ir.BranchOutput)]
    assert [output.index for output in outputs] == [0, 1, 2, 3]
    assert all(output.input is split for output in outputs)


def test_records_that_no_branch_wants_may_be_dropped() -> None:
    b = StreamsBuilder()
    branches = b.stream("in", TEXT).split().branch(by_value).no_default_branch()
    assert list(branches) == ["KSTREAM-BRANCH-00000000011"]
    assert not only(b, ir.Split).has_default


# --- joins ---------------------------------------------------------------------------------------------------


def test_a_join_of_streams_keeps_both_sides_for_its_window() -> None:
    b = StreamsBuilder()
    options = StreamJoined.with_(Serdes.string(), Serdes.string(), Serdes.long()).with_logging_disabled()
    b.stream("left").left_join(b.stream("right"), with_key(lambda key, one, other: key), CLOSE, joined=options)
    node = only(b, ir.StreamStreamJoin)
    assert node.has_key
    assert node.window == CLOSE.ir_window
    assert (node.left_store.value_serde, node.right_store.value_serde) == (StringSerde(), LongSerde())
    assert (node.left_store.retention_ms, node.left_store.is_logging) == (2500, False)
    assert node.outer_store is not None


def test_the_old_join_windows_hold_nothing_back() -> None:
    b = StreamsBuilder()
    b.stream("left", TEXT).left_join(b.stream("right", TEXT), first, JoinWindows.of(1000))
    assert only(b, ir.StreamStreamJoin).outer_store is None


def test_joiners_may_be_expressions_of_left_right_and_key() -> None:
    b = StreamsBuilder()
    tweets, names = b.stream("tweets", TWEETS), b.table("names", TEXT)
    joined = tweets.join(names, {"likes": left["likes"], "name": right, "by": key})
    assert joined.values.type == Struct(
        (("likes", Primitive.BIGINT), ("name", Primitive.STRING), ("by", Primitive.STRING))
    )
    assert only(b, ir.StreamTableJoin).has_key


def test_a_stream_waits_for_a_versioned_table() -> None:
    b = StreamsBuilder()
    versioned = Materialized.as_(Stores.persistent_versioned_key_value_store("rows", 1000))
    b.stream("in", TEXT).join(b.table("rows", TEXT, versioned), first, joined=Joined.with_(grace=500))
    node = only(b, ir.StreamTableJoin)
    assert node.grace_ms == 500
    assert node.buffer is not None
    assert only(b, ir.TableSource).table.history_ms == 1000


def test_a_global_table_is_joined_by_any_key_without_repartitioning() -> None:
    b = StreamsBuilder()
    everywhere = b.global_table("everywhere", TEXT, Materialized.as_("everywhere"))
    joined = b.stream("in", TEXT).select_key(by_value).join(everywhere, first, key_selector=value)
    assert joined.has_new_keys
    assert everywhere.queryable_store_name == "everywhere"
    assert isinstance(only(b, ir.StreamGlobalTableJoin).selector, Expression)


def test_tables_join_by_key_or_by_foreign_key() -> None:
    b = StreamsBuilder()
    orders, customers = b.table("orders", TEXT), b.table("customers", NUMBERS)
    orders.outer_join(customers, first, Materialized.as_("joined").with_value_serde(Serdes.long()))
    assert only(b, ir.TableTableJoin).table is not None
    partitioned = TableJoined.with_(lambda topic, key, value, count: 0, None)
    result = orders.foreign_key_join(customers, with_key(by_value), first, partitioned)
    node = only(b, ir.ForeignKeyJoin)
    assert node.extractor_has_key
    assert (node.left_table.value_serde, node.right_table.value_serde) == (StringSerde(), LongSerde())
    assert node.left_partitioner is not None
    assert node.right_partitioner is None
    assert not node.table.is_queryable
    assert result.queryable_store_name is None
    assert result.keys.serde == StringSerde()


# --- tables, stores, processors ------------------------------------------------------------------------------


def test_a_tables_operator_is_stored_only_under_a_name() -> None:
    b = StreamsBuilder()
    rows = b.table("in", TEXT)
    assert rows.filter(by_value).queryable_store_name is None
    assert rows.filter_not(by_value, Materialized.as_("kept")).queryable_store_name == "kept"
    assert rows.map_values(len, Materialized.with_(None, Serdes.long())).values.serde == LongSerde()
    assert rows.map_values_with_key(by_value, Materialized.as_("mapped")).queryable_store_name == "mapped"
    assert rows.map_values(functions.length(value)).values.type is Primitive.BIGINT


def test_a_suppression_knows_when_its_windows_close() -> None:
    b = StreamsBuilder()
    sessions = SessionWindows.of_inactivity_gap_and_grace(100, 20)
    counts = b.stream("in", TEXT).group_by_key().windowed_by(sessions).count()
    bounded = BufferConfig.max_bytes(10).with_max_records(5).shut_down_when_full()
    counts.filter(by_value).suppress(Suppressed.until_window_closes(bounded))
    node = only(b, ir.Suppress)
    assert (node.until_window_close, node.grace_ms, node.is_strict) == (True, 120, True)
    assert (node.max_bytes, node.max_records) == (10, 5)


def test_a_processor_has_the_stores_it_names() -> None:
    b = StreamsBuilder()
    supplier = Stores.persistent_window_store("seen", 1000, 100, retain_duplicates=True)
    b.add_state_store(Stores.window_store_builder(supplier, Serdes.string(), Serdes.long()).with_caching_enabled())
    b.table("rows", TEXT, Materialized.as_("rows"))
    b.stream("in", TEXT).process(Idle, "seen", "rows")
    node = only(b, ir.Process)
    assert node.connected == ("rows",)
    (store,) = node.stores
    assert (store.kind, store.window_size_ms, store.retain_duplicates) == (ir.StoreKind.WINDOW, 100, True)
    assert (store.table.retention_ms, store.table.is_caching) == (1000, True)


def test_a_supplier_may_bring_its_own_stores() -> None:
    class Supplier:
        def stores(self) -> list[Any]:
            supplier = Stores.in_memory_key_value_store("own")
            return [Stores.timestamped_key_value_store_builder(supplier, Serdes.string(), Serdes.long())]

        def __call__(self) -> object:
            return object()

    b = StreamsBuilder()
    stream = b.stream("in", TEXT)
    stream.process(Supplier())
    stream.process_values(Supplier())
    owned = [node.stores[0] for node in b.build().nodes if isinstance(node, ir.Process)]
    assert owned[0] is owned[1]
    assert owned[0].kind is ir.StoreKind.TIMESTAMPED_KEY_VALUE


def test_printing_shows_label_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    b = StreamsBuilder()
    b.stream("in", TEXT).print("tweets")
    only(b, ir.ForEach).action.call("k", "v")
    assert capsys.readouterr().out == "[tweets]: k, v\n"


def test_a_topology_without_lambdas_travels() -> None:
    b = StreamsBuilder()
    b.stream("in", TEXT).filter(value != "").group_by(by_value).count().to_stream().to("out")
    topology = pickle.loads(pickle.dumps(b.build()))
    assert [node.name for node in topology.nodes] == [node.name for node in b.build().nodes]
