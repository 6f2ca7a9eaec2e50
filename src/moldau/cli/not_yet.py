"""Kafka commands that do not apply to a single broker without authentication: they print a line that says so."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.old_classes import REPLACED

__all__ = ["acls", "preferred_replica_election", "reassign_partitions"]


def acls(argv: Sequence[str] | None = None) -> int:
    return _refuse("kafka-acls", "kafka.admin.AclCommand")


def preferred_replica_election(argv: Sequence[str] | None = None) -> int:
    return _refuse("kafka-preferred-replica-election", "kafka.admin.PreferredReplicaLeaderElectionCommand")


def reassign_partitions(argv: Sequence[str] | None = None) -> int:
    return _refuse("kafka-reassign-partitions", "kafka.admin.ReassignPartitionsCommand")


def _refuse(command: str, class_name: str) -> int:
    print(f"{command}: {REPLACED[class_name]}", file=sys.stderr)
    return 1
