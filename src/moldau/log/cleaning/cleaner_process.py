"""The separate process that does the cleaner's CPU-heavy work, so that it never blocks the broker's interpreter.

Reads jobs as lines of JSON and answers with lines of JSON: one for each finished group, then the result or the
failure. Exits when its standard input is closed. Run as `python -m moldau.log.cleaning.cleaner_process`, only by
`log.cleaning.cleaner_worker`. Start at `serve`.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterable
from typing import TextIO

from moldau.core.errors import MoldauError
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob
from moldau.log.cleaning.segment_cleaner import clean

__all__ = ["main", "serve"]

NICENESS = 10


def serve(jobs: Iterable[str], output: TextIO) -> None:
    """Run `jobs` one after the other. A failed job is reported, and the next one is run."""

    def write_line(line: str) -> None:
        output.write(line + "\n")
        output.flush()

    def report(group: CleanedGroup) -> None:
        write_line(group.to_json())

    for line in jobs:
        try:
            write_line(clean(CleaningJob.from_json(line), report).to_json())
        except FileNotFoundError as error:
            write_line(_failure("gone", f"{error.filename} is gone"))
        except MoldauError as error:
            write_line(_failure("damaged", str(error)))
        except OSError as error:
            write_line(_failure("disk", str(error)))
        except Exception as error:
            write_line(_failure("unexpected", repr(error)))


def _failure(kind: str, message: str) -> str:
    return json.dumps({"failed": {"kind": kind, "message": message}}, separators=(",", ":"))


def _lines_until_closed(stream: TextIO) -> Iterable[str]:
    """The stream's lines, read by a separate thread, so that the end of input ends the process even during a job.

    The cleaner must die with a killed broker: otherwise it would write into the files of the next one.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, name="jobs", daemon=True).start()
    while True:
        yield lines.get()


def main() -> None:
    os.nice(NICENESS)
    serve(_lines_until_closed(sys.stdin), sys.stdout)


if __name__ == "__main__":
    main()
