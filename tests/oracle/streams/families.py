"""What cases are about: one family for each operator, and chains that mix them. Start at `draw_case`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.oracle.streams import stateful
from tests.oracle.streams.drawing import Draw, Flow
from tests.oracle.streams.inputs import draw_inputs

__all__ = ["FAMILIES", "draw_case"]

Case = dict[str, Any]
CACHE = "statestore.cache.max.bytes"
CONTINUE = "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler"


def draw_case(family: str, seed: int) -> Case:
    """The same family and seed give the same case, always."""
    rng = random.Random(f"{family}/{seed}")
    draw = Draw(rng, scale=rng.choice((1, 1, 1, 1000, 60_000)))
    FAMILIES[family](draw)
    draw.sink_all()
    inputs = draw_inputs(rng, draw.topics, draw.scale, with_wall_clock=draw.needs_wall_clock)
    case: Case = {"id": f"{family}/{seed}", "ops": draw.operators, "inputs": inputs}
    if draw.config:
        case["config"] = draw.config
    if draw.has_windows and CACHE in draw.config:
        case["without_stores"] = True
    if rng.random() < 0.25:
        case["partitions"] = rng.choice((2, 3, 4))
    elif rng.random() < 0.5:
        case["plain"] = True
    if draw.looks_at_stream_time:
        case["by_subtopology"] = True
        case["plain"] = False
    # Stores on disk are what Kafka Streams has by default, and cost it ten times the time. Key-value stores in memory
    # do the same; window and session stores in memory differ in when they forget.
    if not draw.has_windows and rng.random() < 0.9:
        case["in_memory"] = True
    return case


def _stream(draw: Draw) -> Flow:
    """A source with perhaps a few steps after it, its keys texts."""
    return draw.some(draw.stateless, draw.source(), 2)


def _table(draw: Draw) -> Flow:
    if draw.chance(0.15):
        return draw.to_table(_stream(draw))
    if draw.chance(0.15):
        return draw.texts(stateful.fold(draw, stateful.group(draw, _stream(draw))))
    return draw.some(draw.table_step, draw.source("table"), 1)


def stateless(draw: Draw) -> None:
    flow = draw.stateless(draw.source())
    if draw.chance(0.5):
        flow = draw.merge(draw.texts(flow), draw.texts(_stream(draw)))
    if draw.chance(0.5):
        for branch in draw.split(flow):
            draw.some(draw.stateless, branch, 2)
    else:
        draw.some(draw.stateless, flow, 3)


def repartition(draw: Draw) -> None:
    flow = draw.repartition(_stream(draw))
    if draw.chance(0.5):
        flow = draw.merge(flow, _stream(draw))
    draw.some(draw.stateless, flow, 2)


def aggregate(draw: Draw) -> None:
    draw.some(draw.table_step, stateful.fold(draw, stateful.group(draw, _stream(draw))), 1)


def _windowed(kind: str, *, is_final: bool) -> Callable[[Draw], None]:
    def family(draw: Draw) -> None:
        grouped = stateful.group(draw, _stream(draw))
        table = stateful.fold(draw, stateful.windowed(draw, grouped, kind, is_final=is_final))
        draw.some(draw.table_step, table, 1)

    return family


def _windowed_table(draw: Draw) -> Flow:
    return stateful.fold(draw, stateful.windowed(draw, stateful.group(draw, _stream(draw))))


def windowed_table_join(draw: Draw) -> None:
    """Two windowed aggregates with the same windows, joined by key and window."""
    left = _windowed_table(draw)
    grouped = stateful.group(draw, _stream(draw))
    windowed = replace(left, kind="windowed", values=grouped.values)
    right = stateful.fold(draw, draw.add("windowed_by", [grouped], windowed, window=left.window))
    joined = stateful.table_join(draw, left, right)
    draw.some(draw.table_step, joined, 1)


def cogroup(draw: Draw) -> None:
    # Without names of their own two repartition topics of one cogroup get the same one, and Kafka Streams refuses that.
    draw.name_chance, usual = 1.0, draw.name_chance
    groups = [stateful.group(draw, draw.texts(_stream(draw))) for _ in range(draw.pick((1, 2, 2, 3)))]
    draw.name_chance = usual
    cogrouped = stateful.cogroup(draw, groups)
    if draw.chance(0.6):
        cogrouped = stateful.windowed(draw, cogrouped)
    stateful.fold(draw, cogrouped)


def table(draw: Draw) -> None:
    flow = draw.some(draw.table_step, draw.source("table"), 3)
    draw.some(draw.stateless, draw.to_stream(flow), 1)


def to_table(draw: Draw) -> None:
    draw.some(draw.table_step, draw.to_table(_stream(draw)), 2)


def table_aggregate(draw: Draw) -> None:
    table = _windowed_table(draw) if draw.chance(0.2) else _table(draw)
    grouped = stateful.group_table(draw, table)
    draw.some(draw.table_step, stateful.fold(draw, grouped), 1)


def _stream_join(kind: str) -> Callable[[Draw], None]:
    def family(draw: Draw) -> None:
        left = _stream(draw)
        right = left if draw.chance(0.08) else _stream(draw)
        draw.some(draw.stateless, stateful.stream_join(draw, left, right, kind), 1)

    return family


def stream_table_join(draw: Draw) -> None:
    stateful.stream_table_join(draw, _stream(draw), _table(draw))


def stream_versioned_table_join(draw: Draw) -> None:
    """Records wait for their grace, and find the row as it was at their time."""
    versioned = {"store": draw.store_name(), "versioned": draw.time(20, 60, 200)}
    table = draw.source("table", **{"as": versioned})
    grace = draw.time(0, 3, 10, 19) if draw.chance(0.8) else None
    stream = _stream(draw)
    # A left join with grace fails in Kafka Streams on a record without a key.
    keyed = draw.add("filter", [stream], stream, **{"with": {"fn": "has_key"}})
    stateful.stream_table_join(draw, keyed, table, grace=grace)


def global_join(draw: Draw) -> None:
    stateful.global_join(draw, _stream(draw), draw.source("global"))


def _table_join(kind: str) -> Callable[[Draw], None]:
    def family(draw: Draw) -> None:
        left = _table(draw)
        right = left if draw.chance(0.05) else _table(draw)
        joined = draw.some(draw.table_step, stateful.table_join(draw, left, right, kind), 1)
        if draw.chance(0.2):
            stateful.table_join(draw, joined, _table(draw))
        elif draw.chance(0.2):
            stateful.fold(draw, stateful.group_table(draw, joined))

    return family


def _foreign_key_join(kind: str) -> Callable[[Draw], None]:
    def family(draw: Draw) -> None:
        joined = stateful.foreign_key_join(draw, _table(draw), _table(draw), kind)
        draw.some(draw.table_step, joined, 1)

    return family


def suppress_until_close(draw: Draw) -> None:
    grouped = stateful.group(draw, _stream(draw))
    kind = draw.pick(("tumbling", "hopping", "sliding", "session"))
    table = stateful.fold(draw, stateful.windowed(draw, grouped, kind, is_final=False))
    draw.suppress(draw.some(draw.table_step, table, 1), until_close=True)


def suppress_for_time(draw: Draw) -> None:
    if draw.chance(0.5):
        flow = _table(draw)
    else:
        flow = stateful.fold(draw, stateful.windowed(draw, stateful.group(draw, _stream(draw)), is_final=False))
    suppressed = draw.suppress(flow, until_close=False)
    if suppressed.keys == "text" and draw.chance(0.3):
        stateful.fold(draw, stateful.group_table(draw, suppressed))


def _processor(which: str) -> Callable[[Draw], None]:
    def family(draw: Draw) -> None:
        flow = stateful.add_processor(draw, _stream(draw), which)
        draw.some(draw.stateless, flow, 1)

    return family


def lookup(draw: Draw) -> None:
    """A processor that reads the store of a table."""
    table = draw.source("table", **{"as": {"store": draw.store_name()}})
    details: dict[str, Any] = {"processor": "lookup", "stores": [draw.operators[-1]["as"]["store"]]}
    draw.add("process", [_stream(draw)], Flow("", "stream"), **details, name=draw.name())
    draw.some(draw.table_step, table, 1)


def global_store(draw: Draw) -> None:
    """A store that a processor fills from a topic, and another one reads."""
    topic = f"in{len(draw.topics)}"
    draw.topics[topic] = "global"
    store, kind = draw.store_name(), draw.pick(("key-value", "timestamped"))
    draw.add("add_global_store", [], topic=topic, store=store, kind=kind, name=draw.name())
    for _ in range(draw.pick((1, 1, 2))):
        details: dict[str, Any] = {"processor": "consult", "global": store, "name": draw.name()}
        told = draw.add("process", [_stream(draw)], Flow("", "stream"), **details)
        draw.some(draw.stateless, told, 1)


def read_back(draw: Draw) -> None:
    """A topic that the topology writes and reads."""
    stream = _stream(draw)
    if draw.chance(0.5):
        stateful.fold(draw, stateful.group(draw, draw.read_back(stream, "stream")))
    else:
        stateful.stream_table_join(draw, _stream(draw), draw.read_back(stream, "table"))


def failing(draw: Draw) -> None:
    """Functions that fail for some records, which are left out and do not stop the rest."""
    draw.has_failures = True
    draw.config["processing.exception.handler"] = CONTINUE
    draw.pick((stateless, aggregate, table, table_aggregate, stream_table_join, chain, FAMILIES["tumbling"]))(draw)


def caching(draw: Draw) -> None:
    """Any other family with caches, which are emptied after every input record.

    What Kafka Streams shows of windows in the end depends on what its cache still has; see differences.md.
    """
    draw.config[CACHE] = "1000000"
    others = [family for name, family in FAMILIES.items() if name not in ("failing", "caching", "optimized")]
    draw.pick(others)(draw)


def optimized(draw: Draw) -> None:
    """Several uses of streams with new keys, and streams joined with themselves, each optimization alone or all."""
    settings = ("all", "merge.repartition.topics", "single.store.self.join", "reuse.ktable.source.topics")
    draw.config["topology.optimization"] = draw.pick(settings)
    flow = _stream(draw)
    for _ in range(draw.pick((1, 1, 2))):
        flow = draw.texts(draw.stateless(flow))
    for _ in range(draw.pick((1, 2, 3))):
        draw.pick(
            (
                lambda: stateful.fold(draw, stateful.group(draw, draw.texts(draw.some(draw.stateless, flow, 1)))),
                lambda: stateful.fold(draw, stateful.group(draw, flow)),
                lambda: stateful.stream_join(draw, flow, flow, "inner"),
                lambda: stateful.stream_join(draw, flow, _stream(draw)),
                lambda: stateful.stream_table_join(draw, flow, _table(draw)),
                lambda: draw.to_table(flow),
                lambda: stateful.fold(draw, stateful.group(draw, draw.merge(flow, draw.texts(_stream(draw))))),
            )
        )()


def chain(draw: Draw) -> None:
    """Anything after anything, up to a dozen operators."""
    draw.source()
    draw.source("table")
    for _ in range(draw.rng.randint(3, 9)):
        draw.pick(_STEPS)(draw)


def _any(draw: Draw, kind: str) -> Flow:
    """A stream or table with plain keys and values, one that is there or a new one."""
    found = [flow for flow in draw.flows if (flow.kind, flow.keys) == (kind, "text")]
    if not found or draw.chance(0.15):
        return draw.source(kind)
    return draw.texts(draw.pick(found))


def _step_on_windows(draw: Draw) -> None:
    grouped = stateful.group(draw, _any(draw, "stream"))
    table = stateful.fold(draw, stateful.windowed(draw, grouped))
    if draw.chance(0.7):
        draw.add("to_stream", [table], Flow("", "stream", "text", table.values), **{"with": {"fn": "key_text"}})


_STEPS: tuple[Callable[[Draw], object], ...] = (
    lambda draw: draw.stateless(_any(draw, "stream")),
    lambda draw: draw.stateless(_any(draw, "stream")),
    lambda draw: draw.merge(_any(draw, "stream"), _any(draw, "stream")),
    lambda draw: draw.split(_any(draw, "stream")),
    lambda draw: draw.repartition(_any(draw, "stream")),
    lambda draw: draw.to_table(_any(draw, "stream")),
    lambda draw: draw.to_stream(_any(draw, "table")),
    lambda draw: draw.table_step(_any(draw, "table")),
    lambda draw: draw.table_step(_any(draw, "table")),
    lambda draw: draw.suppress(_any(draw, "table"), until_close=False),
    lambda draw: stateful.fold(draw, stateful.group(draw, _any(draw, "stream"))),
    lambda draw: stateful.fold(draw, stateful.group_table(draw, _any(draw, "table"))),
    _step_on_windows,
    lambda draw: stateful.stream_join(draw, _any(draw, "stream"), _any(draw, "stream")),
    lambda draw: stateful.stream_table_join(draw, _any(draw, "stream"), _any(draw, "table")),
    lambda draw: stateful.global_join(draw, _any(draw, "stream"), draw.source("global")),
    lambda draw: stateful.table_join(draw, _any(draw, "table"), _any(draw, "table")),
    lambda draw: stateful.foreign_key_join(draw, _any(draw, "table"), _any(draw, "table")),
    lambda draw: stateful.add_processor(draw, _any(draw, "stream")),
)

FAMILIES: dict[str, Callable[[Draw], None]] = {
    "stateless": stateless,
    "repartition": repartition,
    "aggregate": aggregate,
    **{
        f"{kind}{'-final' if is_final else ''}": _windowed(kind, is_final=is_final)
        for kind in stateful.WINDOW_KINDS
        for is_final in (False, True)
        if not (kind == "unlimited" and is_final)
    },
    "cogroup": cogroup,
    "table": table,
    "to-table": to_table,
    "table-aggregate": table_aggregate,
    **{f"stream-join-{kind}": _stream_join(kind) for kind in ("inner", "left", "outer")},
    "stream-table-join": stream_table_join,
    "stream-versioned-table-join": stream_versioned_table_join,
    "global-join": global_join,
    **{f"table-join-{kind}": _table_join(kind) for kind in ("inner", "left", "outer")},
    **{f"foreign-key-join-{kind}": _foreign_key_join(kind) for kind in ("inner", "left")},
    "windowed-table-join": windowed_table_join,
    "suppress-until-close": suppress_until_close,
    "suppress-for-time": suppress_for_time,
    **{f"processor-{which}": _processor(which) for which in stateful.PROCESSORS},
    "lookup": lookup,
    "global-store": global_store,
    "read-back": read_back,
    "failing": failing,
    "caching": caching,
    "optimized": optimized,
    "chain": chain,
}
