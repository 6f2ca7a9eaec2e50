"""What a checkpoint was made for: a topology, its partition counts, the number of Spark's state partitions.

State is stored by node and partition, so a checkpoint fits only the layout it was made for; any other is refused before
wrong state is read. Start at `Layout.check`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.files import Files
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.spark.job import EarlierRun

__all__ = ["Layout"]

STATE_FORM = 2
"""The version of the stores' format in Spark's state; increased with each incompatible change."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the format of a pipeline's state depends on."""

    description: str
    partitions: Mapping[str, int]
    """Partition counts of the input topics; empty for stateless topologies, which do not depend on them."""
    state_partitions: int
    state_form: int = STATE_FORM
    is_realtime: bool = False
    """Whether Spark's real-time mode made the state, which has another form there."""
    native: tuple[str, ...] | None = None
    """The aggregations and sinks that Spark computes natively, which the compiler then keeps native; None if the
    version of moldau that made the checkpoint did not record them.
    """

    @classmethod
    def load(cls, file: str, files: Files) -> Layout | None:
        """The layout written at the first start; None if there is none."""
        text = files.read(file)
        if text is None:
            return None
        facts = json.loads(text)
        native = facts.get("native")
        return cls(
            facts["description"],
            facts["partitions"],
            facts["state_partitions"],
            facts["version"],
            bool(facts.get("realtime")),
            None if native is None else tuple(native),
        )

    def save(self, file: str, files: Files) -> None:
        facts = {
            "version": self.state_form,
            "description": self.description,
            "partitions": dict(self.partitions),
            "state_partitions": self.state_partitions,
            **({"realtime": True} if self.is_realtime else {}),
            **({} if self.native is None else {"native": list(self.native)}),
        }
        files.write(file, json.dumps(facts, indent=1))

    @property
    def earlier_run(self) -> EarlierRun:
        """How the run that made the checkpoint was compiled, for the compiler."""
        return EarlierRun(None if self.native is None else frozenset(self.native))

    def check(self, now: Layout, identity: PipelineIdentity, location: str) -> None:
        """Raise `CheckpointMismatchError`, with the first difference, if `now` cannot continue from this layout."""
        difference = self._difference(now)
        if difference is not None:
            difference = f"for another topology: {difference}"
        elif self.partitions and self.state_form != now.state_form:
            difference = f"by another version of moldau: its state has form {self.state_form}, not {now.state_form}"
        elif self.partitions and self.is_realtime != now.is_realtime:
            difference = f"with {_latency(self)}, and its state has another form than that of {_latency(now)}"
        if difference is not None:
            raise CheckpointMismatchError(
                f"the checkpoint in {location} was made {difference}. Give the new one another "
                f"{identity.name_setting}, or {identity.reset_advice}"
            )

    def _difference(self, now: Layout) -> str | None:
        if self.description != now.description:
            changed = difflib.ndiff(self.description.splitlines(), now.description.splitlines())
            lines = [f"{line[0]} {line[2:].strip()}" for line in changed if line[0] in "+-"]
            return "; ".join(lines[:2])
        for topic, count in self.partitions.items():
            if (there := now.partitions.get(topic)) != count:
                return f"topic {topic} had {count} partitions and has {there or 'none'} now"
        if self.partitions and self.state_partitions != now.state_partitions:
            return f"spark.sql.shuffle.partitions was {self.state_partitions} and is {now.state_partitions} now"
        return None


def _latency(layout: Layout) -> str:
    return f"moldau.latency={'realtime' if layout.is_realtime else 'batch'}"
