"""kafka-consumer-groups --reset-offsets: computes a group's new offsets, and commits them.

Each scenario maps partitions to offsets; they are committed only with --execute.
Start at `reset_offsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.groups.describe import group_ids
from moldau.cli.groups.offsets_csv import Plan, parse_plans, render_plans
from moldau.cli.groups.partitions import parse_partitions
from moldau.cli.groups.tables import reset_lines
from moldau.cli.moments import asked_moment_ms
from moldau.cli.options import Parsed, UsageError
from moldau.cli.tool import ToolError, log_line, say
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.groups import Groups

__all__ = ["Resetter", "clamp_to_log", "reset_offsets"]

LATEST, EARLIEST = -1, -2
SOURCE = "kafka.admin.ConsumerGroupCommand$"


def reset_offsets(parsed: Parsed, groups: Groups, admin: Admin) -> None:
    resetter = Resetter(groups, admin, warn=lambda text: log_line("WARN", text, SOURCE))
    plans: dict[str, Plan] = {}
    for group_id in group_ids(parsed, groups):
        group = groups.describe(group_id)
        if group is not None and group.state not in ("Empty", "Dead"):
            state = f"is inactive, but the current state is {group.state}."
            say(f"\nError: Assignments can only be reset if the group '{group_id}' {state}")
            plans[group_id] = {}
            continue
        plan = _plan(parsed, group_id, resetter)
        if parsed.has("execute"):
            groups.commit(group_id, plan)
        plans[group_id] = plan
    if parsed.has("export"):
        say(render_plans(plans, names_groups=len(parsed.values("group")) != 1))
    else:
        say()
        for line in reset_lines(plans):
            say(line)


def _plan(parsed: Parsed, group_id: str, resetter: Resetter) -> Plan:
    if parsed.has("from-file"):
        plans = parse_plans(_text(parsed.value("from-file")), parsed.values("group"))
        if group_id not in plans:
            say(f"\nError: No reset plan for group {group_id} found.")
            return {}
        return resetter.exactly(plans[group_id])
    partitions = resetter.partitions(group_id, parsed.values("topic"), takes_all=parsed.has("all-topics"))
    if parsed.has("to-offset"):
        return resetter.exactly(dict.fromkeys(partitions, parsed.value("to-offset")))
    if parsed.has("shift-by"):
        return resetter.shifted(group_id, partitions, parsed.value("shift-by"))
    if (moment_ms := asked_moment_ms(parsed)) is not None:
        return resetter.at(partitions, moment_ms)
    if parsed.has("to-current"):
        return resetter.current(group_id, partitions)
    return resetter.ends(partitions, EARLIEST if parsed.has("to-earliest") else LATEST)


class Resetter:
    """The scenarios; each maps partitions to offsets. `warn` is called for offsets outside the log, which are moved."""

    def __init__(self, groups: Groups, admin: Admin, *, warn: Callable[[str], None]) -> None:
        self._groups = groups
        self._admin = admin
        self._warn = warn

    def partitions(self, group_id: str, topics: Sequence[str], *, takes_all: bool) -> list[TopicPartition]:
        """The partitions to reset: those of `topics`, or all with a committed offset of the group."""
        if takes_all:
            return self._existing(sorted(self._groups.committed(group_id)))
        found, missing = parse_partitions(topics, self._admin.partition_counts())
        if missing:
            raise ToolError(f"This server does not host this topic-partition. (there is no topic {missing[0]})")
        return self._existing(found)

    def ends(self, partitions: Iterable[TopicPartition], which: int) -> Plan:
        return self._admin.list_offsets(dict.fromkeys(partitions, which))

    def exactly(self, wanted: Mapping[TopicPartition, int]) -> Plan:
        """The wanted offsets, or the nearest ones in the log."""
        self._existing(list(wanted))
        plan, warnings = clamp_to_log(wanted, self.ends(wanted, EARLIEST), self.ends(wanted, LATEST))
        for warning in warnings:
            self._warn(warning)
        return plan

    def shifted(self, group_id: str, partitions: Iterable[TopicPartition], by: int) -> Plan:
        committed = self._groups.committed(group_id)
        wanted = {}
        for partition in partitions:
            if partition not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {partition} since there is no current committed offset"
                )
            wanted[partition] = committed[partition].offset + by
        return self.exactly(wanted)

    def at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Plan:
        """The first offset with this timestamp or a later one; the end offset if there is none."""
        found = self._admin.list_offsets(dict.fromkeys(partitions, max(0, timestamp_ms)))
        late = sorted(partition for partition, offset in found.items() if offset < 0)
        for partition in late:
            place = f"Partition {partition.partition} from topic {partition.topic}"
            say(f"\nWarn: {place} is empty. Falling back to latest known offset.")
        return found | self.ends(late, LATEST)

    def current(self, group_id: str, partitions: Iterable[TopicPartition]) -> Plan:
        wanted = list(partitions)
        committed = self._groups.committed(group_id)
        plan = {partition: committed[partition].offset for partition in wanted if partition in committed}
        return plan | self.ends([partition for partition in wanted if partition not in committed], LATEST)

    def _existing(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        counts = self._admin.partition_counts()
        missing = [str(partition) for partition in partitions if partition.partition >= counts.get(partition.topic, 0)]
        if missing:
            raise ToolError(f'The partitions "{",".join(missing)}" do not exist')
        return partitions


def clamp_to_log(
    wanted: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> tuple[Plan, list[str]]:
    """The offsets, limited to the range of each log, and a warning for each one changed."""
    plan, warnings = {}, []
    for partition in sorted(wanted):
        offset, start, end = wanted[partition], starts[partition], ends[partition]
        plan[partition] = min(max(offset, start), end)
        if offset != plan[partition]:
            relation = "higher than latest" if offset > end else "lower than earliest"
            warnings.append(
                f"New offset ({offset}) is {relation} offset for topic partition {partition}. "
                f"Value will be set to {plan[partition]}"
            )
    return plan, warnings


def _text(location: str) -> str:
    try:
        return Path(location).read_text()
    except OSError as error:
        raise ToolError(f"Unable to read file {location}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ToolError(f"{location} is not a text file") from None
