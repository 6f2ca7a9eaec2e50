"""The joins of a query: which expressions are equal, and which columns may therefore be the key of the result.

Joins apply from left to right; the left side of each is everything before it. Start at `analysed_joins`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.pipeline.ksql.analysis.expression_tree import column_references
from moldau.pipeline.ksql.analysis.name_resolution import AliasedSource, SourcesInQuery, located
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import (
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    Logical,
)
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.syntax.statements import Join, JoinKind, Within

__all__ = ["AnalysedJoin", "analysed_joins", "check_sources_differ"]


@dataclass(frozen=True, slots=True)
class AnalysedJoin:
    """One join: `left` is an expression over an earlier source, `right` one over the joined source."""

    kind: JoinKind
    source: AliasedSource
    left: Expression
    right: Expression
    condition: Comparison
    """As it was written, with the source of every column."""
    left_alias: str
    """The earlier source that `left` is about."""
    within: Within | None
    viable_keys: tuple[ColumnReference, ...]
    """The columns that equal the key of the result, from left to right; empty where the key is a column of its own."""

    @property
    def has_synthetic_key(self) -> bool:
        return not self.viable_keys


def check_sources_differ(sources: Sequence[AliasedSource]) -> None:
    """Raise where a source occurs twice."""
    seen: set[str] = set()
    for one in sources:
        name = one.source.name
        if name in seen:
            if len(sources) == 2:
                raise KsqlError(f"Can not join '{name}' to '{name}': self joins are not yet supported.")
            raise KsqlError(f"N-way joins do not support multiple occurrences of the same source. Source: '{name}'")
        seen.add(name)


def analysed_joins(joins: Sequence[Join], sources: SourcesInQuery) -> tuple[AnalysedJoin, ...]:
    """The joins of a query; `sources` are all its sources."""
    found: list[AnalysedJoin] = []
    equal: list[Expression] = []
    for number, join in enumerate(joins, 1):
        analysed, equal = _analysed(join, sources, number, equal)
        found.append(analysed)
    return tuple(found)


def _analysed(
    join: Join, sources: SourcesInQuery, number: int, equal: list[Expression]
) -> tuple[AnalysedJoin, list[Expression]]:
    """A join, and the expressions that are equal to its key."""
    condition = _equality(sources.qualified(join.condition), join)
    sources.check_columns(condition, "JOIN ON")
    left_alias = _single_source(condition.left, condition)
    right_alias = _single_source(condition.right, condition)
    joined = sources.sources[number]
    _check_aliases(left_alias, right_alias, joined)
    left, right = condition.left, condition.right
    if left_alias == joined.alias:
        left, right, left_alias = right, left, right_alias
    if join.kind is JoinKind.FULL:
        equal = []
    else:
        pair = [left, right]
        equal = [*equal, *(one for one in pair if one not in equal)] if set(pair) & set(equal) else pair
    viable = tuple(one for one in equal if isinstance(one, ColumnReference))
    analysed = AnalysedJoin(join.kind, joined, left, right, condition, left_alias, join.within, viable)
    return analysed, equal


def _equality(condition: Expression, join: Join) -> Comparison:
    if isinstance(condition, Logical):
        raise KsqlError(
            located(
                join.location,
                f"Invalid join condition: joins on multiple conditions are not yet supported. Got {render(condition)}.",
            )
        )
    if not isinstance(condition, Comparison):
        raise KsqlError(located(join.location, f"Unsupported join expression: {render(condition)}."))
    if condition.operator is not ComparisonOperator.EQUAL:
        raise KsqlError(located(join.location, "Only equality join criteria is supported."))
    return condition


def _single_source(side: Expression, condition: Comparison) -> str:
    aliases = {reference.source for reference in column_references(side) if reference.source is not None}
    if len(aliases) != 1:
        raise KsqlError(
            f"Invalid comparison expression '{render(side)}' in join '{render(condition)}'. Each side of the join "
            "comparision must contain references from exactly one source."
        )
    return aliases.pop()


def _check_aliases(left: str, right: str, joined: AliasedSource) -> None:
    if left == right:
        raise KsqlError(
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references `{left}` and right references `{right}`"
        )
    if joined.alias not in (left, right):
        raise KsqlError(
            f"A join criteria is expected to reference the source (`{joined.alias}`) in the FROM clause, instead the "
            f"right source references `{right}` and the left source references `{left}`"
        )
