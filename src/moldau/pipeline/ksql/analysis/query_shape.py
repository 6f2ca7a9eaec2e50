"""What of a query cannot change when it is replaced, because its state depends on it. Start at `shape_of`."""

from __future__ import annotations

from dataclasses import dataclass, fields

from moldau.pipeline.ksql.analysis.query_analysis import QueryAnalysis
from moldau.pipeline.ksql.syntax.printer import render

__all__ = ["QueryShape", "changed_parts", "shape_of"]


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The parts of a query that its state depends on, as texts."""

    sources: tuple[str, ...]
    joins: tuple[str, ...]
    grouping: tuple[str, ...]
    partitioning: tuple[str, ...]
    window: str


def shape_of(analysis: QueryAnalysis) -> QueryShape:
    """The shape of a query."""
    grouping = analysis.grouping
    return QueryShape(
        tuple(one.source.name for one in analysis.sources.sources),
        tuple(f"{join.kind.value} {render(join.condition)} {join.within}" for join in analysis.joins),
        () if grouping is None else tuple(map(render, grouping.expressions)),
        tuple(map(render, analysis.partition_by or ())),
        str(analysis.window or ""),
    )


def changed_parts(old: QueryShape, new: QueryShape) -> list[str]:
    """The names of the parts in which two shapes differ."""
    return [one.name for one in fields(old) if getattr(old, one.name) != getattr(new, one.name)]
