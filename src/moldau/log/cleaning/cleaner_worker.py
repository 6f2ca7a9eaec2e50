"""The broker's side of the cleaning process: start it when there is work, exchange messages, stop it.

Blocking, for the cleaner's own thread. `close` may be called from another thread and ends a running job.
What the process does is `log.cleaning.cleaner_process`. Start at `CleanerWorker.run`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import moldau
from moldau.core.errors import MoldauError
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, CleaningResult
from moldau.log.errors import CleaningFailedError, CleaningStoppedError

__all__ = ["CleanerWorker"]


class CleanerWorker:
    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, job: CleaningJob, on_group: Callable[[CleanedGroup], None]) -> CleaningResult:
        """Run `job` in the process. `on_group` is called for every finished group while the process continues.

        When `on_group` raises, the process is stopped and the error is raised here.
        """
        process = self._start_process()
        try:
            return self._converse(process, job, on_group)
        except (BrokenPipeError, ConnectionError) as error:
            self.release()
            raise self._error_for_ended(process) from error
        except BaseException:
            self.release()
            raise

    def _converse(
        self, process: subprocess.Popen[str], job: CleaningJob, on_group: Callable[[CleanedGroup], None]
    ) -> CleaningResult:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(job.to_json() + "\n")
        process.stdin.flush()
        for line in process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "group" in answer:
                fields = answer["group"]
                on_group(CleanedGroup(**{**fields, "base_offsets": tuple(fields["base_offsets"])}))
            elif "done" in answer:
                return CleaningResult(**answer["done"])
            else:
                raise CleaningFailedError(**answer["failed"])
        raise self._error_for_ended(process)

    def release(self) -> None:
        """Stop the process, if there is one; the next job starts a new one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close_quietly(stream)

    def close(self) -> None:
        """Stop for good: a running job raises `CleaningStoppedError` in the thread that waits for it."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def _start_process(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._is_closed:
                raise CleaningStoppedError("the cleaner is stopped")
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "moldau.log.cleaning.cleaner_process"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=_environment(),
                    # Ctrl-C in the broker's terminal must reach the broker only.
                    start_new_session=True,
                )
            return self._process

    def _error_for_ended(self, process: subprocess.Popen[str]) -> MoldauError:
        if self._is_closed:
            return CleaningStoppedError("the cleaner is stopped")
        return CleaningFailedError("died", f"the cleaning process ended with status {process.wait()}")


def _environment() -> dict[str, str]:
    """An environment in which the child imports the same moldau as this process, installed or not."""
    here = str(Path(moldau.__file__).parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _close_quietly(stream: Any) -> None:
    """Close a pipe. Flushing its last bytes fails when the reader is dead, which does not matter any more."""
    try:
        stream.close()
    except OSError:
        pass
