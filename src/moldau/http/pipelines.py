"""`/topology` and `/progress` of a service that runs pipelines: all of them together, and each by its name.

The ksql server shows its queries with it, and a Connect worker its connectors. Start at `pipeline_endpoints`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from moldau.core.graphs import Graph, merged, mermaid
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.negotiation import JSON, MediaTypes

__all__ = ["MERMAID", "pipeline_endpoints"]

MERMAID = "text/vnd.mermaid"
OBJECT = {"type": "object"}
MISSING = {404: "There is no pipeline of this name."}


def pipeline_endpoints(
    names: Callable[[], Iterable[str]],
    topology: Callable[[str], Graph],
    progress: Callable[[str], Awaitable[Mapping[str, Any]]],
) -> list[Endpoint]:
    """The rows; `topology` and `progress` are asked only about `names`."""

    def wanted(call: Call) -> list[str]:
        known = sorted(names())
        name = call.parts.get("pipeline")
        if name is not None and name not in known:
            raise HttpError(404, f"there is no pipeline {name!r} here; there are: {', '.join(known) or 'none'}")
        return known if name is None else [name]

    def graph(call: Call) -> dict[str, Any]:
        return merged(topology(name) for name in wanted(call))

    async def show_graph(call: Call) -> Answer:
        return Answer(graph(call))

    async def draw(call: Call) -> Answer:
        return Answer(content=mermaid(graph(call)).encode())

    async def show_progress(call: Call) -> Answer:
        (name,) = wanted(call)
        return Answer(await progress(name))

    async def show_all_progress(call: Call) -> Answer:
        return Answer({"pipelines": await asyncio.gather(*(progress(name) for name in wanted(call)))})

    def row(path: str, handle: Any, summary: str, media_types: MediaTypes = JSON) -> Endpoint:
        return Endpoint(
            method="GET",
            path=path,
            handle=handle,
            summary=summary,
            media_types=media_types,
            reply=OBJECT if media_types is JSON else {"type": "string"},
            refusals=MISSING if "{" in path else {},
            tag="pipelines",
        )

    diagram = MediaTypes.of(MERMAID)
    return [
        row("/topology", show_graph, f"All pipelines as one graph; as a diagram with Accept: {MERMAID}."),
        row("/topology", draw, "All pipelines as a Mermaid diagram.", diagram),
        row("/topology/{pipeline}", show_graph, "One pipeline as a graph."),
        row("/topology/{pipeline}", draw, "One pipeline as a Mermaid diagram.", diagram),
        row("/progress", show_all_progress, "State, rates, lag, last batches and last error of all pipelines."),
        row("/progress/{pipeline}", show_progress, "State, rates, lag, last batches and last error of one."),
    ]
