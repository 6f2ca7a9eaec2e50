"""The cleaning process: what it answers, and that it never outlives its broker."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import moldau
from moldau.log.cleaning.cleaner_process import serve
from moldau.log.cleaning.cleaner_worker import CleanerWorker
from moldau.log.cleaning.cleaning_job import CleaningJob, Source
from moldau.log.cleaning.segment_cleaner import Throttle
from moldau.log.errors import CleaningFailedError, CleaningStoppedError
from moldau.protocol.records import Record, encode_batch


def job_over(directory: Path, *, rate: float = float("inf")) -> CleaningJob:
    """A segment with one key twice."""
    batches = [
        encode_batch([Record(0, 0, b"k", b"%d" % offset)], base_offset=offset, base_timestamp=1_700_000_000_000)
        for offset in range(2)
    ]
    path = directory / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    return CleaningJob(
        directory=str(directory),
        sources=(Source(0, path.stat().st_size),),
        first_dirty_offset=0,
        upper_bound=2,
        now_ms=1_700_000_100_000,
        io_max_bytes_per_second=rate,
    )


def answers(*jobs: str) -> list[dict[str, dict[str, object]]]:
    output = io.StringIO()
    serve(jobs, output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_job_is_answered_with_its_groups_and_its_end(tmp_path: Path) -> None:
    group, done = answers(job_over(tmp_path).to_json())
    assert group["group"]["base_offsets"] == [0]
    assert done["done"]["end_offset"] == 2
    assert done["done"]["records_kept"] == 1
    assert (tmp_path / f"{0:020d}.log.cleaned").exists()


def test_a_failed_job_is_told_apart_and_the_next_one_taken(tmp_path: Path) -> None:
    gone, damaged, fine = tmp_path / "gone", tmp_path / "damaged", tmp_path / "fine"
    for directory in (gone, damaged, fine):
        directory.mkdir()
    jobs = [job_over(directory).to_json() for directory in (gone, damaged, fine)]
    (gone / f"{0:020d}.log").unlink()
    path = damaged / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    found = answers(*jobs, "{}")
    kinds = [next(iter(answer)) for answer in found]
    assert kinds == ["failed", "failed", "group", "done", "failed"]
    assert [found[index]["failed"]["kind"] for index in (0, 1, 4)] == ["gone", "damaged", "unexpected"]
    assert str(damaged) in str(found[1]["failed"]["message"])


def test_the_worker_starts_a_process_for_the_first_job_and_another_after_a_release(tmp_path: Path) -> None:
    worker = CleanerWorker()
    job = job_over(tmp_path)
    try:
        assert worker.run(job, lambda group: None).end_offset == 2
        assert worker.run(job, lambda group: None).end_offset == 2
        worker.release()
        assert not worker.is_running
        assert worker.run(job, lambda group: None).end_offset == 2
    finally:
        worker.release()


def test_a_process_that_dies_fails_its_job_only(tmp_path: Path) -> None:
    worker = CleanerWorker()

    def kill(group: object) -> None:
        assert worker._process is not None
        worker._process.send_signal(signal.SIGKILL)
        worker._process.wait()

    try:
        slow = job_over(tmp_path, rate=200.0)
        threading.Timer(0.5, lambda: kill(None)).start()
        with pytest.raises(CleaningFailedError) as failure:
            worker.run(slow, lambda group: None)
        assert failure.value.kind == "died"
        assert failure.value.is_transient
        assert worker.run(job_over(tmp_path), lambda group: None).end_offset == 2
    finally:
        worker.release()


def test_closing_ends_a_job_under_way(tmp_path: Path) -> None:
    worker = CleanerWorker()
    threading.Timer(0.3, worker.close).start()
    with pytest.raises(CleaningStoppedError):
        worker.run(job_over(tmp_path, rate=1.0), lambda group: None)
    with pytest.raises(CleaningStoppedError):
        worker.run(job_over(tmp_path), lambda group: None)


BROKER = """
import sys
from moldau.log.cleaning.cleaner_worker import CleanerWorker
from moldau.log.cleaning.cleaning_job import CleaningJob
worker = CleanerWorker()
process = worker._start_process()
print(process.pid, flush=True)
worker.run(CleaningJob.from_json(sys.argv[1]), print)
"""


def test_a_killed_broker_takes_its_cleaner_with_it(tmp_path: Path) -> None:
    job = job_over(tmp_path, rate=1.0).to_json()
    source = str(Path(moldau.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", BROKER, job], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    ) as broker:
        assert broker.stdout is not None
        cleaner = os.pidfd_open(int(broker.stdout.readline()))
        try:
            broker.kill()
            broker.wait()
            ended, _, _ = select.select([cleaner], [], [], 30)
            assert ended, "the cleaning process is still there"
        finally:
            os.close(cleaner)


def test_the_throttle_sleeps_off_what_came_too_early() -> None:
    now, naps = [0.0], []

    def sleep(seconds: float) -> None:
        naps.append(round(seconds, 3))
        now[0] += seconds

    throttle = Throttle(1_000.0, clock=lambda: now[0], sleep=sleep)
    throttle.maybe_throttle(500)
    now[0] += 2
    throttle.maybe_throttle(1_000)
    throttle.maybe_throttle(2_000)
    assert naps == [0.5, 1.0]
