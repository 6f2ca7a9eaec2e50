"""Runs an application in the foreground, with a status line, until a signal ends it. Start at `run`."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.cli.tool import default_stop_signals
from moldau.pipeline.ir.topology import Topology

if TYPE_CHECKING:
    from moldau.pipeline.runtime.metrics import MetricsSnapshot

__all__ = ["run"]

LINE_S = 1.0
CLEAR_LINE = "\r\x1b[2K"


def run(topology: Topology, config: Mapping[str, Any], *, quiet: bool) -> int:
    """Run until stopped and return 0; a failure of the application is raised."""
    from moldau.streams.kafka_streams import KafkaStreams, State

    logging.basicConfig(level=logging.WARNING, format=f"{'' if quiet else CLEAR_LINE}%(levelname)s %(message)s")
    logging.getLogger("moldau.streams").setLevel(logging.INFO)
    # Once started, the application handles signals and shuts down cleanly; it also calls the program's own handlers.
    default_stop_signals()
    streams = KafkaStreams(topology, config)
    began = time.monotonic()
    name, has_ended = streams.settings.application_id, threading.Event()

    def tell(new: State, old: State) -> None:
        _say(f"{name} is {new.value}", quiet)
        if new.is_final:
            has_ended.set()

    streams.set_state_listener(tell)
    # The failure that ends the application is raised here and printed by our caller: do not log it too.
    logging.getLogger("moldau.streams").addFilter(lambda record: record.getMessage() != f"{name}: {streams.failure}")
    try:
        streams.start()
        while not streams.wait(LINE_S):
            if not quiet:
                _progress(streams.metrics(), time.monotonic() - began)
    finally:
        if streams.state is not State.CREATED:
            streams.close()
            has_ended.wait(LINE_S)
    _say(_summary(streams.metrics()), quiet)
    return 0


def _say(text: str, quiet: bool) -> None:
    sys.stderr.write(f"{'' if quiet else CLEAR_LINE}{text}\n")
    sys.stderr.flush()


def _progress(numbers: MetricsSnapshot, seconds: float) -> None:
    parts = [
        f"{seconds:6.0f} s",
        "waiting for records" if numbers.batch is None else f"batch {numbers.batch}",
        f"in {numbers.input_rate:,.0f}/s",
        f"out {numbers.output_rate:,.0f}/s",
        f"lag {numbers.lag:,}",
        f"{numbers.batch_ms:,.0f} ms a batch",
    ]
    if numbers.state_records:
        parts.append(f"{numbers.state_records:,} in state")
    if numbers.restarts:
        parts.append(f"{numbers.restarts} restarts")
    # A line that the terminal wraps would not be cleared completely.
    line = " · ".join(parts)[: shutil.get_terminal_size().columns - 1]
    sys.stderr.write(CLEAR_LINE + line)
    sys.stderr.flush()


def _summary(numbers: MetricsSnapshot) -> str:
    return f"read {numbers.records_in:,} records, wrote {numbers.records_out:,}"
