"""What connectors do, seen from outside: `/topology` and `/progress` of a worker. Start at `Flows`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.groups import Groups
from moldau.connect.runtime.client_settings import ClientSettings
from moldau.connect.runtime.secrets import Secrets
from moldau.connect.runtime.sink_run import sink_group_id
from moldau.connect.worker.config_state import TaskId
from moldau.connect.worker.herder import Herder
from moldau.core.graphs import edge, topic_id, topic_node
from moldau.core.ids import TopicPartition

__all__ = ["Flows", "connector_admin"]

LATEST = -1


def connector_admin(herder: Herder, name: str, config: Mapping[str, str]) -> Admin:
    """A client of the cluster that a connector works with."""
    secrets = Secrets(herder.settings.given)
    clients = ClientSettings(secrets.resolve(herder.settings.given), secrets.resolve(config))
    return Admin(clients.servers, clients.admin(f"connect-offsets-{name}"))


class Flows:
    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def graph(self, name: str) -> dict[str, Any]:
        """A connector, the topics that it has used or is configured for, and which way records go."""
        config = self._herder.config.configs[name]
        is_sink = self._herder.kind(name) == "sink"
        node = {
            "id": f"connector:{name}",
            "kind": "connector",
            "name": name,
            "pipeline": name,
            "type": self._herder.kind(name),
            "class": config.get("connector.class", ""),
        }
        topics = sorted(self._herder.statuses.topics.get(name, set()) | _configured_topics(config, is_sink=is_sink))
        own = node["id"]
        edges = [edge(topic_id(one), own) if is_sink else edge(own, topic_id(one)) for one in topics]
        return {"nodes": [node, *(topic_node(one) for one in topics)], "edges": edges}

    async def progress(self, name: str) -> dict[str, Any]:
        """State, tasks with their metrics as far as they run here, lag of a sink, and the last error."""
        statuses = self._herder.statuses
        own = statuses.connectors.get(name)
        tasks = [self._task(task) for task in statuses.tasks_of(name)]
        traces = [one["trace"] for one in tasks if one.get("trace")]
        if own is not None and own.trace:
            traces.append(own.trace)
        shown: dict[str, Any] = {
            "pipeline": name,
            "kind": "connector",
            "type": self._herder.kind(name),
            "state": "UNASSIGNED" if own is None else own.state,
            "tasks": tasks,
            "last_error": _last_line(traces[-1]) if traces else None,
        }
        if self._herder.kind(name) == "sink":
            try:
                shown["lag"] = await asyncio.to_thread(self._lag, name)
            except ClientError as error:
                shown["last_error"] = shown["last_error"] or str(error)
        return shown

    def _task(self, task: TaskId) -> dict[str, Any]:
        status = self._herder.statuses.tasks[task]
        found = self._herder.task_report(task)
        report = (found or {}).get("report") or {}
        return {"id": task.task, **status.shown(), "metrics": report.get("metrics", {})}

    def _lag(self, name: str) -> dict[str, int]:
        """Records that a sink has not committed yet, by partition. Blocks."""
        config = self._herder.config.configs[name]
        admin = connector_admin(self._herder, name, config)
        committed = Groups(admin).committed(sink_group_id(name, config))
        ends = admin.try_list_offsets(dict.fromkeys(committed, LATEST)) if committed else {}
        return {
            _place(at): max(0, end - committed[at].offset) for at, end in sorted(ends.items()) if isinstance(end, int)
        }


def _place(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"


def _configured_topics(config: Mapping[str, str], *, is_sink: bool) -> set[str]:
    """Topics that the configuration names: of a sink, and of sources that write to one."""
    named = config.get("topics" if is_sink else "topic", "")
    return {topic.strip() for topic in named.split(",") if topic.strip()}


def _last_line(trace: str) -> str:
    return trace.strip().splitlines()[-1]
