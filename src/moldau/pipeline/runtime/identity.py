"""What a pipeline is given from outside: its names and places, and how it is to run.

Nothing here is derived from another name: whoever builds a pipeline (`moldau.streams` from an `application.id`, ksql
from a query id, Connect from a connector's name) decides how its group, its transactional id, its progress topic and
its folder are called. Start at `PipelineIdentity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.pipeline.ir.nodes import OffsetReset

__all__ = ["PipelineIdentity", "PipelineOptions"]

DEFAULT_BATCH_RECORDS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineIdentity:
    """The names and places of one pipeline. As long as they stay the same, a restart finds its state again."""

    name: str
    """In log lines, thread names and Spark's pages. Also the static member's instance id in the group, the key of
    progress records and the prefix of internal topic names, as serdes with schemas see them."""
    group_id: str
    """The consumer group that commits offsets of Kafka sources."""
    transactional_id: str
    """Of the exactly-once sink: a second producer with this id fences the first one."""
    progress_topic: str
    """The compacted topic of the exactly-once sink; it belongs to this pipeline alone."""
    folder: str
    """Path or URI of the folder with checkpoint and layout. It belongs to this pipeline alone."""
    local_folder: Path
    """A folder of this machine, for locks and stores; the same one where `folder` is local."""
    kind: str = "pipeline"
    """What messages call it: application, query, connector."""
    name_setting: str = "name"
    """The setting by which people give it another name."""
    reset_command: str = ""
    """What people type to make it start from scratch."""

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        return f"{self.kind} {self.name}"

    @property
    def reset_advice(self) -> str:
        """How to start from scratch, at the end of a message."""
        return f"start from scratch: {self.reset_command}" if self.reset_command else "start from scratch"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """How a pipeline runs; everything has a default."""

    is_exactly_once: bool = False
    is_realtime: bool = False
    """Spark's real-time mode in place of micro-batches; only at least once, only without Python."""
    interval_ms: int | None = None
    """Time from the start of one batch to the next; without it a batch starts when the last one has ended."""
    max_batch_records: int = DEFAULT_BATCH_RECORDS
    fails_on_data_loss: bool = True
    offset_reset: OffsetReset = OffsetReset.EARLIEST
    """Where Kafka sources start without a committed offset, unless the topology says otherwise."""
    dead_letter_topic: str | None = None
    replication_factor: int = -1
    """Of topics that are created; -1 is the broker's default."""
    store_server: tuple[str, int] | None = None
    """Host and port on which stores answer over HTTP."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """`spark.*` settings of this pipeline alone."""
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    """What tasks read, by Kafka Streams' keys: see `pipeline.cores.settings`."""
