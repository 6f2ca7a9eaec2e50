"""What the registry tells about itself: liveness, contexts, versions, health, metrics. Start at `endpoints`."""

from __future__ import annotations

import moldau
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, number, text
from moldau.http.metrics import PROMETHEUS_TEXT, HttpMetrics
from moldau.registry import schemas_of_documents as documents
from moldau.registry.decisions.deletion import delete_context
from moldau.registry.queries import page
from moldau.registry.routes.resources import CONTEXT, Resources, refusals
from moldau.registry.settings import Dialect

__all__ = ["endpoints"]

SPOKEN = {Dialect.V7: "7.9.0", Dialect.V8: "8.2.0"}
"""The releases whose answers the dialects are."""


class _Server:
    def __init__(self, resources: Resources, metrics: HttpMetrics) -> None:
        self._resources = resources
        self._metrics = metrics

    async def root(self, _call: Call) -> Answer:
        return Answer({})

    async def list_contexts(self, call: Call) -> Answer:
        prefix = call.text("contextPrefix")
        names = [name for name in self._resources.state.contexts() if name.startswith(prefix)]
        return Answer(page(names, call.number("offset", 0), call.number("limit", -1)))

    async def delete_context(self, call: Call) -> Answer:
        context = self._resources.context(call)
        await self._resources.registry.change(lambda state: delete_context(state, context))
        return Answer(status=204)

    async def cluster(self, _call: Call) -> Answer:
        registry = self._resources.registry
        clusters = {
            "kafka-cluster": registry.leadership.cluster_id,
            "schema-registry-cluster": registry.settings["schema.registry.group.id"],
        }
        return Answer({"scope": {"path": [], "clusters": clusters}})

    async def version(self, _call: Call) -> Answer:
        return Answer({"version": SPOKEN[self._resources.dialect], "commitId": f"moldau-{moldau.__version__}"})

    async def deployment(self, _call: Call) -> Answer:
        return Answer({"attributes": []})

    async def health(self, _call: Call) -> Answer:
        """Healthy is whoever can answer reads; who leads is told beside it."""
        registry = self._resources.registry
        is_ready, leadership = registry.store.is_ready, registry.leadership
        leader = leadership.leader_url
        document = {"healthy": is_ready, "is_leader": leadership.is_leader, "leader": leader}
        return Answer(document, status=200 if is_ready else 503)

    async def metrics(self, _call: Call) -> Answer:
        return Answer(content=self._metrics.render().encode())


def endpoints(resources: Resources, metrics: HttpMetrics) -> list[Endpoint]:
    server = _Server(resources, metrics)
    tag = "Server"
    pages = (number("offset", "How many to leave out.", 0), number("limit", "How many to give; -1 for all.", -1))
    plain = {
        "/v1/metadata/id": (server.cluster, "The clusters this registry belongs to."),
        "/v1/metadata/version": (server.version, "The release whose answers are given."),
        "/v1/metadata/deployment": (server.deployment, "Attributes of the deployment."),
    }
    return [
        *(
            Endpoint(
                method=method,
                path="/",
                handle=server.root,
                summary="Whether anybody is here.",
                reply=documents.EMPTY_OBJECT,
                refusals=refusals(),
                tag=tag,
            )
            for method in ("GET", "POST")
        ),
        *(
            Endpoint(
                method="GET",
                path=path,
                handle=handle,
                summary=summary,
                reply=documents.EMPTY_OBJECT,
                refusals=refusals(),
                tag=tag,
            )
            for path, (handle, summary) in plain.items()
        ),
        Endpoint(
            method="GET",
            path="/contexts",
            handle=server.list_contexts,
            summary="The contexts there are.",
            parameters=(*pages, text("contextPrefix", "How names begin.")),
            reply=documents.NAMES,
            refusals=refusals(),
            tag="Contexts",
        ),
        Endpoint(
            method="DELETE",
            path="/contexts/{context}",
            handle=resources.writing(server.delete_context),
            summary="Forget a context that has no subjects.",
            parts={"context": CONTEXT},
            status=204,
            refusals=refusals(422, 500),
            tag="Contexts",
        ),
        Endpoint(
            method="GET",
            path="/healthz",
            handle=server.health,
            summary="Whether reads can be answered.",
            reply=documents.EMPTY_OBJECT,
            media_types=("application/json",),
            refusals=refusals(),
            tag=tag,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            handle=server.metrics,
            summary="Numbers for Prometheus.",
            reply={"type": "string"},
            media_types=(PROMETHEUS_TEXT,),
            refusals=refusals(),
            tag=tag,
        ),
    ]
