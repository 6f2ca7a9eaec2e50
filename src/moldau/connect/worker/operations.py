"""What the REST API does to a cluster of workers: connectors, their states, offsets, plug-ins and loggers.

Reads are answered from the worker's own copy of the topics; writes are for the leader. Start at `Operations`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

import moldau
from moldau.client.errors import ClientError
from moldau.client.groups import Groups
from moldau.connect.api.connector import SourceConnector
from moldau.connect.api.errors import ConnectError
from moldau.connect.api.plugins import PluginNotFoundError
from moldau.connect.runtime.secrets import Secrets
from moldau.connect.runtime.sink_run import sink_group_id
from moldau.connect.worker.config_state import Target, TaskId
from moldau.connect.worker.flows import connector_admin
from moldau.connect.worker.herder import Herder, set_level
from moldau.connect.worker.status_state import Status, connector_key, task_key, topic_key
from moldau.connect.worker.validation import ConfigInfos, connector_definition, validate
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition
from moldau.http.errors import HttpError

__all__ = ["Operations"]

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
SETTLE_S = 60.0
STATES = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}

Document = dict[str, Any]


class Operations:
    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self._levels_changed: dict[str, int] = {}

    # The worker

    def root(self) -> Document:
        return {
            "version": moldau.__version__,
            "commit": "unknown",
            "kafka_cluster_id": self._herder.stores.config.cluster_id,
        }

    def health(self) -> tuple[int, Document]:
        """Status code and document of `/health`."""
        if self._herder.failure is not None:
            message = f"Worker is not able to reach its group: {self._herder.failure}"
            return 500, {"status": "unhealthy", "message": message}
        if self._herder.is_ready:
            return 200, {
                "status": "healthy",
                "message": "Worker has completed startup and is ready to handle requests.",
            }
        return 503, {"status": "starting", "message": "Worker is still starting up."}

    # Connectors

    def names(self) -> list[str]:
        return sorted(self._herder.config.configs)

    def expanded(self, parts: list[str]) -> Document:
        """All connectors with their status, their info, or both."""
        found: Document = {}
        for name in self.names():
            entry: Document = {}
            if "status" in parts and name in self._herder.statuses.connectors:
                entry["status"] = self.status(name)
            if "info" in parts:
                entry["info"] = self.info(name)
            found[name] = entry
        return found

    def info(self, name: str) -> Document:
        config = self._config(name)
        return {
            "name": name,
            "config": dict(config),
            "tasks": [
                {"connector": name, "task": number} for number in range(len(self._herder.config.tasks.get(name, ())))
            ],
            "type": self._herder.kind(name),
        }

    def config(self, name: str) -> Document:
        return dict(self._config(name))

    def status(self, name: str) -> Document:
        status = self._herder.statuses.connectors.get(name)
        if status is None or name not in self._herder.config.configs:
            raise HttpError(404, f"No status found for connector {name}")
        return {
            "name": name,
            "connector": status.shown(),
            "tasks": [{"id": task.task, **one.shown()} for task, one in self._herder.statuses.tasks_of(name).items()],
            "type": self._herder.kind(name),
        }

    def tasks(self, name: str) -> list[Document]:
        self._config(name)
        return [
            {"id": {"connector": name, "task": number}, "config": dict(config)}
            for number, config in enumerate(self._herder.config.tasks.get(name, ()))
        ]

    def tasks_config(self, name: str) -> Document:
        return {f"{name}-{one['id']['task']}": one["config"] for one in self.tasks(name)}

    def task_status(self, name: str, number: int) -> Document:
        status = self._herder.statuses.tasks.get(TaskId(name, number))
        if status is None:
            raise HttpError(404, f"No status found for task {name}-{number}")
        return {"id": number, **status.shown()}

    async def create(self, name: str, config: Mapping[str, str], state: str | None) -> Document:
        """POST /connectors."""
        if state is not None and state not in STATES:
            raise HttpError(400, f"initial_state must be one of {', '.join(STATES)}, not {state!r}")
        given = _named(name, config)
        await self._check(given)
        if name in self._herder.config.configs:
            raise HttpError(409, f"Connector {name} already exists")
        await self._write(name, given, STATES[state] if state is not None else None)
        return self.info(name)

    async def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, Document]:
        """PUT config: whether the connector is new, and its info."""
        given = _named(name, config)
        await self._check(given)
        is_new = name not in self._herder.config.configs
        await self._write(name, given, None)
        return is_new, self.info(name)

    async def patch_config(self, name: str, patch: Mapping[str, str | None]) -> Document:
        merged: dict[str, str | None] = {**self._config(name), **patch}
        given = _named(name, {key: text for key, text in merged.items() if text is not None})
        await self._check(given)
        await self._write(name, given, None)
        return self.info(name)

    async def delete(self, name: str) -> None:
        """Offsets are kept."""
        self._config(name)
        tasks = self._herder.config.tasks.get(name, ())
        records: list[tuple[str, Any]] = [(f"task-{name}-{number}", None) for number in range(len(tasks))]
        records += [(f"commit-{name}", None), (f"tasks-fencing-{name}", None)]
        records += [(f"connector-{name}", None), (f"target-state-{name}", None)]
        await self._herder.stores.config.append(records)
        statuses = self._herder.statuses
        gone: list[tuple[str, Any]] = [(connector_key(name), None)]
        gone += [(task_key(task), None) for task in statuses.tasks_of(name)]
        gone += [(topic_key(topic, name), None) for topic in statuses.topics.get(name, set())]
        await self._herder.stores.status.append(gone)

    async def _write(self, name: str, config: Mapping[str, str], target: Target | None) -> None:
        records: list[tuple[str, Any]] = []
        if target is not None:
            records.append((f"target-state-{name}", _target(target)))
        records.append((f"connector-{name}", {"properties": dict(config)}))
        await self._herder.stores.config.append(records)

    async def _check(self, config: Mapping[str, str]) -> None:
        if not config.get("connector.class"):
            raise HttpError(400, 'The configuration contains no connector type; set "connector.class"')
        infos = await self._validated(config)
        if infos.errors:
            lines = "\n".join(infos.errors)
            raise HttpError(
                400,
                f"Connector configuration is invalid and contains the following {len(infos.errors)} error(s):\n"
                f"{lines}\n"
                "You can also find the above list of errors at the endpoint "
                "`/connector-plugins/{connectorType}/config/validate`",
            )

    async def _validated(self, config: Mapping[str, str]) -> ConfigInfos:
        try:
            return await asyncio.to_thread(validate, config, self._herder.plugins, self._herder.settings.given)
        except ConnectError as error:
            raise HttpError(400, str(error)) from None

    # States

    async def set_target(self, name: str, target: Target) -> None:
        """Pause, resume or stop."""
        self._config(name)
        records: list[tuple[str, Any]] = [(f"target-state-{name}", _target(target))]
        if target is Target.STOPPED:
            records.append((f"commit-{name}", {"tasks": 0}))
        await self._herder.stores.config.append(records)
        gone = [(task_key(task), None) for task in self._herder.statuses.tasks_of(name)]
        if target is Target.STOPPED and gone:
            await self._herder.stores.status.append(gone)

    async def restart(self, name: str, *, includes_tasks: bool, only_failed: bool) -> Document | None:
        """Restart a connector; the plan as a status document, None if only the connector itself is restarted."""
        self._config(name)
        request = {"include-tasks": includes_tasks, "only-failed": only_failed}
        if not includes_tasks and not only_failed:
            await self._herder.stores.config.append([(f"restart-connector-{name}", request)])
            return None
        statuses = self._herder.statuses
        own = statuses.connectors.get(name)
        if own is None:
            raise HttpError(404, f"Status for connector {name} not found")
        news: list[tuple[str, Any]] = []
        if own.state == "FAILED" or not only_failed:
            news.append((connector_key(name), Status("RESTARTING", own.worker_id, own.generation).document()))
        for task, status in statuses.tasks_of(name).items() if includes_tasks else ():
            if status.state == "FAILED" or not only_failed:
                news.append((task_key(task), Status("RESTARTING", status.worker_id, status.generation).document()))
        planned = self._planned(name, dict(news))
        await self._herder.stores.config.append([(f"restart-connector-{name}", request)])
        if news:
            await self._herder.stores.status.append(news)
        return planned

    def _planned(self, name: str, news: Mapping[str, Any]) -> Document:
        document = self.status(name)
        if connector_key(name) in news:
            document["connector"] = Status.of(news[connector_key(name)]).shown()
        document["tasks"] = [
            {"id": one["id"], **Status.of(news[task_key(TaskId(name, one["id"]))]).shown()}
            if task_key(TaskId(name, one["id"])) in news
            else one
            for one in document["tasks"]
        ]
        return document

    async def restart_task(self, name: str, number: int) -> None:
        self._config(name)
        if number >= len(self._herder.config.tasks.get(name, ())) or number < 0:
            raise HttpError(404, f"Unknown task: {name}-{number}")
        status = self._herder.statuses.tasks.get(TaskId(name, number))
        await self._herder.stores.config.append([(f"restart-connector-{name}", {"task": number})])
        if status is not None:
            document = Status("RESTARTING", status.worker_id, status.generation).document()
            await self._herder.stores.status.append([(task_key(TaskId(name, number)), document)])

    # Topics

    def topics(self, name: str) -> Document:
        self._check_tracking("topic.tracking.enable", "Topic tracking is disabled.")
        self._config(name)
        return {name: {"topics": sorted(self._herder.statuses.topics.get(name, set()))}}

    async def reset_topics(self, name: str) -> None:
        self._check_tracking("topic.tracking.enable", "Topic tracking is disabled.")
        self._check_tracking("topic.tracking.allow.reset", "Topic tracking reset is disabled.")
        self._config(name)
        gone = [(topic_key(topic, name), None) for topic in self._herder.statuses.topics.get(name, set())]
        if gone:
            await self._herder.stores.status.append(gone)

    def _check_tracking(self, setting: str, message: str) -> None:
        if not self._herder.settings[setting]:
            raise HttpError(403, message)

    # Offsets

    async def offsets(self, name: str) -> Document:
        config = self._config(name)
        if self._herder.kind(name) == "sink":
            committed = await asyncio.to_thread(self._committed, name, config)
            return {
                "offsets": [
                    {
                        "partition": {"kafka_topic": place.topic, "kafka_partition": place.partition},
                        "offset": {"kafka_offset": offset},
                    }
                    for place, offset in sorted(committed.items())
                ]
            }
        found = await self._herder.stores.offsets.read(name)
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in found]}

    async def alter_offsets(self, name: str, document: Any) -> Document:
        self._check_stopped(name, "altered")
        rows = document.get("offsets") if isinstance(document, dict) else None
        if not isinstance(rows, list) or not rows:
            raise HttpError(400, "Partitions / offsets need to be provided for an alter offsets request")
        if any(not isinstance(one, dict) or not isinstance(one.get("partition"), dict) for one in rows):
            raise HttpError(400, "Each entry needs a partition and an offset, which may be null")
        await self._await_end_of_tasks(name)
        if self._herder.kind(name) == "sink":
            checked = await self._alter_sink(name, _sink_offsets(rows))
        else:
            checked = await self._alter_source(name, [(one["partition"], one.get("offset")) for one in rows])
        return _done("altered", checked)

    async def reset_offsets(self, name: str) -> Document:
        self._check_stopped(name, "reset")
        await self._await_end_of_tasks(name)
        if self._herder.kind(name) == "sink":
            committed = await asyncio.to_thread(self._committed, name, self._config(name))
            checked = await self._alter_sink(name, dict.fromkeys(committed))
        else:
            found = await self._herder.stores.offsets.read(name)
            checked = await self._alter_source(name, [(partition, None) for partition, _ in found])
        return _done("reset", checked)

    def _check_stopped(self, name: str, word: str) -> None:
        self._config(name)
        if self._herder.config.target(name) is not Target.STOPPED:
            raise HttpError(
                400,
                f"Connectors must be in the STOPPED state before their offsets can be {word}. This can be done for the "
                f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
            )

    async def _await_end_of_tasks(self, name: str) -> None:
        """Tasks end a moment after the connector was stopped; those that nobody knows of are fenced."""
        count = self._herder.config.task_counts.get(name, 0)
        await self._herder.fence(name, range(count))

    async def _alter_source(self, name: str, changes: list[tuple[Any, Any]]) -> bool:
        connector = self._herder.plugins.connector(self._config(name)["connector.class"])
        assert isinstance(connector, SourceConnector)
        checked = await self._hook(name, connector.alter_offsets, changes)
        if changes:
            await self._herder.stores.offsets.write(name, changes)
        return checked

    async def _alter_sink(self, name: str, changes: Mapping[TopicPartition, int | None]) -> bool:
        connector: Any = self._herder.plugins.connector(self._config(name)["connector.class"])
        checked = await self._hook(name, connector.alter_offsets, changes)
        try:
            await asyncio.to_thread(self._commit, name, self._config(name), changes)
        except ClientError as error:
            raise HttpError(
                400,
                f"Failed to alter consumer group offsets for connector {name}: {error}; its tasks may still be ending",
            ) from None
        return checked

    async def _hook(self, name: str, alter: Any, changes: Any) -> bool:
        config = Secrets(self._herder.settings.given).resolve(self._config(name))
        try:
            return bool(await asyncio.to_thread(alter, config, changes))
        except MoldauError as error:
            raise HttpError(400, str(error)) from None

    def _committed(self, name: str, config: Mapping[str, str]) -> dict[TopicPartition, int]:
        found = Groups(connector_admin(self._herder, name, config)).committed(sink_group_id(name, config))
        return {place: committed.offset for place, committed in found.items()}

    def _commit(self, name: str, config: Mapping[str, str], changes: Mapping[TopicPartition, int | None]) -> None:
        groups, group_id = Groups(connector_admin(self._herder, name, config)), sink_group_id(name, config)
        deadline = time.monotonic() + SETTLE_S
        while True:
            description = groups.describe(group_id)
            if description is None or not description.members:
                break
            if time.monotonic() > deadline:
                raise ClientError(f"the group {group_id} still has members")
            time.sleep(0.1)
        groups.commit(group_id, {place: offset for place, offset in changes.items() if offset is not None})
        gone = [place for place, offset in changes.items() if offset is None]
        if gone and description is not None:
            for error in groups.delete_offsets(group_id, gone).values():
                if error is not None:
                    raise error

    # Plug-ins

    async def plugins(self, *, connectors_only: bool) -> list[Document]:
        known = self._herder.plugins
        return await asyncio.to_thread(_listed, known.connectors() if connectors_only else known.all())

    async def plugin_config(self, name: str) -> list[Document]:
        try:
            plugin = self._herder.plugins.find(name)
            loaded = await asyncio.to_thread(plugin.load)
        except PluginNotFoundError as error:
            raise HttpError(404, f"Unknown plugin {name}: {error}") from None
        except ConnectError as error:
            raise HttpError(500, str(error)) from None
        if plugin.kind in ("source", "sink"):
            return connector_definition(loaded()).as_json()
        found: list[Document] = loaded.config_def.as_json()
        return found

    async def validate(self, plugin: str, config: Mapping[str, str]) -> Document:
        given = {"connector.class": plugin, **config}
        try:
            wanted = self._herder.plugins.find(plugin, "source", "sink")
            named = self._herder.plugins.find(given["connector.class"], "source", "sink")
        except PluginNotFoundError as error:
            raise HttpError(404 if given["connector.class"] == plugin else 400, str(error)) from None
        if wanted.name != named.name:
            raise HttpError(
                400,
                f"Included connector type {given['connector.class']} does not match request type {plugin}",
            )
        return (await self._validated(given)).document()

    # Loggers

    def loggers(self) -> Document:
        names = ["root", *sorted(name for name in logging.Logger.manager.loggerDict if name.startswith("moldau"))]
        return {name: self._logger(name) for name in names if self._own_level(name)}

    def logger(self, name: str) -> Document:
        if name != "root" and name not in logging.Logger.manager.loggerDict:
            raise HttpError(404, f"Logger {name} not found.")
        return self._logger(name)

    async def set_logger(self, name: str, level: Any, scope: str) -> list[str] | None:
        if not isinstance(level, str) or not level:
            raise HttpError(400, "Desired 'level' parameter was not specified in request.")
        if level.upper() not in LEVELS:
            raise HttpError(404, f"invalid log level '{level}'.")
        self._levels_changed[name] = time.time_ns() // 1_000_000
        if scope == "cluster":
            await self._herder.stores.config.append([(f"logger-cluster-{name}", {"level": level.upper()})])
            return None
        return set_level(name, level)

    @staticmethod
    def _own_level(name: str) -> bool:
        return name == "root" or logging.getLogger(name).level != logging.NOTSET

    def _logger(self, name: str) -> Document:
        level = logging.getLogger("" if name == "root" else name).getEffectiveLevel()
        shown = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(logging.getLevelName(level), logging.getLevelName(level))
        return {"level": shown, "last_modified": self._levels_changed.get(name)}

    def _config(self, name: str) -> Mapping[str, str]:
        config = self._herder.config.configs.get(name)
        if config is None:
            raise HttpError(404, f"Connector {name} not found")
        return config


def _listed(plugins: Any) -> list[Document]:
    found = []
    for plugin in plugins:
        try:
            found.append(plugin.as_json())
        except (ConnectError, ImportError, AttributeError) as error:
            logging.getLogger("moldau.connect").debug("%s is left out of the list: %s", plugin.name, error)
    return found


def _named(name: str, config: Mapping[str, str]) -> dict[str, str]:
    given = config.get("name", name)
    if given != name:
        raise HttpError(400, f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
    return {**config, "name": name}


def _target(target: Target) -> dict[str, str]:
    """With the older field, which knows no STOPPED."""
    old = "PAUSED" if target is Target.STOPPED else target.value
    return {"state": old, "state.v2": target.value}


def _sink_offsets(rows: list[Any]) -> dict[TopicPartition, int | None]:
    found: dict[TopicPartition, int | None] = {}
    for row in rows:
        partition, offset = row["partition"], row.get("offset")
        topic, number = partition.get("kafka_topic"), partition.get("kafka_partition")
        if not isinstance(topic, str) or not str(number).isdigit():
            raise HttpError(
                400,
                "The partition for a sink connector offset has the keys kafka_topic and kafka_partition; "
                f"{partition} has not",
            )
        value = offset.get("kafka_offset") if isinstance(offset, dict) else None
        if offset is not None and not str(value).isdigit():
            raise HttpError(
                400, f"The offset for a sink connector has the key kafka_offset, a number from 0 on; {offset} has not"
            )
        found[TopicPartition(topic, int(number))] = None if offset is None else int(str(value))
    return found


def _done(word: str, checked: bool) -> Document:
    if checked:
        return {"message": f"The offsets for this connector have been {word} successfully"}
    return {
        "message": f"The Connect framework-managed offsets for this connector have been {word} successfully. However, "
        f"if this connector manages offsets externally, they will need to be manually {word} in the system that the "
        "connector uses."
    }
