"""Kafka commands that need what is not built yet: they print a line that says so."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.old_classes import REPLACED

__all__ = ["acls"]


def acls(argv: Sequence[str] | None = None) -> int:
    return _refuse("kafka-acls", "kafka.admin.AclCommand")


def _refuse(command: str, class_name: str) -> int:
    print(f"{command}: {REPLACED[class_name]}", file=sys.stderr)
    return 1
