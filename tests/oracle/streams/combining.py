"""Many cases as one: their topologies side by side in one, their inputs one after the other in time.

What starts a topology on Spark costs seconds, whatever its size; so many cases share one start. Start at `combined`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["combined", "in_taken_order"]

Case = dict[str, Any]
NAMES = ("id", "topic", "store", "name", "global")
GLOBAL = ("global_table", "add_global_store")
LISTS = ("in", "stores", "more_topics", "choose")


def combined(cases: Sequence[Case], identity: str) -> Case:
    """One case that does what all of them do, each under names of its own."""
    operators = [_renamed(operator, f"c{number}-") for number, case in enumerate(cases) for operator in case["ops"]]
    inputs = [_renamed(event, f"c{number}-") for number, case in enumerate(cases) for event in case["inputs"]]
    return {"id": identity, "ops": operators, "inputs": inputs}


def _renamed(part: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    renamed = dict(part)
    for field in NAMES:
        if field in renamed:
            renamed[field] = prefix + renamed[field]
    for field in LISTS:
        if field in renamed:
            renamed[field] = [prefix + name for name in renamed[field]]
    if "as" in renamed and "store" in renamed["as"]:
        renamed["as"] = {**renamed["as"], "store": prefix + renamed["as"]["store"]}
    return renamed


def in_taken_order(case: Case, partition_of: Any) -> Case:
    """The same case with its inputs in the order in which one batch of them would be taken.

    That is offset order within a partition, and between partitions by the largest timestamp so far.
    """
    topics = [topic for operator in case["ops"] for topic in _read(operator)]
    globals_first = {operator["topic"] for operator in case["ops"] if operator["op"] in GLOBAL}
    clocks: dict[tuple[str, int], int] = {}
    keyed = []
    for event in case["inputs"]:
        place = event["topic"], partition_of(event)
        clocks[place] = max(event["timestamp"], clocks.get(place, event["timestamp"]))
        is_global = event["topic"] in globals_first
        keyed.append((not is_global, 0 if is_global else clocks[place], topics.index(event["topic"]), place[1], event))
    ordered = sorted(keyed, key=lambda entry: entry[:4])
    return {**case, "inputs": [entry[-1] for entry in ordered]}


def _read(operator: Mapping[str, Any]) -> list[str]:
    if operator["op"] in ("stream", "table", *GLOBAL):
        return [operator["topic"], *operator.get("more_topics", ())]
    return []
