"""Shared code of the verifiable clients: events as lines of JSON (time, name, values) that system tests read.

Start at `emit`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.tool import run, say

__all__ = ["BROKERS", "emit", "run_verifiable"]

BROKERS = Option(
    "bootstrap-server", "Where to reach the cluster.", "host:port", aliases=("broker-list",), is_required=True
)


def emit(name: str, **facts: Any) -> None:
    event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **facts}
    say(json.dumps(event, separators=(",", ":"), ensure_ascii=False))


def run_verifiable(parser: Parser, body: Callable[[Parsed], int | None], words: Sequence[str]) -> int:
    """Like `cli.tool.run`, except that the exit code for help is 0."""
    if not words or words[0] in ("--help", "-h"):
        say(parser.usage())
        return 0
    return run(parser, body, words)
