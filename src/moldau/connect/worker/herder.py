"""A worker of a Connect cluster: keeps running here what the cluster's configuration and its leader want here.

The topics say what there should be (`config_state`), the group who runs it (`group`), the engine runs the tasks. One
task on the event loop compares the three again and again and mends the differences, so nothing depends on a message
that may be lost. What the REST API does is `operations`. Start at `Herder.start`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client.coordination.membership import Assigned, Membership
from moldau.connect.api.limits import Limits
from moldau.connect.api.plugins import Plugins
from moldau.connect.runtime.definition import TaskDefinition
from moldau.connect.runtime.fencing import fence_tasks
from moldau.connect.runtime.hosted_task import KIND
from moldau.connect.runtime.task_run import plugins_of
from moldau.connect.worker.assignment import Assignment, Assignor
from moldau.connect.worker.config_state import ConfigState, RestartRequest, Target, TaskId
from moldau.connect.worker.connector_run import ConnectorRun
from moldau.connect.worker.group import Member, Placement, WorkerProtocol
from moldau.connect.worker.settings import WorkerSettings
from moldau.connect.worker.status_state import Status, StatusState, connector_key, task_key, topic_key
from moldau.connect.worker.stores import OffsetStore, Records
from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.hosting.engine_link import PipelineLink
from moldau.pipeline.runtime.hosting.host import PipelineSpec

__all__ = ["Herder", "Stores"]

TICK_S = 0.25
LEAVE_S = 1.0
"""How long each step of the end may take that needs a broker, which may be away."""
READY_CHECK_S = 0.05
OFFSETS_S = 60.0

_logger = logging.getLogger("moldau.connect")

NewMembership = Callable[[WorkerProtocol, "Herder"], Membership]


class Stores:
    """The three stores of a worker."""

    def __init__(self, config: Records, status: Records, offsets: OffsetStore) -> None:
        self.config, self.status, self.offsets = config, status, offsets


class Herder:
    """Runs on one event loop. Without `new_membership` it is alone, and leads."""

    def __init__(
        self,
        settings: WorkerSettings,
        link: PipelineLink,
        new_stores: Callable[[Herder], Stores],
        *,
        worker_id: str,
        url: str,
        new_membership: NewMembership | None = None,
    ) -> None:
        self.settings = settings
        self.worker_id = worker_id
        self.url = url
        self.config = ConfigState()
        self.statuses = StatusState()
        self.plugins: Plugins = plugins_of(settings.given)
        self.unlimited: set[str] = set()
        """Connectors that the worker's limits do not hold for: those whose files were given on the command line."""
        self.stores = new_stores(self)
        self._link = link
        self._assignor = Assignor(settings["scheduled.rebalance.max.delay.ms"] / 1000, time.monotonic)
        self._membership: Membership | None = None
        self._new_membership = new_membership
        self._placement: Placement | None = None
        self._generation = 0
        self._assigned_wanted: tuple[set[str], set[TaskId]] = (set(), set())
        """What the last assignment of this worker as the leader was made for."""
        self._connectors: dict[str, ConnectorRun] = {}
        self._epochs: dict[str | TaskId, int] = {}
        """Grow with each restart."""
        self._specs: dict[TaskId, PipelineSpec] = {}
        self._is_ready = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._complaint = ""
        self.failure: str | None = None
        """Why the group of workers cannot be reached, as long as it cannot."""

    # Lifecycle

    async def start(self) -> None:
        """Read the topics, join the group, and begin to run; raises `StartupError`."""
        timeout_s = self.settings["moldau.init.timeout.ms"] / 1000
        self._loop = asyncio.get_running_loop()
        for store in (self.stores.config, self.stores.status, self.stores.offsets):
            await store.start(timeout_s)
        self._is_ready = True
        self._link.start()
        if self._new_membership is not None:
            protocol = WorkerProtocol(self._member, self._wanted, self._assignor)
            self._membership = self._new_membership(protocol, self)
            self._membership.start()
        self._task = asyncio.create_task(self._keep_up())

    async def stop(self) -> None:
        """Leave the group, end the tasks, and say that nobody runs them."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._link.stop()
        for run in self._connectors.values():
            await asyncio.to_thread(run.stop)
        if self._is_ready and self._membership is not None:
            with contextlib.suppress(MoldauError, TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self._publish_end()
        if self._membership is not None:
            await self._membership.stop(LEAVE_S)
        await asyncio.gather(*(one.stop() for one in (self.stores.offsets, self.stores.status, self.stores.config)))

    async def _publish_end(self) -> None:
        ended = [
            (task_key(task), Status("UNASSIGNED", self.worker_id, self._generation).document())
            for task in self._specs
            if task in self.statuses.tasks
        ]
        ended += [
            (connector_key(name), Status("UNASSIGNED", self.worker_id, self._generation).document())
            for name in self._connectors
            if name in self.statuses.connectors
        ]
        if ended:
            await self.stores.status.append(ended)

    # What is wanted, and who leads

    @property
    def is_leader(self) -> bool:
        """Whether this worker writes configurations."""
        if self._new_membership is None:
            return True
        placement, membership = self._placement, self._membership
        return (
            placement is not None
            and placement.leader_url == self.url
            and membership is not None
            and membership.is_session_alive
        )

    @property
    def leader_url(self) -> str | None:
        """The leader, None while none is known."""
        return self.url if self._new_membership is None else self._placement and self._placement.leader_url

    @property
    def is_ready(self) -> bool:
        """Whether the topics are read and the group has given this worker its part."""
        return self._is_ready and (self._new_membership is None or self._placement is not None)

    async def wait_until_ready(self, timeout_s: float) -> None:
        """Wait for the first assignment; a group that cannot be reached is no reason not to start."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.is_ready:
                    await asyncio.sleep(READY_CHECK_S)

    @property
    def assignment(self) -> Assignment:
        """What this worker should run."""
        if self._new_membership is None:
            return Assignment(frozenset(self.config.configs), frozenset(self.config.task_ids()))
        return Assignment() if self._placement is None else self._placement.assignment

    def wake(self) -> None:
        """Have the differences looked at now; may be called by any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    def _member(self) -> Member:
        return Member(self.worker_id, self.url, Assignment(frozenset(self._connectors), frozenset(self._specs)))

    def _wanted(self) -> tuple[set[str], set[TaskId]]:
        """In the membership's thread: what the leader has to assign."""
        self._assigned_wanted = (set(self.config.configs), self.config.task_ids())
        return self._assigned_wanted

    # MembershipListener

    def on_assigned(self, assigned: Assigned) -> None:
        self._placement = Placement.decode(assigned.assignment)
        self.failure = None
        self._generation = assigned.generation
        assert self._loop is not None
        delay_s = self._assignor.remaining_delay_s
        if self.is_leader and delay_s is not None and self._membership is not None:
            self._loop.call_later(delay_s, self._membership.rejoin)
        self._wake.set()

    def on_revoked(self) -> None:
        """What runs here goes on until the new assignment is known."""

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        self.failure = None if is_transient else str(error)

    # Records

    def apply_config(self, key: str, value: Any) -> None:
        """Apply a record of the config topic."""
        change = self.config.apply(key, value)
        if change is None:
            return
        if isinstance(change.value, RestartRequest) and self._is_ready:
            self._restart(change.value)
        elif change.kind == "logger-cluster-" and self._is_ready:
            set_level(change.name, change.value)
        self._wake.set()

    def apply_status(self, key: str, value: Any) -> None:
        """Apply a record of the status topic."""
        self.statuses.apply(key, value)

    def _restart(self, request: RestartRequest) -> None:
        name = request.connector
        if request.task is not None:
            self._restart_task(TaskId(name, request.task))
            return
        if name in self._connectors and not (request.only_failed and self._connectors[name].trace is None):
            self._epochs[name] = self._epochs.get(name, 0) + 1
        if request.includes_tasks:
            for task in self._specs:
                status = self.statuses.tasks.get(task)
                is_failed = status is not None and status.state == "FAILED"
                if task.connector == name and (is_failed or not request.only_failed):
                    self._restart_task(task)

    def _restart_task(self, task: TaskId) -> None:
        if task in self._specs:
            self._epochs[task] = self._epochs.get(task, 0) + 1

    # Comparing and mending

    async def _keep_up(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._reconcile()
                self._complaint = ""
            except MoldauError as error:
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    _logger.warning("%s; will retry", error)
            except Exception:
                _logger.exception("starting and stopping connectors and tasks failed, will retry")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), TICK_S)

    async def _reconcile(self) -> None:
        if not self.is_ready:
            return
        wanted = (set(self.config.configs), self.config.task_ids())
        if self.is_leader and self._membership is not None and self._assigned_wanted != wanted:
            self._assigned_wanted = wanted
            self._membership.rejoin()
        await self._reconcile_connectors()
        self._reconcile_tasks()
        await self._publish_statuses()

    async def _reconcile_connectors(self) -> None:
        wanted = {
            name: self.config.configs[name]
            for name in self.assignment.connectors
            if name in self.config.configs and self.config.target(name) is not Target.STOPPED
        }
        for name, run in list(self._connectors.items()):
            if name not in wanted or run.config != wanted[name] or run.epoch != self._epochs.get(name, 0):
                del self._connectors[name]
                await asyncio.to_thread(run.stop)
        for name in wanted.keys() - self._connectors.keys():
            run = self._connectors[name] = ConnectorRun(
                name,
                wanted[name],
                self._epochs.get(name, 0),
                plugins=self.plugins,
                worker=self.settings.given,
                limits=self.limits(name),
                offsets=self._read_offsets,
                on_change=self.wake,
            )
            await asyncio.to_thread(run.start)
        for name, run in self._connectors.items():
            if run.wants_tasks and run.trace is None:
                run.wants_tasks = False
                await self._ask_for_tasks(name, run)

    def _read_offsets(self, name: str) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """In a connector's thread: the source offsets that are stored now."""
        assert self._loop is not None
        reading = asyncio.run_coroutine_threadsafe(self.stores.offsets.read(name), self._loop)
        return reading.result(OFFSETS_S)

    def limits(self, name: str) -> Limits:
        """What a connector may touch."""
        if name in self.unlimited:
            return Limits()
        return Limits.of(self.settings.allowed("paths"), self.settings.allowed("hosts"))

    async def _ask_for_tasks(self, name: str, run: ConnectorRun) -> None:
        configs = await asyncio.to_thread(run.task_configs)
        if configs is None or self.config.configs.get(name) != run.config:
            return
        current = [dict(one) for one in self.config.tasks.get(name, ())]
        if configs == current and self.config.applied.get(name) == run.config and name in self.config.tasks:
            return
        before = max(self.config.task_counts.get(name, 0), len(current))
        if before > len(configs):
            await self.fence(name, range(len(configs), before))
        records: list[tuple[str, Any]] = [
            (f"task-{name}-{number}", {"properties": config}) for number, config in enumerate(configs)
        ]
        records.append((f"tasks-fencing-{name}", {"task-count": len(configs)}))
        records.append((f"commit-{name}", {"tasks": len(configs)}))
        await self.stores.config.append(records)
        gone = [task for task in self.statuses.tasks_of(name) if task.task >= len(configs)]
        if gone:
            await self.stores.status.append([(task_key(task), None) for task in gone])

    async def fence(self, name: str, numbers: range) -> None:
        """Keep tasks that may still run somewhere, unknown to us, from writing anything more."""
        if self.settings.is_standalone or self.kind(name) != "source":
            return
        ids = [f"{self.settings.group_id}-{name}-{number}" for number in numbers]
        await asyncio.to_thread(fence_tasks, self.settings.given, ids)

    def kind(self, name: str) -> str:
        """Whether a connector is a source or a sink."""
        try:
            return self.plugins.find(self.config.configs[name]["connector.class"], "source", "sink").kind
        except (MoldauError, KeyError):
            return "unknown"

    def _reconcile_tasks(self) -> None:
        wanted = {task: self._spec(task) for task in self.assignment.tasks & self.config.task_ids()}
        for task, spec in list(self._specs.items()):
            if task not in wanted:
                del self._specs[task]
                self._link.unwant(spec, delete_state=False)
        for task, spec in wanted.items():
            if self._specs.get(task) != spec:
                self._specs[task] = spec
                self._link.want(spec)

    def spec_name(self, task: TaskId) -> str:
        return f"connect-{self.settings.group_id}-{task}"

    def _spec(self, task: TaskId) -> PipelineSpec:
        limits = self.limits(task.connector)
        definition = TaskDefinition(
            connector=task.connector,
            task=task.task,
            group_id=self.settings.group_id,
            connector_config=self.config.applied.get(task.connector, {}),
            task_config=self.config.tasks[task.connector][task.task],
            worker=self.settings.given,
            is_standalone=self.settings.is_standalone,
            allowed_paths=limits.paths,
            allowed_hosts=limits.hosts,
            epoch=self._epochs.get(task, 0),
        )
        return PipelineSpec(
            name=self.spec_name(task),
            kind=KIND,
            definition=json.loads(json.dumps(definition.document())),  # as it comes back from the engine
            is_paused=self.config.target(task.connector) is Target.PAUSED,
        )

    # Statuses

    async def _publish_statuses(self) -> None:
        news: list[tuple[str, Any]] = []
        for name in self.assignment.connectors & self.config.configs.keys():
            status = self._connector_status(name)
            if status is not None and not _is_same(self.statuses.connectors.get(name), status):
                news.append((connector_key(name), status.document()))
        for task, spec in self._specs.items():
            status = self._task_status(task, spec)
            if status is not None and not _is_same(self.statuses.tasks.get(task), status):
                news.append((task_key(task), status.document()))
            news += self._topic_news(task)
        news += self._of_lost_workers()
        if news:
            await self.stores.status.append(news)

    def _connector_status(self, name: str) -> Status | None:
        run = self._connectors.get(name)
        target = self.config.target(name)
        if target is Target.STOPPED:
            return Status("STOPPED", self.worker_id, self._generation)
        if run is None:
            return None
        if run.trace is not None:
            return Status("FAILED", self.worker_id, self._generation, run.trace)
        state = "PAUSED" if target is Target.PAUSED else "RUNNING"
        return Status(state, self.worker_id, self._generation)

    def task_report(self, task: TaskId) -> Mapping[str, Any] | None:
        """What the engine last said of a task as it should run now."""
        spec = self._specs.get(task)
        found = self._link.status(self.spec_name(task)) if spec is not None else None
        if spec is None or found is None or found["definition"] != spec.definition:
            return None
        return found

    def _task_status(self, task: TaskId, spec: PipelineSpec) -> Status | None:
        known = self.statuses.tasks.get(task)
        if spec.is_paused:
            return Status("PAUSED", self.worker_id, self._generation)
        found = self.task_report(task)
        report = found["report"] if found is not None else None
        if report is None or report["state"] == "UNASSIGNED":
            is_ours = known is not None and known.worker_id == self.worker_id
            return None if is_ours else Status("UNASSIGNED", self.worker_id, self._generation)
        return Status(report["state"], self.worker_id, self._generation, report["trace"])

    def _topic_news(self, task: TaskId) -> list[tuple[str, Any]]:
        found = self.task_report(task)
        report = found["report"] if found is not None else None
        if report is None or not self.settings["topic.tracking.enable"]:
            return []
        known = self.statuses.topics.get(task.connector, set())
        now = time.time_ns() // 1_000_000
        return [
            (
                topic_key(topic, task.connector),
                {"topic": {"name": topic, "connector": task.connector, "task": task.task, "discoverTimestamp": now}},
            )
            for topic in report["topics"]
            if topic not in known
        ]

    def _of_lost_workers(self) -> list[tuple[str, Any]]:
        """As the leader: what ran on workers that have gone, and waits for their return, runs nowhere."""
        placement = self._placement
        if placement is None or not self.is_leader:
            return []
        news: list[tuple[str, Any]] = []
        for task, status in self.statuses.tasks.items():
            if status.worker_id not in placement.workers and status.state != "UNASSIGNED":
                news.append((task_key(task), Status("UNASSIGNED", status.worker_id, status.generation).document()))
        for name, status in self.statuses.connectors.items():
            if status.worker_id not in placement.workers and status.state not in ("UNASSIGNED", "STOPPED"):
                news.append((connector_key(name), Status("UNASSIGNED", status.worker_id, status.generation).document()))
        return news


def _is_same(known: Status | None, new: Status) -> bool:
    return known is not None and (known.state, known.worker_id, known.trace) == (new.state, new.worker_id, new.trace)


def set_level(name: str, level: str) -> list[str]:
    """Set the level of a logger and of those below it; their names."""
    changed = [name]
    logging.getLogger("" if name == "root" else name).setLevel(_level(level))
    for other in sorted(logging.Logger.manager.loggerDict):
        if other.startswith(f"{name}."):
            logging.getLogger(other).setLevel(_level(level))
            changed.append(other)
    return changed


def _level(name: str) -> str:
    return {"TRACE": "DEBUG", "FATAL": "CRITICAL", "OFF": "CRITICAL", "WARN": "WARNING"}.get(name.upper(), name.upper())
