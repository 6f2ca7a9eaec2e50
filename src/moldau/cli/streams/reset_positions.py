"""Computes the group's new offsets for an application reset: each scenario maps partitions to offsets.

Nothing is committed here. Start at `Positions.wanted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.groups.offsets_csv import parse_plans
from moldau.cli.moments import asked_moment_ms
from moldau.cli.options import Parsed
from moldau.cli.tool import ToolError, say
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.groups import Groups

__all__ = ["SCENARIOS", "Positions", "within"]

SCENARIOS = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
LATEST, EARLIEST = -1, -2

Offsets = dict[TopicPartition, int]


class Positions:
    """The scenarios. Offsets outside a partition's log are moved into it, with Kafka's message."""

    def __init__(self, admin: Admin, groups: Groups, group_id: str) -> None:
        self._admin = admin
        self._groups = groups
        self._group_id = group_id

    def wanted(self, parsed: Parsed, partitions: list[TopicPartition]) -> Offsets:
        """The offsets of input topics for the requested scenario; by default, their beginning."""
        if parsed.has("to-offset"):
            return self._moved(dict.fromkeys(partitions, parsed.value("to-offset")))
        if parsed.has("shift-by"):
            by: int = parsed.value("shift-by")
            return self._moved({at: offset + by for at, offset in self._current(partitions).items()})
        if (moment_ms := asked_moment_ms(parsed)) is not None:
            return self._at(partitions, moment_ms)
        if parsed.has("from-file"):
            return self._moved(self._planned(parsed.value("from-file"), partitions))
        return self.latest(partitions) if parsed.has("to-latest") else self._ends(partitions, EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end offsets of partitions."""
        return self._ends(partitions, LATEST)

    def _ends(self, partitions: Iterable[TopicPartition], which: int) -> Offsets:
        return self._admin.list_offsets(dict.fromkeys(partitions, which))

    def _current(self, partitions: list[TopicPartition]) -> Offsets:
        """The committed offsets; for partitions without one, the offset from `auto.offset.reset`."""
        committed = self._groups.committed(self._group_id)
        fresh = [at for at in partitions if at not in committed]
        begins = self._admin.properties.get("auto.offset.reset", "latest")
        starts = self._ends(fresh, EARLIEST if begins == "earliest" else LATEST)
        return {at: committed[at].offset if at in committed else starts[at] for at in partitions}

    def _at(self, partitions: list[TopicPartition], timestamp_ms: int) -> Offsets:
        found = self._admin.list_offsets(dict.fromkeys(partitions, max(0, timestamp_ms)))
        late = [at for at in partitions if found[at] < 0]
        for at in late:
            say(
                f"Partition {at.partition} from topic {at.topic} is empty, without a committed record. "
                "Falling back to latest known offset."
            )
        return found | self.latest(late)

    def _planned(self, location: str, partitions: list[TopicPartition]) -> Offsets:
        try:
            text = Path(location).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ToolError(f"Resetting offsets failed: {location} cannot be read: {error}") from None
        plan = parse_plans(text, [self._group_id]).get(self._group_id, {})
        missing = [str(at) for at in partitions if at not in plan]
        strangers = [str(at) for at in plan if at not in partitions]
        if missing or strangers:
            what = f"no offset for {', '.join(missing)}" if missing else f"{', '.join(strangers)} of no input topic"
            raise ToolError(f"Resetting offsets failed: {location} has {what}; name each partition in one line")
        return plan

    def _moved(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        starts, ends = self._ends(wanted, EARLIEST), self.latest(wanted)
        moved = {}
        for at, offset in wanted.items():
            moved[at], warning = within(offset, starts[at], ends[at])
            if warning:
                say(warning)
        return moved


def within(offset: int, start: int, end: int) -> tuple[int, str]:
    """An offset limited to a log's range, and Kafka's message, which is also given at exactly the start or the end."""
    if offset >= end:
        return end, f"New offset ({offset}) is higher than latest offset. Value will be set to {end}"
    if offset <= start:
        return start, f"New offset ({offset}) is lower than earliest offset. Value will be set to {start}"
    return offset, ""
