"""Reset plans as CSV: written by `--export`, read by `--from-file`.

    topic,partition,offset              for one group
    group,topic,partition,offset        for several

No I/O. Start at `parse_plans` and `render_plans`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition

__all__ = ["Plan", "parse_plans", "render_plans"]

Plan = dict[TopicPartition, int]


def render_plans(plans: Mapping[str, Mapping[TopicPartition, int]], *, names_groups: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, plan in plans.items():
        for partition in sorted(plan):
            row = (partition.topic, partition.partition, plan[partition])
            writer.writerow((group_id, *row) if names_groups else row)
    return text.getvalue()


def parse_plans(text: str, group_ids: Sequence[str]) -> dict[str, Plan]:
    """The plans by group. Rows without a group are allowed only if the command names a single group."""
    plans: dict[str, Plan] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
        words = [word.strip() for word in row]
        if not any(words):
            continue
        if len(words) == 3 and len(group_ids) == 1:
            words = [group_ids[0], *words]
        if len(words) != 4:
            wanted = "topic,partition,offset" if len(group_ids) == 1 else "group,topic,partition,offset"
            raise ToolError(f"line {number} of the file is not {wanted}: {','.join(row)}")
        group_id, topic, partition, offset = words
        try:
            plans.setdefault(group_id, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise ToolError(f"line {number} of the file has no number where one belongs: {','.join(row)}") from None
    return plans
