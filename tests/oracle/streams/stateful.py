"""Drawing what keeps state: groupings, windows, aggregates, joins, processors. Functions on a `Draw`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.oracle.streams.drawing import Draw, Flow

__all__ = [
    "add_processor",
    "cogroup",
    "fold",
    "foreign_key_join",
    "global_join",
    "group",
    "group_table",
    "stream_join",
    "stream_table_join",
    "table_join",
    "window",
    "windowed",
]

WINDOW_KINDS = ("tumbling", "hopping", "sliding", "session", "unlimited")


def group(draw: Draw, flow: Flow) -> Flow:
    grouped = Flow("", "grouped", "text", flow.values)
    if flow.keys == "text" and draw.chance(0.6):
        return draw.add("group_by_key", [flow], grouped, name=draw.name())
    return draw.add("group_by", [flow], grouped, **{"with": draw.key_selector()}, name=draw.name())


def group_table(draw: Draw, flow: Flow) -> Flow:
    grouped = Flow("", "grouped table", "text", flow.values)
    return draw.add("group_by", [flow], grouped, **{"with": draw.key_selector()}, name=draw.name())


def window(draw: Draw, kind: str) -> dict[str, Any]:
    grace = draw.time(0, 0, 3, 10, 30)
    match kind:
        case "tumbling":
            return {"kind": "time", "size": draw.time(5, 10, 17), "grace": grace}
        case "hopping":
            size, advance = draw.pick(((10, 5), (10, 3), (12, 4), (7, 6)))
            return {"kind": "time", "size": size * draw.scale, "advance": advance * draw.scale, "grace": grace}
        case "sliding":
            return {"kind": "sliding", "difference": draw.time(5, 10), "grace": grace}
        case "session":
            return {"kind": "session", "gap": draw.time(3, 5, 10), "grace": grace}
    return {"kind": "unlimited", "start": draw.time(0, 10)}


def windowed(draw: Draw, flow: Flow, kind: str | None = None, *, is_final: bool | None = None) -> Flow:
    """Windows on a grouping; some emit only when they close."""
    kinds = WINDOW_KINDS if flow.kind == "grouped" else WINDOW_KINDS[:-1]
    drawn = window(draw, kind or draw.pick(kinds))
    if is_final is None:
        is_final = draw.chance(0.25)
    may_be_final = flow.kind == "grouped" and drawn["kind"] != "unlimited"
    emit = "final" if is_final and may_be_final else None
    may_close = drawn["kind"] != "unlimited"
    result = Flow("", "windowed", drawn["kind"], flow.values, drawn, may_close)
    return draw.add("windowed_by", [flow], result, window=drawn, emit=emit)


def cogroup(draw: Draw, flows: list[Flow]) -> Flow:
    adders = [{"fn": draw.pick(("concat", "keyed"))} for _ in flows]
    return draw.add("cogroup", flows, Flow("", "cogrouped"), adders=adders)


def fold(draw: Draw, flow: Flow) -> Flow:
    """Count, reduce or aggregate a grouping, windowed or not, of a stream, of streams or of a table."""
    is_cogroup = _is_cogroup(draw, flow)
    choices = ["aggregate"] if is_cogroup else ["count", "aggregate"]
    if flow.values == "text" and not is_cogroup:
        choices.append("reduce")
    op = draw.pick(choices)
    store = draw.store()
    if store and store.get("store") and flow.window and flow.window["kind"] in ("time", "sliding", "session"):
        store.update(_retention(draw, flow.window))
    # Some folds have no form with a name and without a store.
    name = draw.name() if store is not None else None
    result = replace(flow, kind="table", values="number" if op == "count" else "text")
    details: dict[str, Any] = {"as": store, "name": name}
    if op == "reduce":
        details["adder"] = {"fn": draw.pick(("concat", "concat", "last"))}
        if draw.chance(0.15):
            details["adder"] = {"fn": "nullable", "mod": 6}
        if flow.kind == "grouped table":
            details["subtractor"] = {"fn": "minus"}
    elif op == "aggregate":
        details["initial"] = draw.pick(("", "0", None)) if draw.chance(0.3) else ""
        details.update(_aggregators(draw, flow, is_cogroup))
    return draw.add(op, [flow], result, **details)


def _is_cogroup(draw: Draw, flow: Flow) -> bool:
    by_id = {operator["id"]: operator for operator in draw.operators}
    operator = by_id[flow.id]
    if operator["op"] == "windowed_by":
        operator = by_id[operator["in"][0]]
    return bool(operator["op"] == "cogroup")


def _retention(draw: Draw, drawn: dict[str, Any]) -> dict[str, int]:
    if draw.chance(0.7):
        return {}
    least = sum(drawn.get(part, 0) for part in ("size", "difference", "gap", "grace"))
    if drawn["kind"] == "sliding":
        least += drawn["difference"]
    return {"retention": least + draw.time(0, 7, 50)}


def _aggregators(draw: Draw, flow: Flow, is_cogroup: bool) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if not is_cogroup:
        details["adder"] = {"fn": draw.pick(("concat", "keyed"))}
        if draw.chance(0.15):
            details["adder"] = {"fn": "nullable", "mod": 6}
        details["adder"] = draw.failing() or details["adder"]
    if flow.kind == "grouped table":
        details["subtractor"] = {"fn": "minus"}
    if flow.keys == "session":
        details["merger"] = {"fn": "merge"}
    return details


# --- joins -----------------------------------------------------------------------------------------------------


def stream_join(draw: Draw, left: Flow, right: Flow, kind: str | None = None) -> Flow:
    before, after = draw.time(0, 3, 5, 10), draw.time(0, 3, 5, 10)
    if draw.chance(0.6):
        after = before
    drawn = {"before": before, "after": after}
    if draw.chance(0.75):
        drawn["grace"] = draw.time(0, 2, 10, 30)
    how = {"store": draw.store_name()} if draw.chance(0.15) else None
    details = {"kind": kind or draw.pick(("inner", "left", "outer")), "as": how, "name": draw.name()}
    joiner = draw.joiner(may_use_key=True)
    if joiner["fn"] == "failing":
        # Kafka Streams tries a held record whose joiner failed for ever again, and nothing behind it: differences.md.
        joiner = {"fn": "pair"}
    result = Flow("", "stream")
    return draw.add("stream_join", [left, right], result, window=drawn, joiner=joiner, **details)


def stream_table_join(
    draw: Draw, left: Flow, right: Flow, *, grace: int | None = None, kind: str | None = None
) -> Flow:
    details = {"kind": kind or draw.pick(("inner", "left")), "grace": grace, "name": draw.name()}
    joiner = draw.joiner(may_use_key=True)
    result = replace(left, values="text")
    return draw.add("stream_table_join", [left, right], result, joiner=joiner, **details)


def global_join(draw: Draw, left: Flow, right: Flow, kind: str | None = None) -> Flow:
    details = {"kind": kind or draw.pick(("inner", "left")), "name": draw.name()}
    joiner, selector = draw.joiner(may_use_key=True), draw.key_selector()
    result = replace(left, values="text")
    return draw.add("global_join", [left, right], result, joiner=joiner, selector=selector, **details)


def table_join(draw: Draw, left: Flow, right: Flow, kind: str | None = None) -> Flow:
    details = {"kind": kind or draw.pick(("inner", "left", "outer")), "as": draw.store(), "name": draw.name()}
    joiner = draw.joiner(may_use_key=False)
    result = replace(left, values="text", is_grouped_window=False)
    return draw.add("table_join", [left, right], result, joiner=joiner, **details)


def foreign_key_join(draw: Draw, left: Flow, right: Flow, kind: str | None = None) -> Flow:
    if draw.forgets_history(left):
        # Kafka Streams looks rows up in the versioned table that the step hides; see differences.md.
        left = draw.source("table", **{"as": {"store": draw.store_name()}})
    if not draw.is_source(left) and draw.roots(left) & draw.roots(right):
        # One input record would change both sides, the left one later; see differences.md.
        right = draw.source("table")
    details = {"kind": kind or draw.pick(("inner", "left")), "as": draw.store(), "name": draw.name()}
    joiner, extractor = draw.joiner(may_use_key=False), draw.pick(FOREIGN_KEYS)
    result = Flow("", "table")
    return draw.add("foreign_key_join", [left, right], result, joiner=joiner, extractor=extractor, **details)


FOREIGN_KEYS: tuple[dict[str, Any], ...] = (
    {"fn": "bucket", "mod": 3},
    {"fn": "nullable_bucket", "mod": 4},
    {"fn": "first"},
    {"fn": "key_bucket", "mod": 2},
)

# --- processors ------------------------------------------------------------------------------------------------

PROCESSORS = ("changed", "stamp", "twice", "tick", "neighbours", "sessions", "previous", "ranges", "annotate")
STORE_KINDS = {
    "changed": "key-value",
    "tick": "key-value",
    "ranges": "key-value",
    "previous": "timestamped",
    "neighbours": "window",
    "sessions": "session",
}


def add_processor(draw: Draw, flow: Flow, which: str | None = None) -> Flow:
    """A processor with the store it needs."""
    which = which or draw.pick(PROCESSORS)
    stores = None
    if which in STORE_KINDS or (which == "annotate" and draw.chance(0.5)):
        stores = [_add_store(draw, STORE_KINDS.get(which, "key-value"))]
    texts = Flow("", "stream")
    if which == "annotate":
        return draw.add("process_values", [flow], replace(flow, values="text"), stores=stores, name=draw.name())
    details: dict[str, Any] = {"processor": which, "stores": stores, "name": draw.name()}
    if which == "stamp":
        draw.looks_at_stream_time = True
        details["shift"] = draw.time(-5, 0, 0, 7)
    elif which == "tick":
        clock = draw.pick(("stream", "wall"))
        draw.needs_wall_clock |= clock == "wall"
        draw.looks_at_stream_time |= clock == "stream"
        details.update(clock=clock, interval=draw.time(5, 20), limit=draw.pick((None, None, 2)))
    elif which in ("neighbours", "sessions"):
        details["reach"] = draw.time(5, 10)
    if which == "neighbours":
        details["duplicates"] = draw.operators[-1]["duplicates"]
    return draw.add("process", [flow], texts, **details)


def _add_store(draw: Draw, kind: str) -> str:
    name = draw.store_name()
    details: dict[str, Any] = {"store": name, "kind": kind, "logging": draw.chance(0.8)}
    if kind in ("window", "session"):
        details["retention"] = draw.time(20, 60)
    if kind == "window":
        details.update(size=draw.time(5, 10), duplicates=draw.chance(0.3))
    draw.add("add_store", [], **details)
    return name
