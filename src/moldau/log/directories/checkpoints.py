"""Offset checkpoints and the clean-shutdown marker: small text files beside the partitions.

    0                       version
    2                       number of lines that follow
    orders 0 1200           topic, partition, offset
    orders 1 993

A corrupt checkpoint is ignored with an error: everything in it can be rebuilt by a longer recovery. Start at
`load_checkpoint`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Final

from moldau.core.ids import TopicPartition
from moldau.log.files import Files

__all__ = [
    "CLEANER_OFFSETS",
    "CLEAN_SHUTDOWN",
    "HIGH_WATERMARKS",
    "LOG_START_OFFSETS",
    "RECOVERY_POINTS",
    "epoch_of_orderly_end",
    "load_checkpoint",
    "parse_checkpoint",
    "render_checkpoint",
    "save_checkpoint",
    "save_clean_shutdown",
    "take_clean_shutdown",
]

log = logging.getLogger("moldau.log")

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"


def parse_checkpoint(text: str) -> dict[TopicPartition, int]:
    """Parse a checkpoint; raises `ValueError` with the reason when it is corrupt."""
    lines = text.splitlines()
    if len(lines) < 2:
        raise ValueError("fewer than two lines")
    if lines[0] != "0":
        raise ValueError(f"version {lines[0]!r} is not known")
    entries = [line.rsplit(" ", 2) for line in lines[2:] if line]
    if len(entries) != int(lines[1]):
        raise ValueError(f"{lines[1]} entries announced, {len(entries)} found")
    return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def render_checkpoint(offsets: Mapping[TopicPartition, int]) -> str:
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}"


def load_checkpoint(files: Files, path: str) -> dict[TopicPartition, int]:
    """Load a checkpoint; a missing one is empty, a corrupt one is empty and logged."""
    try:
        return parse_checkpoint(files.read_file(path).decode())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        log.error("%s is corrupt and ignored: %s", path, error)
        return {}


def save_checkpoint(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    files.atomic_write(path, render_checkpoint(offsets).encode())


def save_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    """Write the marker that lets the next start skip recovery; the last write of a shutdown."""
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.atomic_write(os.path.join(directory, CLEAN_SHUTDOWN), content.encode())


def epoch_of_orderly_end(files: Files, directories: Sequence[str]) -> int:
    """The broker epoch under which the last run ended cleanly in all of these directories; -1 if it did not."""
    epochs = {_epoch_in(files, os.path.join(directory, CLEAN_SHUTDOWN)) for directory in directories}
    return epochs.pop() if len(epochs) == 1 else -1


def _epoch_in(files: Files, path: str) -> int:
    try:
        epoch = json.loads(files.read_file(path))["brokerEpoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return -1
    return epoch if isinstance(epoch, int) else -1


def take_clean_shutdown(files: Files, directory: str) -> bool:
    """Whether the last run ended cleanly. The marker is removed and synced: it is valid for one start only."""
    path = os.path.join(directory, CLEAN_SHUTDOWN)
    if not files.exists(path):
        return False
    files.unlink(path)
    files.sync_directory(directory)
    return True
