"""The process that compares a schema with many others, so that the registry's reads never wait for it.

Reads lines of JSON and answers each with one line: `begin` gives the new schema and the level, `against` an old schema.
Runs until its standard input is closed. Started only by `parsing.check_client`, as
`python -m moldau.registry.parsing.check_process`. Start at `serve`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Iterable
from dataclasses import astuple
from typing import Any, TextIO

from moldau.registry.parsing.sources import ParsedSources, Source
from moldau.schemas.compatibility import Check, CompatibilityLevel, CompatibilityPolicy
from moldau.schemas.errors import SchemaError

__all__ = ["main", "serve"]

NICENESS = 5
MAX_MEMORY_BYTES = 4 * 1024**3
RECURSION = 4000


def serve(lines: Iterable[str], output: TextIO) -> None:
    """Answer line by line; if schemas cannot be compared, the answer is an error and the next line is read."""
    sources = ParsedSources()
    check: Check | None = None
    for line in lines:
        question = json.loads(line)
        answer: dict[str, Any]
        try:
            if "begin" in question:
                level, policy, new = question["begin"]
                check = Check(CompatibilityLevel(level), sources.parse(_source(new)), CompatibilityPolicy(policy))
                answer = {}
            else:
                assert check is not None
                answer = {"found": [astuple(one) for one in check.against(sources.parse(_source(question["against"])))]}
        except SchemaError as error:
            answer = {"refused": str(error)}
        except (MemoryError, RecursionError):
            answer = {"refused": "the schemas are too large to be compared"}
        output.write(json.dumps(answer) + "\n")
        output.flush()


def _source(document: list[Any]) -> Source:
    schema_type, text, references, is_new = document
    return Source(schema_type, text, tuple((name, referred) for name, referred in references), is_new)


def main() -> None:
    # Ctrl-C is sent to the whole process group; this process exits when the registry closes its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    sys.setrecursionlimit(RECURSION)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    except (OSError, ValueError):
        pass  # a lower limit is already set
    try:
        serve(sys.stdin, sys.stdout)
    except BrokenPipeError:
        os._exit(0)  # the registry has exited; nothing reads the output


if __name__ == "__main__":
    main()
