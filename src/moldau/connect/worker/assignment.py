"""Which worker runs which connectors and tasks. Pure. Start at `Assignor.assign`.

Work stays where it is; new work goes to the worker with the least; a worker with too much gives some away. The work of
a worker that has gone waits for its return for `scheduled.rebalance.max.delay.ms`. No worker has to wait until another
one has let go: a source task's transactional id fences its predecessor, and a sink's partitions are given by its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moldau.connect.worker.config_state import TaskId

__all__ = ["Assignment", "Assignor", "Work"]

Work = str | TaskId
"""A connector by its name, or a task."""


@dataclass(frozen=True, slots=True)
class Assignment:
    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()

    def document(self) -> dict[str, object]:
        return {"connectors": sorted(self.connectors), "tasks": [list(task) for task in sorted(self.tasks)]}

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Assignment:
        connectors, tasks = document["connectors"], document["tasks"]
        assert isinstance(connectors, list)
        assert isinstance(tasks, list)
        return cls(frozenset(connectors), frozenset(TaskId(name, number) for name, number in tasks))


@dataclass
class Assignor:
    """Kept by the leader from one rebalance to the next."""

    max_delay_s: float
    now: Callable[[], float]
    _known: dict[Work, str] = field(default_factory=dict)
    """Who was given what at last."""
    _deadline: float | None = None
    """Until when the work of a lost worker waits."""

    @property
    def remaining_delay_s(self) -> float | None:
        """After how long the leader has to assign again, since work waits; None if none waits."""
        return None if self._deadline is None else max(0.0, self._deadline - self.now())

    def assign(self, held: Mapping[str, Assignment], connectors: set[str], tasks: set[TaskId]) -> dict[str, Assignment]:
        """`held` is what each worker runs now, by its id."""
        owners: dict[Work, str] = {}
        for part in (connectors, tasks):
            owners.update(self._placed(held, part))
        self._known = owners
        return {
            worker: Assignment(
                frozenset(one for one, owner in owners.items() if owner == worker and isinstance(one, str)),
                frozenset(one for one, owner in owners.items() if owner == worker and isinstance(one, TaskId)),
            )
            for worker in held
        }

    def _placed(self, held: Mapping[str, Assignment], wanted: set[str] | set[TaskId]) -> dict[Work, str]:
        loads: dict[str, set[Work]] = {worker: set() for worker in held}
        owners: dict[Work, str] = {}
        for worker in sorted(held):
            for one in (held[worker].connectors | held[worker].tasks) & wanted:
                if one not in owners:
                    owners[one] = worker
                    loads[worker].add(one)
        unplaced = sorted((one for one in wanted if one not in owners), key=str)
        waiting = self._waiting(unplaced, held)
        for one in unplaced:
            if one not in waiting:
                _give(one, min(loads, key=lambda worker: (len(loads[worker]), worker)), owners, loads)
        self._level(owners, loads)
        for one in waiting:
            owners[one] = self._known[one]  # remembered, though its worker is not there
        return owners

    def _waiting(self, unplaced: list[Work], held: Mapping[str, Assignment]) -> set[Work]:
        """The work of lost workers, as long as their return is waited for."""
        lost = {one for one in unplaced if one in self._known and self._known[one] not in held}
        if not lost or self.max_delay_s <= 0:
            if not lost and all(owner in held for owner in self._known.values()):
                self._deadline = None
            return set()
        if self._deadline is None:
            self._deadline = self.now() + self.max_delay_s
        if self.now() >= self._deadline:
            self._deadline = None
            return set()
        return lost

    @staticmethod
    def _level(owners: dict[Work, str], loads: dict[str, set[Work]]) -> None:
        """Move work from who has most to who has least, until they differ by one at most."""
        while loads:
            most = max(loads, key=lambda worker: (len(loads[worker]), worker))
            least = min(loads, key=lambda worker: (len(loads[worker]), worker))
            if len(loads[most]) - len(loads[least]) <= 1:
                return
            moved = max(loads[most], key=str)
            loads[most].discard(moved)
            _give(moved, least, owners, loads)


def _give(one: Work, worker: str, owners: dict[Work, str], loads: dict[str, set[Work]]) -> None:
    owners[one] = worker
    loads[worker].add(one)
