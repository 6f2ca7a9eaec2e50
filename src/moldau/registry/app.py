"""The registry's HTTP app: its endpoints, its content types, and the one place where errors become HTTP responses.

Start at `build_app`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from moldau.core.prometheus import MetricFamily, MetricType, Series
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.forwarding import Forward
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes
from moldau.registry.errors import ForwardingError, RegistryError
from moldau.registry.registry import Registry
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.compatibility import Compatibility
from moldau.registry.routes.contexts import Contexts
from moldau.registry.routes.resource import within_contexts
from moldau.registry.routes.schemas import Schemas
from moldau.registry.routes.server import Server
from moldau.registry.routes.settings import Config, Mode
from moldau.registry.routes.subjects import Subjects
from moldau.registry.routes.versions import Versions
from moldau.registry.settings import Dialect

__all__ = ["MEDIA_TYPES", "build_app"]

MEDIA_TYPES = MediaTypes(
    produced={
        "application/vnd.schemaregistry.v1+json": 1.0,
        "application/vnd.schemaregistry+json": 0.9,
        "application/json": 0.5,
    },
    consumed=frozenset(
        {
            "application/vnd.schemaregistry.v1+json",
            "application/vnd.schemaregistry+json",
            "application/json",
            "application/octet-stream",
        }
    ),
)
IN_CONTEXTS = (Schemas, Subjects, Versions, Config, Mode, Compatibility)
"""Resources that are also served below `/contexts/{context}`."""
INTERNAL_ERROR = 50001
INCOMPATIBLE, OLD_INCOMPATIBLE = 40901, 409


def build_app(registry: Registry, *, forward: Forward | None = None) -> HttpApp:
    """The registry as an ASGI app. `forward` sends writes to the leader when this instance is not the leader."""
    return service.build_app(
        _endpoints(registry, forward or _refuse_to_forward),
        title="moldau schema registry",
        description="Schemas with ids, versions and compatibility, as every Kafka client expects them.",
        media_types=MEDIA_TYPES,
        render_error=_ErrorAnswers(registry.settings.dialect),
        health=lambda: _health(registry),
        metrics=HttpMetrics("moldau_registry", lambda: _gauges(registry), lambda: _families(registry)),
        schemas=documents.DEFINITIONS,
        error_schema=documents.ERROR,
        max_body_bytes=registry.settings["size.limit.filter.max.request.body.size"],
    )


def _endpoints(registry: Registry, forward: Forward) -> list[Endpoint]:
    cached = [
        _with_cache(endpoint, registry)
        for resource in IN_CONTEXTS
        for endpoint in resource(registry, forward).endpoints()
    ]
    return [
        *cached,
        *within_contexts(cached),
        *Server(registry, forward).endpoints(),
        *Contexts(registry, forward).endpoints(),
    ]


class _ErrorAnswers:
    """Error responses as clients expect them: an error code, a message, and the code's first three digits as status."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def __call__(self, error: Exception) -> Answer:
        if isinstance(error, HttpError):
            return _refusal(error.status, str(error))
        if isinstance(error, RegistryError):
            is_old = self._dialect is Dialect.V7 and error.error_code == INCOMPATIBLE
            return _refusal(OLD_INCOMPATIBLE if is_old else error.error_code, str(error))
        return _refusal(INTERNAL_ERROR, "Error in the backend data store: the registry failed, see its log")


def _refusal(error_code: int, message: str) -> Answer:
    return Answer({"error_code": error_code, "message": message}, status=int(str(error_code)[:3]))


def _with_cache(endpoint: Endpoint, registry: Registry) -> Endpoint:
    """The endpoint, with a response cache unless it always writes: its responses are valid until the state changes."""
    is_read = endpoint.method == "GET" or (endpoint.method == "POST" and not endpoint.path.endswith("/tags"))
    return replace(endpoint, state_token=lambda: registry.state.generation) if is_read else endpoint


def _health(registry: Registry) -> Mapping[str, Any]:
    """Health of this instance: healthy if it can answer reads. Also reports the leader."""
    leadership = registry.leadership
    leader = leadership.own_url if leadership.is_leader else leadership.leader_url
    return {"healthy": registry.store.is_ready, "is_leader": leadership.is_leader, "leader": leader}


def _gauges(registry: Registry) -> Mapping[str, float]:
    state = registry.state
    names = state.subjects()
    return {
        "subjects": len(names),
        "versions": sum(len(state.versions(name)) for name in names),
        "contexts": len(state.contexts()),
        "is_leader": int(registry.leadership.is_leader),
        "applied_offset": registry.store.applied_offset,
    }


def _families(registry: Registry) -> Iterator[MetricFamily]:
    """By the names that Confluent's have in Prometheus."""
    versions = sum(len(registry.state.versions(name)) for name in registry.state.subjects())
    for name, text, value in (
        ("registered_count", "Versions of all subjects.", versions),
        ("master_slave_role", "1 for the instance that leads.", int(registry.leadership.is_leader)),
    ):
        yield MetricFamily(f"kafka_schema_registry_{name}", MetricType.GAUGE, text, [Series((), value)])


async def _refuse_to_forward(_call: Call, url: str) -> Answer:
    raise ForwardingError(
        f"The leader is at {url}, but this instance cannot forward requests; send the request to the leader"
    )
