"""kafka-delete-records: deletes records below given offsets."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, open_admin
from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.tool import ToolError, run, say
from moldau.client.errors import ClientError, java_exception_prefix
from moldau.core.ids import TopicPartition

__all__ = ["main", "parse_offsets"]

PARSER = Parser(
    "Delete the records of partitions below given offsets. What is gone cannot be had back.",
    [
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        Option(
            "offset-json-file",
            'A file like {"partitions": [{"topic": "t", "partition": 0, "offset": 3}], "version": 1}; '
            "offset -1 means everything there is now.",
            "file",
            is_required=True,
        ),
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _delete_records, argv)


def _delete_records(parsed: Parsed) -> int:
    location = parsed.value("offset-json-file")
    try:
        before = parse_offsets(Path(location).read_text())
    except OSError as error:
        raise ToolError(f"cannot read {location}: {error.strerror}") from None
    admin = open_admin(parsed)
    say("Executing records delete operation")
    results = admin.delete_records(before)
    say("Records delete operation completed:")
    for partition, result in results.items():
        if isinstance(result, ClientError):
            say(f"partition: {partition}\terror: {java_exception_prefix(result)}{result}")
        else:
            say(f"partition: {partition}\tlow_watermark: {result}")
    return 0


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse the offsets file; raises `ToolError` for any format other than version 1."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ToolError(f"The input string is not a valid JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("partitions"), list):
        raise ToolError("Missing partitions field")
    if content.get("version", 1) != 1:
        raise ToolError(f"Not supported version field value {content['version']}")
    offsets: dict[TopicPartition, int] = {}
    for entry in content["partitions"]:
        partition, offset = _entry(entry)
        if partition in offsets:
            raise ToolError(f"Offset json file contains duplicate topic partitions: {partition}")
        offsets[partition] = offset
    return offsets


def _entry(entry: Any) -> tuple[TopicPartition, int]:
    try:
        return TopicPartition(str(entry["topic"]), int(entry["partition"])), int(entry["offset"])
    except (KeyError, TypeError, ValueError):
        raise ToolError(f"Each partition needs topic, partition and offset, unlike {json.dumps(entry)}") from None


if __name__ == "__main__":
    sys.exit(main())
