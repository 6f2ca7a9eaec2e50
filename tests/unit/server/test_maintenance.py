"""The schedule of rounds, and jobs handed over to the thread."""

from __future__ import annotations

import threading

from moldau.core.clock import SystemClock
from moldau.log.errors import FatalDiskError
from moldau.server.maintenance import Maintenance, Schedule


def named(name: str, done: list[str]) -> None:
    done.append(name)


def test_a_round_is_due_at_its_first_time_and_then_at_its_interval() -> None:
    schedule = Schedule()
    schedule.add(lambda: None, first_ms=100, interval_ms=50)
    assert schedule.due(99) == []
    assert len(schedule.due(100)) == 1
    assert schedule.due(149) == []
    assert len(schedule.due(150)) == 1


def test_missed_rounds_are_not_made_up_for() -> None:
    schedule = Schedule()
    schedule.add(lambda: None, first_ms=0, interval_ms=10)
    assert len(schedule.due(1000)) == 1
    assert schedule.due(1005) == []


def test_the_wait_ends_when_the_next_round_is_due() -> None:
    schedule = Schedule()
    schedule.add(lambda: None, first_ms=100, interval_ms=50)
    assert schedule.wait_ms(40) == 60
    assert schedule.wait_ms(140) == 0


def test_jobs_handed_over_are_finished_before_the_end() -> None:
    done: list[str] = []
    maintenance = Maintenance(SystemClock(), on_fatal=lambda error: None)
    maintenance.start()
    for number in range(100):
        maintenance.submit(lambda n=number: named(str(n), done))
    maintenance.stop()
    assert done == [str(number) for number in range(100)]


def test_a_job_that_fails_does_not_end_the_thread() -> None:
    done: list[str] = []
    maintenance = Maintenance(SystemClock(), on_fatal=lambda error: None)
    maintenance.submit(lambda: named(str(1 // 0), done))
    maintenance.submit(lambda: named("next", done))
    maintenance.start()
    maintenance.stop()
    assert done == ["next"]


def test_a_failed_sync_is_told_at_once() -> None:
    told = threading.Event()
    maintenance = Maintenance(SystemClock(), on_fatal=lambda error: told.set())

    def fail() -> None:
        raise FatalDiskError("fsync failed")

    maintenance.submit(fail)
    maintenance.start()
    maintenance.stop()
    assert told.is_set()


def test_rounds_run_by_themselves() -> None:
    ran = threading.Event()
    maintenance = Maintenance(SystemClock(), on_fatal=lambda error: None)
    maintenance.every(5, ran.set)
    maintenance.start()
    assert ran.wait(10)
    maintenance.stop()
