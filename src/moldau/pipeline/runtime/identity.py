"""The configuration of a pipeline: its names and locations (identity), and how it runs (options).

No name here is derived from another one: the code that builds a pipeline (`moldau.streams` from an `application.id`,
ksql from a query id, Connect from a connector's name) chooses its group, transactional id, progress topic and folder.
Start at `PipelineIdentity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.nodes import OffsetReset

__all__ = ["PipelineIdentity", "PipelineOptions"]

DEFAULT_BATCH_RECORDS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineIdentity:
    """The names and locations of one pipeline. As long as they stay the same, a restart finds its state."""

    name: str
    """Used in log lines, thread names and Spark's web pages. Also the static member's instance id in the group, the key
    of progress records and the prefix of internal topic names, as serdes with schemas see them."""
    group_id: str
    """The consumer group that commits offsets of Kafka sources."""
    transactional_id: str
    """The exactly-once sink's id: a second producer with this id fences the first one."""
    progress_topic: str
    """The compacted topic of the exactly-once sink; used only by this pipeline."""
    folder: str
    """Path or URI of the folder with checkpoint and layout; used only by this pipeline."""
    local_folder: Path
    """A folder on this machine, for locks and stores; the same as `folder` if that is local."""
    kind: str = "pipeline"
    """What messages call the pipeline: application, query, connector."""
    name_setting: str = "name"
    """The setting with which users change the name."""
    reset_command: str = ""
    """The command with which users reset the pipeline."""

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        return f"{self.kind} {self.name}"

    @property
    def reset_advice(self) -> str:
        """The end of a message: how to start from scratch."""
        return f"start from scratch: {self.reset_command}" if self.reset_command else "start from scratch"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """How a pipeline runs; every option has a default."""

    is_exactly_once: bool = False
    is_realtime: bool = False
    """Whether to use Spark's real-time mode instead of micro-batches; only at-least-once, only without Python."""
    interval_ms: int | None = None
    """Time from the start of one batch to the next; if None, a batch starts as soon as the previous one has ended. In
    real-time mode the length of a batch, 30 s if None.
    """
    max_batch_records: int = DEFAULT_BATCH_RECORDS
    fails_on_data_loss: bool = True
    offset_reset: OffsetReset = OffsetReset.EARLIEST
    """Where Kafka sources start without a committed offset, unless the topology specifies it."""
    first_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where partitions start at the very first start; the others start as `offset_reset` says."""
    dead_letter_topic: str | None = None
    replication_factor: int = -1
    """For topics that are created; -1 is the broker's default."""
    store_server: tuple[str, int] | None = None
    """Host and port of the HTTP server for store queries."""
    spark: Mapping[str, str] = field(default_factory=dict)
    """`spark.*` settings for this pipeline only."""
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that tasks read, by Kafka Streams' keys: see `pipeline.cores.settings`."""
