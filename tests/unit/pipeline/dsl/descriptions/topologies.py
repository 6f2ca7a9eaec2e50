"""The topologies of `Descriptions.java` once more, in Python. Start at `TOPOLOGIES`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from moldau.streams import (
    Branched,
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TableJoined,
    TimeWindows,
)

MINUTE = timedelta(minutes=1)
TOPOLOGIES: dict[str, Callable[[StreamsBuilder], Any]] = {}


def topology(describe: Callable[[StreamsBuilder], Any]) -> Callable[[StreamsBuilder], Any]:
    TOPOLOGIES[describe.__name__] = describe
    return describe


def keep(key: Any, value: Any) -> bool:
    return True


def same(value: Any) -> Any:
    return value


def pair(key: Any, value: Any) -> tuple[Any, Any]:
    return key, value


def by_value(key: Any, value: Any) -> Any:
    return value


def first(left: Any, right: Any) -> Any:
    return left


def folded(key: Any, value: Any, aggregate: Any) -> Any:
    return aggregate


def zero() -> int:
    return 0


def table(builder: StreamsBuilder, topic: str) -> KTable:
    return builder.table(topic)


CLOSE = JoinWindows.of_time_difference_with_no_grace(MINUTE)


class Quiet:
    def process(self, record: Any) -> None: ...


class QuietTransformer:
    def transform(self, key: Any, value: Any) -> Any: ...


@topology
def stateless(b: StreamsBuilder) -> None:
    stream = b.stream("in").filter(keep).filter_not(keep).map_values(same).map(pair)
    stream.flat_map_values(lambda value: [value]).select_key(by_value).peek(lambda key, value: None).to("out")


@topology
def named_stateless(b: StreamsBuilder) -> None:
    stream = b.stream("in", Consumed.as_("source")).filter(keep, Named.as_("keep"))
    stream.map_values(same, "change").to("out", Produced.as_("sink"))


@topology
def word_count(b: StreamsBuilder) -> None:
    b.stream("in").flat_map_values(lambda value: [value]).group_by(by_value).count().to_stream().to("out")


@topology
def word_count_named_store(b: StreamsBuilder) -> None:
    b.stream("in").group_by(by_value).count(Materialized.as_("counts")).to_stream().to("out")


@topology
def word_count_serdes_only(b: StreamsBuilder) -> None:
    b.stream("in").group_by(by_value).count(Materialized.with_(None, Serdes.long())).to_stream().to("out")


@topology
def word_count_named_group(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by(by_value, Grouped.as_("by-word")).count(named="counting")
    counts.to_stream(named="stream").to("out")


@topology
def two_folds_of_a_named_group(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(by_value, Grouped.as_("by-word"))
    grouped.count().to_stream().to("counts")
    grouped.reduce(first).to_stream().to("latest")


@topology
def two_folds_of_a_group(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by(by_value)
    grouped.count().to_stream().to("counts")
    grouped.reduce(first).to_stream().to("latest")


@topology
def count_by_key(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count().to_stream().to("out")


@topology
def aggregate_by_key(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().aggregate(zero, folded).to_stream().to("out")


@topology
def tumbling(b: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_with_no_grace(MINUTE)
    b.stream("in").group_by_key().windowed_by(windows).count().to_stream().to("out")


@topology
def hopping_reduce(b: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(MINUTE, MINUTE).advance_by(10_000)
    b.stream("in").select_key(by_value).group_by_key().windowed_by(windows).reduce(first).to_stream().to("out")


@topology
def sliding(b: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace(MINUTE)
    counts = b.stream("in").group_by_key().windowed_by(windows).count(Materialized.with_(None, Serdes.long()))
    counts.to_stream().to("out")


@topology
def sessions(b: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_with_no_grace(MINUTE)
    sessions = b.stream("in").group_by_key().windowed_by(windows)
    sessions.aggregate(zero, folded, lambda key, one, other: one).to_stream().to("out")


@topology
def suppressed(b: StreamsBuilder) -> None:
    counts = b.stream("in").group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(MINUTE)).count()
    counts.suppress(Suppressed.until_window_closes(BufferConfig.unbounded())).to_stream().to("out")


@topology
def suppressed_named(b: StreamsBuilder) -> None:
    later = Suppressed.until_time_limit(MINUTE, BufferConfig.max_records(10)).with_name("later")
    b.table("in").suppress(later).to_stream().to("out")


@topology
def stream_join(b: StreamsBuilder) -> None:
    b.stream("left").join(b.stream("right"), first, CLOSE).to("out")


@topology
def stream_left_join(b: StreamsBuilder) -> None:
    b.stream("left").left_join(b.stream("right"), first, CLOSE).to("out")


@topology
def stream_outer_join(b: StreamsBuilder) -> None:
    b.stream("left").outer_join(b.stream("right"), first, CLOSE).to("out")


@topology
def stream_join_named(b: StreamsBuilder) -> None:
    left = b.stream("left").select_key(by_value)
    right = b.stream("right").select_key(by_value)
    left.outer_join(right, first, CLOSE, joined=StreamJoined.as_("pairs").with_store_name("pair-stores")).to("out")


@topology
def stream_join_repartitioned(b: StreamsBuilder) -> None:
    left = b.stream("left").map(pair)
    left.join(b.stream("right").select_key(by_value), first, CLOSE).to("out")


@topology
def stream_joined_twice(b: StreamsBuilder) -> None:
    keyed = b.stream("left").select_key(by_value)
    keyed.join(b.stream("one"), first, CLOSE).to("out1")
    keyed.join(b.stream("two"), first, CLOSE).to("out2")


@topology
def self_join(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.join(stream, first, CLOSE).to("out")


@topology
def table_join(b: StreamsBuilder) -> None:
    b.stream("in").join(b.table("table"), first).to("out")


@topology
def table_left_join_repartitioned(b: StreamsBuilder) -> None:
    b.stream("in").select_key(by_value).left_join(b.table("table"), first).to("out")


@topology
def table_join_named(b: StreamsBuilder) -> None:
    b.stream("in").select_key(by_value).join(b.table("table"), first, joined=Joined.as_("enrich")).to("out")


@topology
def filtered_table_join(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.join(b.table("table").filter(keep).map_values(same), first).to("out")


@topology
def global_table_join(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.join(b.global_table("global"), first, key_selector=by_value).to("out")


@topology
def global_table_named(b: StreamsBuilder) -> None:
    everywhere = b.global_table("global", materialized=Materialized.as_("everywhere"))
    b.stream("in").left_join(everywhere, first, key_selector=by_value, joined="look-up").to("out")


@topology
def tables_join(b: StreamsBuilder) -> None:
    b.table("left").join(b.table("right"), first).to_stream().to("out")


@topology
def tables_outer_join_stored(b: StreamsBuilder) -> None:
    joined = b.table("left").outer_join(b.table("right"), first, Materialized.as_("joined"), "both")
    joined.to_stream().to("out")


@topology
def tables_left_join_serdes(b: StreamsBuilder) -> None:
    b.table("left").left_join(b.table("right"), first, Materialized.with_(None, None)).to_stream().to("out")


@topology
def three_tables(b: StreamsBuilder) -> None:
    b.table("one").join(b.table("two"), first).left_join(b.table("three"), first).to_stream().to("out")


@topology
def foreign_key_join(b: StreamsBuilder) -> None:
    b.table("left").foreign_key_join(b.table("right"), same, first).to_stream().to("out")


@topology
def foreign_key_left_join_named(b: StreamsBuilder) -> None:
    left, right = b.table("left"), b.table("right")
    joined = left.foreign_key_left_join(right, same, first, TableJoined.as_("fk"), Materialized.as_("result"))
    joined.to_stream().to("out")


@topology
def suppressed_foreign_key_join(b: StreamsBuilder) -> None:
    later = Suppressed.until_time_limit(MINUTE, BufferConfig.max_records(10))
    b.table("left").suppress(later).foreign_key_join(b.table("right"), same, first).to_stream().to("out")


@topology
def table_only(b: StreamsBuilder) -> None:
    b.table("in").to_stream().to("out")


@topology
def table_stored(b: StreamsBuilder) -> None:
    b.table("in", Consumed.as_("reader"), Materialized.as_("store")).to_stream().to("out")


@topology
def table_operators(b: StreamsBuilder) -> None:
    serdes = Materialized.with_(None, None)
    rows = b.table("in").filter(keep, Materialized.as_("kept")).filter_not(keep, serdes).map_values(same, serdes)
    rows.to_stream(by_value).to("out")


@topology
def table_transformed(b: StreamsBuilder) -> None:
    b.add_state_store(seen())
    b.table("in").transform_values(QuietTransformer, "seen").to_stream().to("out")


@topology
def table_grouped(b: StreamsBuilder) -> None:
    b.table("in").group_by(pair).count().to_stream().to("out")


@topology
def table_grouped_named(b: StreamsBuilder) -> None:
    grouped = b.table("in").group_by(pair, Grouped.as_("by-make"))
    grouped.aggregate(zero, folded, folded, Materialized.as_("folded"), "folding").to_stream().to("out")


@topology
def table_grouped_reduced(b: StreamsBuilder) -> None:
    b.table("in").group_by(pair).reduce(first, first).to_stream().to("out")


@topology
def split(b: StreamsBuilder) -> None:
    branching = b.stream("in").split("size-").branch(keep, Branched.as_("big")).branch(keep)
    branches = branching.default_branch()
    branches["size-big"].to("big")
    branches["size-2"].map_values(same).to("second")
    branches["size-0"].to("rest")


@topology
def split_chained(b: StreamsBuilder) -> None:
    def one(branch: KStream) -> None:
        branch.map_values(same).to("one")

    branching = b.stream("in").split().branch(keep, Branched.with_consumer(one))
    branching.branch(keep, Branched.with_consumer(lambda branch: branch.to("two"))).no_default_branch()


@topology
def merged(b: StreamsBuilder) -> None:
    b.stream("one").merge(b.stream("two")).merge(b.stream("three").map_values(same)).to("out")


@topology
def repartitioned(b: StreamsBuilder) -> None:
    b.stream("in").repartition().to("out")


@topology
def repartitioned_named(b: StreamsBuilder) -> None:
    spread = b.stream("in").select_key(by_value).repartition(Repartitioned.as_("spread"))
    spread.group_by_key().count().to_stream().to("out")


@topology
def to_table(b: StreamsBuilder) -> None:
    b.stream("in").to_table().to_stream().to("out")


@topology
def to_table_repartitioned(b: StreamsBuilder) -> None:
    b.stream("in").select_key(by_value).to_table(Materialized.as_("rows")).to_stream().to("out")


@topology
def cogrouped(b: StreamsBuilder) -> None:
    one = b.stream("one").group_by_key().cogroup(folded)
    one.cogroup(b.stream("two").group_by_key(), folded).aggregate(zero).to_stream().to("out")


@topology
def cogrouped_windows_named(b: StreamsBuilder) -> None:
    one = b.stream("one").group_by(by_value, Grouped.as_("first")).cogroup(folded)
    both = one.cogroup(b.stream("two").group_by(by_value, Grouped.as_("second")), folded)
    windowed = both.windowed_by(TimeWindows.of_size_with_no_grace(MINUTE))
    windowed.aggregate(zero, Materialized.as_("folded"), "both").to_stream().to("out")


@topology
def processors(b: StreamsBuilder) -> None:
    b.add_state_store(seen())
    stream = b.stream("in")
    stream.process(Quiet, "seen").to("one")
    stream.process_values(Quiet, "seen", named="values").to("two")
    b.stream("other").process(Quiet, "seen").to("three")


@topology
def fan_out(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.map_values(same).to("one")
    stream.filter(keep).map_values(same).filter(keep).to("two")
    stream.filter(keep).to("three")
    stream.to("four")
    stream.peek(lambda key, value: None).map_values(same).map_values(same).to("five")
    stream.for_each(lambda key, value: None)
    stream.map_values(same).filter(keep).to("six")


@topology
def fan_in(b: StreamsBuilder) -> None:
    merged = b.stream("a").merge(b.stream("b").map_values(same)).merge(b.stream("c"))
    merged = merged.merge(b.stream("d").filter(keep).map_values(same))
    merged.to("out")
    merged.group_by_key().count().to_stream().to("counts")
    merged.join(b.table("t"), first).to("joined")


@topology
def several_topics(b: StreamsBuilder) -> None:
    b.stream(["alpha", "beta", "gamma", "delta"]).to("out")


@topology
def pattern(b: StreamsBuilder) -> None:
    b.stream(re.compile("in-.*")).to("out")


@topology
def read_twice(b: StreamsBuilder) -> None:
    b.stream("in").map_values(same).to("one")
    b.stream("in").filter(keep).to("two")


@topology
def feeds_itself(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.join(stream.group_by(by_value).count(), first).to("out")


@topology
def several_globals(b: StreamsBuilder) -> None:
    one_table = b.global_table("g1")
    one = b.stream("one")
    other_table = b.global_table("g2")
    joined = one.join(one_table, first, key_selector=by_value)
    joined.join(other_table, first, key_selector=by_value).to("out")
    b.stream("two").to("copy")


def seen() -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store("seen"), Serdes.string(), Serdes.long())
