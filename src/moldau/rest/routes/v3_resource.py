"""Resources of version 3: documents with kind, metadata and links. Start at `V3Resource.entity`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from moldau.client.admin import PartitionDescription, TopicDescription
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.negotiation import JSON
from moldau.rest.errors import RestError, partition_not_found
from moldau.rest.routes import documents
from moldau.rest.routes.resource import MAX_INT32, REFUSALS, Resource

__all__ = ["CLUSTER", "V3Resource", "topic_unknown"]

CLUSTER = "/v3/clusters/{cluster_id}"

Path = Iterable[str | int]


def topic_unknown() -> RestError:
    """Version 3 answers what the broker says."""
    return RestError(40403, "This server does not host this topic-partition.")


class V3Resource(Resource):
    tag = "v3"

    def row(self, method: str, path: str, handle: Any, summary: str, **more: Any) -> Endpoint:
        """An endpoint below a cluster."""
        if method in ("GET", "PATCH") or more.get("body") is not None:
            more.setdefault("reply", documents.OBJECT)
        if more.get("status", 200) == 204:
            more["reply"] = None
        more = {"media_types": JSON, **more}
        return Endpoint(
            method=method,
            path=f"{CLUSTER}{path}",
            handle=handle,
            summary=summary,
            tag=self.tag,
            refusals=REFUSALS,
            **more,
        )

    def url(self, call: Call, path: Path) -> str:
        """The URL of a resource below `/v3/clusters`."""
        return "/".join([f"{self.proxy.base_url(call)}/v3/clusters", *(_quoted(word) for word in path)])

    def related(self, call: Call, path: Path) -> dict[str, str]:
        return {"related": self.url(call, path)}

    def entity(
        self, call: Call, kind: str, path: Path, names: Mapping[str, object], fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A resource; `names` are the parts of its resource name, the cluster's id first."""
        crn = "/".join(f"{kind_name}={value}" for kind_name, value in names.items())
        return {
            "kind": kind,
            "metadata": {"self": self.url(call, path), "resource_name": f"crn:///{crn}"},
            **fields,
        }

    def listing(self, call: Call, kind: str, path: Path, data: Iterable[Mapping[str, Any]]) -> Answer:
        return Answer({"kind": kind, "metadata": {"self": self.url(call, path), "next": None}, "data": list(data)})

    async def cluster_id(self, call: Call) -> str:
        """The cluster's id in the path; raises a 404 for another cluster."""
        cluster_id = call.parts["cluster_id"]
        await self.proxy.cluster.check_cluster(cluster_id)
        return cluster_id

    async def topic(self, call: Call) -> TopicDescription:
        """The topic in the path; raises 40403."""
        return await self.proxy.cluster.topic(call.parts["topic_name"], missing=topic_unknown)

    async def partition(self, call: Call) -> PartitionDescription:
        """The partition in the path; raises 40403 and 40402."""
        wanted = call.parts["partition_id"]
        for one in (await self.topic(call)).partitions:
            if str(one.partition) == wanted:
                return one
        raise partition_not_found()


def broker_number(text: str) -> int | None:
    """A broker's id in a path; `None` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and int(text) <= MAX_INT32 else None


def _quoted(word: str | int) -> str:
    return quote(str(word), safe="")
