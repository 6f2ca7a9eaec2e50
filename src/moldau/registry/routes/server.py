"""Information about the registry: liveness, clusters, versions. Start at `Server`."""

from __future__ import annotations

import moldau
from moldau.http.calls import Answer, Call
from moldau.registry.routes import document_schemas as documents
from moldau.registry.routes.declarations import serves
from moldau.registry.routes.resource import Resource
from moldau.registry.settings import Dialect

__all__ = ["Server"]

SPOKEN = {Dialect.V7: "7.9.0", Dialect.V8: "8.2.0"}
"""The Confluent release that each dialect corresponds to."""


class Server(Resource):
    tag = "Server"

    @serves("GET", "/", "Whether the registry answers.", reply=documents.EMPTY_OBJECT)
    @serves("POST", "/", "Whether the registry answers.", reply=documents.EMPTY_OBJECT)
    async def root(self, _call: Call) -> Answer:
        return Answer({})

    @serves("GET", "/v1/metadata/id", "The clusters this registry belongs to.", reply=documents.EMPTY_OBJECT)
    async def cluster(self, _call: Call) -> Answer:
        clusters = {
            "kafka-cluster": self.registry.leadership.cluster_id,
            "schema-registry-cluster": self.registry.settings["schema.registry.group.id"],
        }
        return Answer({"scope": {"path": [], "clusters": clusters}})

    @serves("GET", "/v1/metadata/version", "The release whose answers are given.", reply=documents.EMPTY_OBJECT)
    async def version(self, _call: Call) -> Answer:
        return Answer({"version": SPOKEN[self.dialect], "commitId": f"moldau-{moldau.__version__}"})

    @serves("GET", "/v1/metadata/deployment", "Attributes of the deployment.", reply=documents.EMPTY_OBJECT)
    async def deployment(self, _call: Call) -> Answer:
        return Answer({"attributes": []})
