"""HTTP API of a pipeline: its stores by key, range or whole as JSON; its topology, progress, metrics and health.

Read-only: it returns what `views` returns, as of the last committed batch. Start at `build_app`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from moldau.core.errors import MoldauError, ServiceError
from moldau.core.prometheus import CONTENT_TYPE, MetricFamily, MetricType, Series, metric_name, render
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, Parameter, number, text
from moldau.http.errors import HttpError
from moldau.http.negotiation import MediaTypes
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.metrics import MetricsSnapshot
from moldau.pipeline.runtime.states import State
from moldau.pipeline.runtime.stores.queryable import Shape
from moldau.pipeline.runtime.stores.views import LAST_TIME, StoreViews, UnknownStoreError
from moldau.serdes.serde import Serde, SerdeError
from moldau.serdes.windowed import Windowed

__all__ = ["Application", "build_app"]

DEFAULT_LIMIT = 1000
MERMAID = "text/vnd.mermaid"


@dataclass(frozen=True)
class Application:
    """The parts of a pipeline that the app shows."""

    application_id: str
    views: StoreViews
    state: Callable[[], State]
    metrics: Callable[[], MetricsSnapshot]
    topology: Topology | None = None


def build_app(application: Application) -> HttpApp:
    """The ASGI app of one pipeline."""
    endpoints = _endpoints(_Answers(application))
    return service.build_app(
        [_index(application, endpoints), *endpoints],
        title="moldau streams",
        description="The stores of a running application.",
        render_error=_render_error,
        error_schema={"type": "object", "properties": {"error": {"type": "string"}}},
    )


class _Answers:
    def __init__(self, application: Application) -> None:
        self._application = application
        self._views = application.views

    async def state(self, call: Call) -> Answer:
        state = self._application.state()
        return Answer({"application.id": self._application.application_id, "state": state.value})

    async def health(self, call: Call) -> Answer:
        state = self._application.state()
        healthy = state.is_running_or_rebalancing
        return Answer({"healthy": healthy, "state": state.value}, status=200 if healthy else 503)

    async def metrics(self, call: Call) -> Answer:
        # The cluster is queried for the lag, which may take long.
        snapshot = await asyncio.to_thread(self._application.metrics)
        labels = (("application_id", self._application.application_id),)
        families = (
            MetricFamily(
                metric_name(f"moldau_streams_{name}"),
                MetricType.COUNTER if name.endswith("-total") else MetricType.GAUGE,
                "",
                [Series(labels, value)],
            )
            for name, value in snapshot.as_dict().items()
            if value is not None
        )
        return Answer(content="".join(render(families)).encode())

    async def topology(self, call: Call) -> Answer:
        name = self._application.application_id
        return Answer({"application.id": name, **self._known_topology().to_graph(name)})

    async def diagram(self, call: Call) -> Answer:
        return Answer(content=self._known_topology().to_mermaid().encode())

    def _known_topology(self) -> Topology:
        if self._application.topology is None:
            raise HttpError(404, "this pipeline has no topology to show")
        return self._application.topology

    async def progress(self, call: Call) -> Answer:
        snapshot = await asyncio.to_thread(self._application.metrics)
        return Answer(
            {
                "application.id": self._application.application_id,
                "state": self._application.state().value,
                **snapshot.as_progress(),
            }
        )

    async def stores(self, call: Call) -> Answer:
        views = [self._views.store(name) for name in self._views.names]
        return Answer(
            [
                {"name": view.name, "shape": view.shape.value, "entries": view.approximate_num_entries()}
                for view in views
            ]
        )

    async def entries(self, call: Call) -> Answer:
        view = self._views.store(call.parts["store"])
        first, last = (self._range_end(view, call.text(name)) for name in ("from", "to"))
        found: Iterator[tuple[Any, Any]]
        if view.shape is Shape.KEY_VALUE:
            found = view.reverse_range(first, last) if call.flag("reverse") else view.range(first, last)
        elif view.shape is Shape.WINDOW:
            found = view.fetch_key_range(first, last, _time(call, "time_from", 0), _time(call, "time_to", LAST_TIME))
        else:
            found = view.all()
        return Answer([_entry(key, value) for key, value in islice(found, call.number("limit", DEFAULT_LIMIT))])

    async def entry(self, call: Call) -> Answer:
        view = self._views.store(call.parts["store"])
        key = _key(view, call.parts["key"])
        if view.shape is Shape.KEY_VALUE:
            found = view.get_with_timestamp(key)
            if found is None:
                raise HttpError(404, f"store {view.name} has no key {call.parts['key']!r}")
            # Stores that are attached to processors may have no timestamps.
            time = {} if found.timestamp < 0 else {"timestamp": found.timestamp}
            return Answer({"key": _json_value(key), "value": _json_value(found.value), **time})
        return Answer(list(self._windows(view, key, call)))

    @staticmethod
    def _windows(view: Any, key: Any, call: Call) -> Iterable[dict[str, Any]]:
        first, last = _time(call, "time_from", 0), _time(call, "time_to", LAST_TIME)
        if view.shape is Shape.SESSION:
            return (_entry(windowed, value) for windowed, value in view.find_sessions(key, first, last))
        found = view.fetch_key_range(key, key, first, last)
        return (_entry(windowed, value) for windowed, value in found)

    @staticmethod
    def _range_end(view: Any, written: str) -> Any:
        return _key(view, written) if written else None


def _time(call: Call, name: str, default: int) -> int:
    written = call.text(name)
    if not written:
        return default
    if not written.lstrip("-").isdigit():
        raise HttpError(400, f"{name}={written} is not a time in milliseconds")
    return int(written)


def _entry(key: Any, value: Any) -> dict[str, Any]:
    if isinstance(key, Windowed):
        window = {"start": key.window.start, "end": key.window.end}
        return {"key": _json_value(key.key), "window": window, "value": _json_value(value)}
    return {"key": _json_value(key), "value": _json_value(value)}


def _key(view: Any, written: str) -> Any:
    """A key from the text in a path or query."""
    serde: Serde = view.key_serde
    from_text: Callable[[str, str], Any] | None = getattr(serde, "from_text", None)
    if from_text is None:
        raise HttpError(400, f"keys of this store ({type(serde).__name__}) cannot be written in a URL")
    try:
        return from_text(view.topic, written)
    except SerdeError as error:
        raise HttpError(400, f"{written!r} is not a key of this store ({type(serde).__name__}): {error}") from None


def _json_value(value: Any) -> Any:
    """A key or value as JSON; bytes as text if they are valid text, else in base 64."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(name): _json_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _render_error(error: Exception) -> Answer:
    if isinstance(error, HttpError):
        return Answer({"error": str(error)}, status=error.status, headers=error.headers)
    if isinstance(error, UnknownStoreError):
        return Answer({"error": str(error)}, status=404)
    if isinstance(error, StreamsError | ServiceError):
        return Answer({"error": str(error)}, status=503)
    if isinstance(error, MoldauError):
        return Answer({"error": str(error)}, status=400)
    return Answer({"error": "internal error"}, status=500)


def _endpoints(answers: _Answers) -> list[Endpoint]:
    name = {"store": Parameter("store", "the store's name", {"type": "string"})}
    key = {"key": Parameter("key", "the key, as text", {"type": "string"})}
    times = (
        text("time_from", "windows that start, or sessions that end, no earlier; milliseconds"),
        text("time_to", "windows and sessions that start no later; milliseconds"),
    )
    bounds = (
        text("from", "the first key"),
        text("to", "the last key"),
        text("reverse", "true for the last key first"),
        number("limit", "the most entries to answer with", DEFAULT_LIMIT),
    )
    missing = {404: "no such store or key", 400: "a key or time that cannot be read"}
    entries = {"type": "array", "items": {"type": "object"}}
    one = Endpoint(method="GET", path="/stores", handle=answers.stores, summary="All stores", reply=entries)
    return [
        one,
        Endpoint(
            method="GET",
            path="/stores/{store}",
            handle=answers.entries,
            summary="Entries of a store, by key or by time",
            parameters=(*bounds, *times),
            parts=name,
            reply=entries,
            refusals=missing,
        ),
        Endpoint(
            method="GET",
            path="/stores/{store}/{key}",
            handle=answers.entry,
            summary="What a key has: its value, or its windows and sessions",
            parameters=times,
            parts={**name, **key},
            reply={"type": "object"},
            refusals=missing,
        ),
        Endpoint(
            method="GET",
            path="/topology",
            handle=answers.topology,
            summary="Topics, operators and stores as nodes and edges, or as a diagram (Accept: text/vnd.mermaid)",
            reply={"type": "object"},
        ),
        Endpoint(
            method="GET",
            path="/topology",
            handle=answers.diagram,
            summary="The topology as a Mermaid diagram",
            media_types=MediaTypes.of(MERMAID),
        ),
        Endpoint(
            method="GET",
            path="/progress",
            handle=answers.progress,
            summary="Rates, lag by partition, state size, the last batches and the last error",
            reply={"type": "object"},
        ),
        Endpoint(method="GET", path="/state", handle=answers.state, summary="What the application is doing"),
        Endpoint(method="GET", path="/healthz", handle=answers.health, summary="Whether it runs"),
        Endpoint(
            method="GET",
            path="/metrics",
            handle=answers.metrics,
            summary="Rates, lag and state for Prometheus",
            media_types=MediaTypes.always(CONTENT_TYPE),
        ),
    ]


def _index(application: Application, endpoints: list[Endpoint]) -> Endpoint:
    """The index page: lists the endpoints."""
    paths = {endpoint.path: endpoint.summary for endpoint in endpoints}

    async def show(call: Call) -> Answer:
        state = application.state()
        return Answer({"application.id": application.application_id, "state": state.value, "paths": paths})

    return Endpoint(method="GET", path="/", handle=show, summary="What can be asked")
