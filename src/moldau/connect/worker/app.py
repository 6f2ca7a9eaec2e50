"""The REST API of a worker: Kafka Connect's endpoints, and which of them the leader answers. Start at `build_app`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from moldau.client.errors import ClientError
from moldau.connect.api.errors import ConnectError
from moldau.connect.worker.config_state import Target
from moldau.connect.worker.flows import Flows
from moldau.connect.worker.herder import Herder
from moldau.connect.worker.metrics import connect_families
from moldau.connect.worker.operations import Operations
from moldau.core.errors import InvalidConfigError
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.forwarding import Forward, ForwardingFailedError
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes
from moldau.http.pipelines import pipeline_endpoints

__all__ = ["HOP", "build_app"]

HOP = "X-Connect-Forwarded"
LEADER_S = 10.0
LEADER_CHECK_S = 0.1
OBJECT = {"type": "object"}
LIST = {"type": "array"}
MEDIA_TYPES = MediaTypes({"application/json": 1.0}, frozenset({"*/*"}))

Handle = Callable[[Call], Awaitable[Answer]]
NO_CONTENT = Answer(status=204, content=b"")


def build_app(herder: Herder, forward: Forward | None = None) -> HttpApp:
    """The worker as an ASGI app; `forward` sends writes to the leader where there may be others."""
    return service.build_app(
        _Endpoints(herder, forward).table(),
        title="moldau connect",
        description="Connectors: data in and out of topics by configuration, as Kafka Connect's clients expect it.",
        media_types=MEDIA_TYPES,
        render_error=_render_error,
        health=lambda: {"healthy": herder.is_ready},
        metrics=HttpMetrics("moldau_connect", dict, lambda: connect_families(herder)),
    )


def _render_error(error: Exception) -> Answer:
    if isinstance(error, ForwardingFailedError):
        error = HttpError(500, f"IO Error trying to forward REST request: {error}")
    elif isinstance(error, ClientError):
        error = HttpError(500, str(error))
    elif isinstance(error, ConnectError | InvalidConfigError) and not isinstance(error, HttpError):
        error = HttpError(400, str(error))
    return service.render_error_code(error)


class _Endpoints:
    def __init__(self, herder: Herder, forward: Forward | None) -> None:
        self._herder = herder
        self._forward = forward
        self._does = Operations(herder)

    def table(self) -> list[Endpoint]:
        flows = Flows(self._herder)
        return [
            *self._about_the_worker(),
            *self._connectors(),
            *self._states(),
            *self._plugins(),
            *self._loggers(),
            *pipeline_endpoints(self._does.names, flows.graph, flows.progress),
        ]

    def _row(
        self, method: str, path: str, summary: str, handle: Handle, *, writes: bool = False, **more: Any
    ) -> Endpoint:
        if writes:
            handle = self._by_leader(handle)
        return Endpoint(method=method, path=path, handle=handle, summary=summary, **more)

    def _by_leader(self, handle: Handle) -> Handle:
        async def answer(call: Call) -> Answer:
            deadline = asyncio.get_running_loop().time() + LEADER_S
            while True:
                if self._herder.is_leader:
                    await self._herder.stores.config.catch_up()
                    return await handle(call)
                url = self._herder.leader_url
                if url is not None and url != self._herder.url and self._forward is not None:
                    if HOP.lower() in call.headers:
                        raise HttpError(
                            409, "Cannot complete request because of a conflicting operation (not the leader)"
                        )
                    return await self._forward(call, url)
                if asyncio.get_running_loop().time() > deadline:
                    raise HttpError(
                        409, "Cannot complete request momentarily: no leader is known yet; try again in a moment"
                    )
                await asyncio.sleep(LEADER_CHECK_S)

        return answer

    # The worker

    def _about_the_worker(self) -> list[Endpoint]:
        async def root(_call: Call) -> Answer:
            return Answer(self._does.root())

        async def health(_call: Call) -> Answer:
            status, document = self._does.health()
            return Answer(document, status=status)

        async def ready(_call: Call) -> Answer:
            return Answer({"ready": self._herder.is_ready}, status=200 if self._herder.is_ready else 503)

        return [
            self._row("GET", "/", "The worker.", root, reply=OBJECT),
            self._row("GET", "/health", "Whether the worker works.", health, reply=OBJECT, is_public=True),
            self._row("GET", "/readyz", "Whether the worker takes requests.", ready, reply=OBJECT, is_public=True),
        ]

    # Connectors

    def _connectors(self) -> list[Endpoint]:
        row, one = self._row, "/connectors/{name}"
        return [
            row("GET", "/connectors", "The connectors.", self.list_all, reply={"type": ["array", "object"]}),
            row("POST", "/connectors", "Make one.", self.create, writes=True, body=OBJECT, reply=OBJECT, status=201),
            row("GET", one, "A connector.", self.shows(self._does.info), reply=OBJECT),
            row("DELETE", one, "Delete one; its offsets are kept.", self.delete, writes=True, status=204),
            row("GET", f"{one}/config", "Its configuration.", self.shows(self._does.config), reply=OBJECT),
            row("PUT", f"{one}/config", "Make or change it.", self.put_config, writes=True, body=OBJECT, reply=OBJECT),
            row("PATCH", f"{one}/config", "Change keys.", self.patch_config, writes=True, body=OBJECT, reply=OBJECT),
            row("GET", f"{one}/tasks", "Its tasks.", self.shows(self._does.tasks), reply=LIST),
            row(
                "GET", f"{one}/tasks-config", "Its tasks' settings.", self.shows(self._does.tasks_config), reply=OBJECT
            ),
            row("GET", f"{one}/topics", "Topics it has used.", self.shows(self._does.topics), reply=OBJECT),
            row("PUT", f"{one}/topics/reset", "Forget these.", self.reset_topics, writes=True, status=202),
            row("GET", f"{one}/offsets", "How far it is.", self.offsets, reply=OBJECT),
            row("PATCH", f"{one}/offsets", "Change that.", self.alter_offsets, writes=True, body=OBJECT, reply=OBJECT),
            row("DELETE", f"{one}/offsets", "Start over.", self.reset_offsets, writes=True, reply=OBJECT),
        ]

    def shows(self, show: Callable[[str], Any]) -> Handle:
        async def answer(call: Call) -> Answer:
            return Answer(show(call.parts["name"]))

        return answer

    async def list_all(self, call: Call) -> Answer:
        expand = [part for part in call.texts("expand") if part in ("status", "info")]
        return Answer(self._does.expanded(expand) if expand else self._does.names())

    async def create(self, call: Call) -> Answer:
        body = await call.document()
        name, config = (body.get("name"), body.get("config")) if isinstance(body, dict) else (None, None)
        if not isinstance(config, dict):
            raise HttpError(400, 'The body must be {"name": …, "config": {…}}')
        if not isinstance(name, str) or not name.strip():
            name = config.get("name", "")
        if not isinstance(name, str) or not name.strip():
            raise HttpError(400, "The connector has no name: give it in name, or in config.name")
        name = name.strip()
        document = await self._does.create(name, _texts(config), body.get("initial_state"))
        return Answer(document, status=201, headers={"location": f"/connectors/{quote(name, safe='')}"})

    async def put_config(self, call: Call) -> Answer:
        name = call.parts["name"]
        is_new, document = await self._does.put_config(name, _texts(await call.document()))
        headers = {"location": f"/connectors/{quote(name, safe='')}"} if is_new else None
        return Answer(document, status=201 if is_new else 200, headers=headers)

    async def patch_config(self, call: Call) -> Answer:
        body = await call.document()
        if not isinstance(body, dict):
            raise HttpError(400, "The body must be an object of settings; null removes one")
        removed = {key: None for key, value in body.items() if value is None}
        kept = _texts({key: value for key, value in body.items() if value is not None})
        return Answer(await self._does.patch_config(call.parts["name"], {**kept, **removed}))

    async def delete(self, call: Call) -> Answer:
        await self._does.delete(call.parts["name"])
        return NO_CONTENT

    async def reset_topics(self, call: Call) -> Answer:
        await self._does.reset_topics(call.parts["name"])
        return Answer(status=202, content=b"")

    async def offsets(self, call: Call) -> Answer:
        return Answer(await self._does.offsets(call.parts["name"]))

    async def alter_offsets(self, call: Call) -> Answer:
        return Answer(await self._does.alter_offsets(call.parts["name"], await call.document()))

    async def reset_offsets(self, call: Call) -> Answer:
        return Answer(await self._does.reset_offsets(call.parts["name"]))

    # States

    def _states(self) -> list[Endpoint]:
        row, one = self._row, "/connectors/{name}"
        return [
            row("GET", f"{one}/status", "How it does.", self.shows(self._does.status), reply=OBJECT),
            row("GET", one + "/tasks/{task}/status", "How a task does.", self.task_status, reply=OBJECT),
            row("POST", one + "/tasks/{task}/restart", "Restart it.", self.restart_task, writes=True, status=204),
            row("POST", f"{one}/restart", "Restart it.", self.restart, writes=True, reply=OBJECT, status=202),
            row("PUT", f"{one}/pause", "Pause it.", self.sets(Target.PAUSED, 202), writes=True, status=202),
            row("PUT", f"{one}/resume", "Go on.", self.sets(Target.STARTED, 202), writes=True, status=202),
            row("PUT", f"{one}/stop", "End its tasks.", self.sets(Target.STOPPED, 204), writes=True, status=204),
        ]

    def sets(self, target: Target, status: int) -> Handle:
        async def answer(call: Call) -> Answer:
            await self._does.set_target(call.parts["name"], target)
            return Answer(status=status, content=b"")

        return answer

    async def task_status(self, call: Call) -> Answer:
        return Answer(self._does.task_status(call.parts["name"], call.number_in_path("task")))

    async def restart_task(self, call: Call) -> Answer:
        await self._does.restart_task(call.parts["name"], call.number_in_path("task"))
        return NO_CONTENT

    async def restart(self, call: Call) -> Answer:
        planned = await self._does.restart(
            call.parts["name"], includes_tasks=call.flag("includeTasks"), only_failed=call.flag("onlyFailed")
        )
        return NO_CONTENT if planned is None else Answer(planned, status=202)

    # Plug-ins

    def _plugins(self) -> list[Endpoint]:
        one = "/connector-plugins/{plugin}/config"
        return [
            self._row("GET", "/connector-plugins", "The plug-ins.", self.plugins, reply=LIST),
            self._row("GET", one, "A plug-in's settings.", self.plugin_config, reply=LIST),
            self._row("PUT", f"{one}/validate", "Check settings.", self.validate, body=OBJECT, reply=OBJECT),
        ]

    async def plugins(self, call: Call) -> Answer:
        connectors_only = call.text("connectorsOnly", "true").lower() != "false"
        return Answer(await self._does.plugins(connectors_only=connectors_only))

    async def plugin_config(self, call: Call) -> Answer:
        return Answer(await self._does.plugin_config(call.parts["plugin"]))

    async def validate(self, call: Call) -> Answer:
        return Answer(await self._does.validate(call.parts["plugin"], _texts(await call.document())))

    # Loggers

    def _loggers(self) -> list[Endpoint]:
        one = "/admin/loggers/{logger}"
        return [
            self._row("GET", "/admin/loggers", "Loggers with a level of their own.", self.loggers, reply=OBJECT),
            self._row("GET", one, "A logger.", self.logger, reply=OBJECT),
            self._row("PUT", one, "Set its level.", self.set_logger, body=OBJECT, reply=LIST),
        ]

    async def loggers(self, _call: Call) -> Answer:
        return Answer(self._does.loggers())

    async def logger(self, call: Call) -> Answer:
        return Answer(self._does.logger(call.parts["logger"]))

    async def set_logger(self, call: Call) -> Answer:
        body = await call.document()
        level = body.get("level") if isinstance(body, dict) else None
        changed = await self._does.set_logger(call.parts["logger"], level, call.text("scope", "worker"))
        return NO_CONTENT if changed is None else Answer(changed)


def _texts(document: Any) -> Mapping[str, str]:
    """Settings as texts: numbers and truth values in JSON are what people mean by their texts."""
    if not isinstance(document, dict):
        raise HttpError(400, "The body must be a JSON object of settings")
    found = {}
    for name, value in document.items():
        if isinstance(value, bool):
            found[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[name] = str(value)
        else:
            raise HttpError(400, f"The value of {name} must be a string, a number, true or false")
    return found
