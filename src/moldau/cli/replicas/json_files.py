"""The JSON files of the tools for replicas: lists of partitions, of topics, and of assignments.

Start at `partitions_in` and `assignments_in`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition

__all__ = ["Assignment", "assignment_json", "assignments_in", "compact", "partitions_in", "topics_in"]

Content = TypeVar("Content")
NOWHERE: Mapping[tuple[TopicPartition, int], str] = {}
Assignment = Mapping[TopicPartition, Sequence[int]]


def partitions_in(path: str) -> list[TopicPartition]:
    """The partitions of `{"partitions": [{"topic": "t", "partition": 0}]}`."""
    return _read(path, lambda content: [_partition(one) for one in content["partitions"]])


def topics_in(path: str) -> list[str]:
    """The topics of `{"version": 1, "topics": [{"topic": "t"}]}`."""
    return _read(path, lambda content: [str(one["topic"]) for one in content["topics"]])


def assignments_in(path: str) -> dict[TopicPartition, list[int]]:
    """The replicas of each partition of a reassignment; an empty file is refused."""

    def read(content: Any) -> dict[TopicPartition, list[int]]:
        found: dict[TopicPartition, list[int]] = {}
        for one in content["partitions"]:
            partition, replicas = _partition(one), [int(each) for each in one["replicas"]]
            if partition in found:
                raise ToolError(f"Partition reassignment contains duplicate topic partitions: {partition}")
            if not replicas:
                raise ToolError(f"Partition replica list cannot be empty for {partition}")
            if len(set(replicas)) != len(replicas):
                raise ToolError(f"Partition replica lists may not contain duplicate entries: {partition}")
            found[partition] = replicas
        return found

    assignments = _read(path, read)
    if not assignments:
        raise ToolError("Partition reassignment list cannot be empty")
    return assignments


def _partition(entry: Any) -> TopicPartition:
    return TopicPartition(str(entry["topic"]), int(entry["partition"]))


def _read(path: str, read: Callable[[Any], Content]) -> Content:
    try:
        with open(path, encoding="utf-8") as file:
            return read(json.load(file))
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{path} is not of the form that --help shows ({error!r})") from None


def assignment_json(assignment: Assignment, folders: Mapping[tuple[TopicPartition, int], str] = NOWHERE) -> str:
    """As Kafka's tool prints it; where no log directory is known, it is the broker's choice."""
    partitions = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "replicas": list(replicas),
            "log_dirs": [folders.get((one, broker), "any") for broker in replicas],
        }
        for one, replicas in sorted(assignment.items())
    ]
    return compact({"version": 1, "partitions": partitions})


def compact(content: object) -> str:
    return json.dumps(content, separators=(",", ":"))
