"""How far each compacted log is clean: `cleaner-offset-checkpoint`, one file per log directory.

An entry belongs to one log: a topic that was deleted and recreated under the same name must not inherit it, or the
cleaner would treat its first records as clean. Start at `CleanerCheckpoints.note_logs`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from moldau.core.ids import TopicPartition
from moldau.log.directories.checkpoints import CLEANER_OFFSETS, load_checkpoint, save_checkpoint
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog

__all__ = ["CleanerCheckpoints"]


class CleanerCheckpoints:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._offsets: dict[str, dict[TopicPartition, int]] = {}
        self._known: Mapping[TopicPartition, PartitionLog] | None = None

    def note_logs(self, logs: Mapping[TopicPartition, PartitionLog]) -> list[TopicPartition]:
        """Set the current logs; returns those that were removed or replaced since the last call.

        The first call loads the files and drops entries without a log. A directory that gets its first log later
        starts without entries.
        """
        if self._known is None:
            for log_dir in {_log_dir(each) for each in logs.values()}:
                found = load_checkpoint(self._files, os.path.join(log_dir, CLEANER_OFFSETS))
                self._offsets[log_dir] = {partition: found[partition] for partition in found if partition in logs}
        known, self._known = self._known or {}, logs
        gone = [partition for partition, each in known.items() if logs.get(partition) is not each]
        for offsets in self._offsets.values():
            for partition in gone:
                offsets.pop(partition, None)
        return gone

    def offset_of(self, log: PartitionLog) -> int | None:
        """The offset where the next round starts; `None` for a log never cleaned."""
        return self._offsets.get(_log_dir(log), {}).get(log.topic_partition)

    def save(self, log: PartitionLog, offset: int) -> None:
        offsets = self._offsets.setdefault(_log_dir(log), {})
        offsets[log.topic_partition] = offset
        save_checkpoint(self._files, os.path.join(_log_dir(log), CLEANER_OFFSETS), offsets)


def _log_dir(log: PartitionLog) -> str:
    return os.path.dirname(log.directory)
