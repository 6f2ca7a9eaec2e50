"""Client of the process that compares a schema with many others, one comparison at a time.

Comparing in a thread of the registry would slow down reads, which share the interpreter lock (GIL): a comparison with
hundreds of versions takes a second, and each read would wait for the lock several times. The process is started on
first use and restarted after it has died. Blocking and thread-safe. Start at `CheckClient.check`.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moldau.registry.parsing.sources import Source
from moldau.schemas.compatibility import CompatibilityLevel, CompatibilityPolicy, Incompatibility
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.parsed_schema import SchemaType

__all__ = ["CheckClient"]

MAX_ANSWER_S = 60.0
"""Timeout of one comparison, after which the process is killed: far more than its effort limit allows."""
_COMMAND = (sys.executable, "-m", "moldau.registry.parsing.check_process")
_logger = logging.getLogger("moldau.registry")


class CheckClient:
    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def check(
        self, level: CompatibilityLevel, policy: CompatibilityPolicy, new: Source, previous: Iterable[Source]
    ) -> list[Incompatibility]:
        """Same as `schemas.compatibility.check`; raises `OSError` if the process cannot be started."""
        with self._lock:
            self._ask({"begin": [level, policy, new]})
            for index, old in enumerate(previous):
                found = self._ask({"against": old})["found"]
                if found:
                    return [_incompatibility(one).at(index) for one in found]
        return []

    def close(self) -> None:
        """Kill the process and any comparison in progress."""
        self._is_closed = True
        self._end()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._running()
        watchdog = threading.Timer(MAX_ANSWER_S, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            self._end()
            raise InvalidSchemaError("the schemas could not be compared: they may be too large")
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise InvalidSchemaError(answer["refused"])
        return answer

    def _running(self) -> subprocess.Popen[str]:
        if self._is_closed:
            raise InvalidSchemaError("the registry is being stopped")
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            _logger.debug("process %d compares schemas", process.pid)
            if self._is_closed:
                self._end()  # `close` ran concurrently and found no process to kill
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass  # unsent data: the process is gone


def _incompatibility(parts: list[Any]) -> Incompatibility:
    schema_type, *others = parts
    return Incompatibility(SchemaType(schema_type), *others)
