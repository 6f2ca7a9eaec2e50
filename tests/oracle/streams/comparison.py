"""Whether two sides made the same of a case. Start at `differences`."""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

__all__ = ["Output", "Result", "differences", "oracle_result"]


KNOWN_FAILURES = ("segment interval has changed", '"next.value" is null', "Found a null keyChangingChild node")
"""What Kafka Streams says when it fails by a fault of its own; see differences.md."""


@dataclass(frozen=True, slots=True)
class Output:
    """One record that came out, and the number of the input that caused it."""

    step: int
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]

    def __str__(self) -> str:
        return (
            f"[{self.step}] {self.topic} {_shown(self.key)}={_shown(self.value)} @{self.timestamp} {self.headers or ''}"
        )


def _shown(data: bytes | None) -> str:
    return "null" if data is None else ascii(data)[2:-1]


@dataclass(frozen=True, slots=True)
class Result:
    """What one side made of a case; an error says why it did not get to the end."""

    description: str
    outputs: tuple[Output, ...]
    stores: Mapping[str, list[Any]]
    error: str | None = None


def oracle_result(answer: Mapping[str, Any]) -> Result:
    """What the Java program wrote, in the same form as ours."""
    outputs = [
        Output(
            step, topic, _bytes(key), _bytes(value), timestamp, tuple((name, _bytes(data)) for name, data in headers)
        )
        for step, topic, key, value, timestamp, headers in answer["outputs"]
    ]
    return Result(answer.get("describe", ""), tuple(outputs), answer.get("stores", {}), answer.get("error"))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def differences(
    oracle: Result, ours: Result, *, is_partitioned: bool = False, names: tuple[str, str] = ("Kafka Streams", "moldau")
) -> list[str]:
    """Sentences about what differs, none where all is equal.

    In one partition the order of a whole topic must be the same, with several that of each key.
    """
    if oracle.error and any(known in oracle.error for known in KNOWN_FAILURES):
        return []
    if bool(oracle.error) != bool(ours.error):
        return [f"{names[0]}: {oracle.error or 'no error'}", f"{names[1]}: {ours.error or 'no error'}"]
    found = []
    described, described_by_us = _comparable(oracle.description), _comparable(ours.description)
    if described != described_by_us:
        lines = unified_diff(described.splitlines(), described_by_us.splitlines(), *names, n=1)
        found.append("described differently\n" + "\n".join(line.rstrip("\n") for line in lines))
    theirs, mine = _ordered(oracle.outputs, is_partitioned), _ordered(ours.outputs, is_partitioned)
    for place in sorted({*theirs, *mine}, key=str):
        if theirs[place] != mine[place]:
            found.append(_difference(place, theirs[place], mine[place], names))
    for store in sorted({*oracle.stores, *ours.stores}):
        # The order in which all windows are listed depends on how Kafka Streams keeps them on disk.
        if sorted(oracle.stores.get(store, ())) != sorted(ours.stores.get(store, ())):
            found.append(
                f"store {store}\n  {names[0]}: {oracle.stores.get(store)}\n  {names[1]}: {ours.stores.get(store)}"
            )
    return found


def _comparable(description: str) -> str:
    """Without the addresses that Java prints of functions, and without what only we say: what stays inside Spark.

    Neighbours are compared as sets: their order is explained in differences.md.
    """
    kafka_form = description.split("\nInside Spark", maxsplit=1)[0]
    kafka_form = re.sub(r"(-->|<--) (.*)", lambda line: f"{line[1]} {sorted(line[2].split(', '))}", kafka_form)
    return re.sub(r"\(extractor class: [^)]*\)", "(chosen for each record)", kafka_form).strip()


def _ordered(outputs: Iterable[Output], is_partitioned: bool) -> dict[tuple[Any, ...], list[Output]]:
    places: dict[tuple[Any, ...], list[Output]] = defaultdict(list)
    for output in outputs:
        places[(output.topic, output.key) if is_partitioned else (output.topic,)].append(output)
    return places


def _difference(place: tuple[Any, ...], theirs: list[Output], ours: list[Output], names: tuple[str, str]) -> str:
    """The first place where two lists part, with what follows on each side."""
    same = next((n for n, (one, other) in enumerate(zip(theirs, ours, strict=False)) if one != other), None)
    at = min(len(theirs), len(ours)) if same is None else same
    lines = [f"{place}: equal up to output {at}"]
    for name, outputs in zip(names, (theirs, ours), strict=True):
        lines += [f"  {name + ':':<14} {output}" for output in outputs[at : at + 4]] or [f"  {name + ':':<14} nothing"]
    return "\n".join(lines)
