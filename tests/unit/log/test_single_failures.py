"""Each system call of a log fails once, with each error it can return: nothing acknowledged is lost or doubled.

A scenario is run once to count its system calls and then once for every call and every error. After the failure the
process goes on, or it is killed and the log is loaded again from its files; either way everything acknowledged is
there exactly once, resends are recognised, readers of committed data see no aborted record, and the log goes on
working. `faulty_world` has the log and the model it is compared with.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.log.faulty_world import World, one_per_call

from moldau.testing.failing_files import FailingFiles, Fault

SMALL: dict[str, Any] = {"segment_bytes": 600, "index_interval_bytes": 100, "file_delete_delay_ms": 0}


def first_appends(world: World) -> None:
    """A fresh partition: folder, first segment, first batch of an idempotent producer, first epoch."""
    world.produce(7)
    world.produce(7, count=3)
    world.produce()
    world.begin_epoch()
    world.produce(7)


def appends_after_a_restart(world: World) -> None:
    """Everything that is read only when it is needed: indexes, producers, epochs."""
    first_appends(world)
    world.maintain()
    world.stop_and_start()
    world.produce(7)
    world.kill()
    world.produce(7)


def rolls(world: World) -> None:
    """Small segments: new files, indexes and producer snapshots, and a recovery point that follows them."""
    for number in range(16):
        world.produce(7 + number % 2)
        if number % 5 == 4:
            world.maintain()
    world.roll()
    world.flush()
    world.checkpoint()
    world.produce(7)
    world.maintain()


def transactions(world: World) -> None:
    """Aborted and committed transactions side by side, over several segments, with markers last of all."""
    for is_commit in (False, True):
        world.produce(1, is_transactional=True)
        world.produce(2, is_transactional=True)
        world.produce(3)
        world.end_transaction(1, is_commit=is_commit)
        world.maintain()
        world.produce(2, is_transactional=True)
        world.end_transaction(2, is_commit=not is_commit)
        world.checkpoint()
    world.produce(1, is_transactional=True)
    world.stop_and_start()
    world.produce(1, is_transactional=True)
    world.end_transaction(1, is_commit=False)


def truncation(world: World) -> None:
    """What followers do: cut inside a segment, then cut whole segments off, and write other records there."""
    for number in range(12):
        world.produce(7)
        if number == 5:
            world.begin_epoch()
    world.maintain()
    world.checkpoint()
    world.truncate(world.log.log_end_offset - 1)
    world.produce(8)
    world.truncate(3)
    world.produce(8)
    world.maintain()


def deletion(world: World) -> None:
    """Segments with aborted transactions leave the log at its start, some at once and some in a later round."""
    for number in range(6):
        world.produce(1, is_transactional=True)
        world.produce(3)
        world.end_transaction(1, is_commit=number % 2 == 1)
    world.maintain()
    world.checkpoint()
    world.delete_records(5)
    world.checkpoint()
    world.delete_records(9)
    world.delete_records(9)
    world.produce(3)


Scenario = Callable[[World], None]


def without_fault(scenario: Scenario, directory: Path, settings: dict[str, Any]) -> FailingFiles:
    """The calls of a run without a fault."""
    files = FailingFiles()
    world = World(directory / "counting", files, settings=settings)
    scenario(world)
    world.check()
    world.kill()
    return files


def problems_of(
    scenario: Scenario, directory: Path, settings: dict[str, Any], counted: FailingFiles, ending: str
) -> list[str]:
    """What is wrong after each fault."""
    faults: Iterable[Fault] = counted.possible_faults()
    if ending == "killed-after":
        faults = one_per_call(faults)  # which error it was makes little difference then
    elif ending == "killed-within":
        faults = counted.possible_deaths()
    problems = []
    for fault in faults:
        world = World(directory / str(fault), FailingFiles(fault), ending == "killed-after", settings)
        try:
            scenario(world)
            assert world.files.has_failed
            world.check()
        except Exception as error:
            problems.append(f"{fault} ({counted.calls[fault.number - 1]}): {type(error).__name__}: {error}")
        world.kill()
        shutil.rmtree(world.directory, ignore_errors=True)
    return problems


@pytest.mark.parametrize("ending", ["goes-on", "killed-after", "killed-within"])
@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        pytest.param(first_appends, {}, id="first-appends"),
        pytest.param(appends_after_a_restart, {"index_interval_bytes": 100}, id="appends-after-a-restart"),
        pytest.param(rolls, SMALL, id="rolls"),
        pytest.param(transactions, SMALL, id="transactions"),
        pytest.param(truncation, SMALL, id="truncation"),
        pytest.param(deletion, {**SMALL, "retention_ms": -1}, id="deletion"),
    ],
)
def test_one_failure_loses_nothing(scratch: Path, scenario: Scenario, settings: dict[str, Any], ending: str) -> None:
    counted = without_fault(scenario, scratch, settings)
    assert len(counted.calls) > 10
    problems = problems_of(scenario, scratch, settings, counted, ending)
    assert not problems, f"{len(problems)} faults:\n" + "\n".join(problems[:20])
