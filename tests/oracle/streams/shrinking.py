"""Making a case that fails smaller while it still fails. Start at `shrunk`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["shrunk"]

Case = dict[str, Any]


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Fewer inputs, then fewer operators, then plainer inputs, until nothing more can go."""
    while True:
        smaller = _with_plainer_inputs(_with_fewer_operators(_with_fewer_inputs(case, fails), fails), fails)
        if len(json.dumps(smaller)) >= len(json.dumps(case)):
            return smaller
        case = smaller


def _with_fewer_inputs(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Leave out halves, quarters, and so on down to single records."""
    size = max(1, len(case["inputs"]) // 2)
    while True:
        start = 0
        while start < len(case["inputs"]):
            inputs = case["inputs"][:start] + case["inputs"][start + size :]
            candidate = {**case, "inputs": inputs}
            if inputs and fails(candidate):
                case = candidate
            else:
                start += size
        if size == 1:
            return case
        size //= 2


def _with_fewer_operators(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Leave out operators that nothing follows, and bridge those that pass one flow on."""
    for operator in reversed(case["ops"]):
        for candidate in _without(case, operator):
            if any(other["op"] == "to" for other in candidate["ops"]) and fails(candidate):
                case = candidate
                break
    return case


def _without(case: Case, operator: dict[str, Any]) -> list[Case]:
    others = [other for other in case["ops"] if other is not operator]
    followers = [other for other in others if operator["id"] in _sources(other)]
    if not followers:
        return [{**case, "ops": others}]
    if len(operator.get("in", ())) != 1:
        return []
    (source,) = operator["in"]
    bridged = [_fed_by(other, operator["id"], source) for other in others]
    return [{**case, "ops": bridged}]


def _sources(operator: dict[str, Any]) -> list[str]:
    return [source.split(".")[0] for source in operator.get("in", ())]


def _fed_by(operator: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old not in _sources(operator):
        return operator
    return {**operator, "in": [new if source.split(".")[0] == old else source for source in operator["in"]]}


def _with_plainer_inputs(case: Case, fails: Callable[[Case], bool]) -> Case:
    for number in range(len(case["inputs"])):
        for plainer in _plainer(case["inputs"][number]):
            inputs = [*case["inputs"][:number], plainer, *case["inputs"][number + 1 :]]
            candidate = {**case, "inputs": inputs}
            if fails(candidate):
                case = candidate
    return case


def _plainer(event: dict[str, Any]) -> list[dict[str, Any]]:
    if "advance" in event:
        return []
    without_headers = {name: part for name, part in event.items() if name != "headers"}
    shorter = {**event, "value": event["value"][:1]} if event["value"] else event
    return [changed for changed in (without_headers, shorter) if changed != event]
