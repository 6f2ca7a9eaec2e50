"""Which source a column name belongs to: every reference gets its source, or an error in ksqlDB's words.

`SourcesInQuery` knows the sources of one query by their aliases. Inside a plan the columns of a row have one name each:
the column's own with one source, `ALIAS_COLUMN` in a join; `row_name` gives it. Start at `SourcesInQuery.qualified`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moldau.formats.columns import Column
from moldau.pipeline.ksql.analysis.expression_tree import column_references, rewritten
from moldau.pipeline.ksql.catalogue.sources import WINDOW_BOUNDS, Source
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Expression, Location

__all__ = ["AliasedSource", "SourcesInQuery", "located"]


def located(location: Location | None, message: str) -> str:
    """A message with the place in the statement that it is about."""
    return message if location is None else f"Line: {location.line}, Col: {location.column}: {message}"


@dataclass(frozen=True, slots=True)
class AliasedSource:
    """A source under the name that a query gives it."""

    alias: str
    source: Source


class SourcesInQuery:
    """The sources of a query, from left to right."""

    def __init__(self, sources: Sequence[AliasedSource], synthetic: Sequence[str] = ()) -> None:
        """`synthetic` are names of columns that belong to no source, such as the key of a full join."""
        self.sources = tuple(sources)
        self.synthetic = frozenset(synthetic)
        self._columns = {one.alias: {column.name: column for column in one.source.row_columns} for one in self.sources}

    @property
    def is_join(self) -> bool:
        return len(self.sources) > 1

    @property
    def columns(self) -> dict[str, dict[str, Column]]:
        """The columns by alias and name."""
        return self._columns

    def named(self, alias: str, location: Location | None = None) -> AliasedSource:
        """The source of that alias."""
        for one in self.sources:
            if one.alias == alias:
                return one
        raise KsqlError(located(location, f"'{alias}' is not a valid stream/table name or alias."))

    def aliases_with(self, name: str) -> list[str]:
        """The sources that have a column of that name."""
        return [alias for alias, columns in self._columns.items() if name in columns]

    def qualified(self, expression: Expression, *, is_windowed_aggregation: bool = False) -> Expression:
        """The expression with the source of every column; an unknown name stays as it is, `checked` refuses it."""

        def qualify(part: Expression) -> Expression | None:
            if not isinstance(part, ColumnReference):
                return None
            if part.source is not None:
                self.named(part.source, part.location)
                return part
            return self._qualified_column(part, is_windowed_aggregation)

        return rewritten(expression, qualify)

    def _qualified_column(self, reference: ColumnReference, is_windowed_aggregation: bool) -> Expression:
        if is_windowed_aggregation and reference.name in {column.name for column in WINDOW_BOUNDS}:
            return reference
        aliases = self.aliases_with(reference.name)
        if len(aliases) > 1:
            choices = " or ".join(f"{alias}.{reference.name}" for alias in sorted(aliases))
            raise KsqlError(
                "Exception while preparing statement: "
                + located(reference.location, f"Column '{reference.name}' is ambiguous. Could be {choices}.")
            )
        if aliases:
            return replace(reference, source=aliases[0])
        if reference.name not in self.synthetic and not self.is_join:
            return replace(reference, source=self.sources[0].alias)
        return reference

    def check_columns(self, expression: Expression, clause: str, hint: str = "") -> None:
        """Raise for a column that no source has."""
        for reference in column_references(expression):
            if reference.source is None:
                known = reference.name in self.synthetic
            else:
                known = reference.name in self._columns[reference.source]
            if not known:
                name = f"{reference.source}.{reference.name}" if self.is_join and reference.source else reference.name
                raise KsqlError(located(reference.location, f"{clause} column '{name}' cannot be resolved.{hint}"))

    def row_name(self, alias: str | None, name: str) -> str:
        """The name of a column within rows of this query."""
        return name if alias is None or not self.is_join else f"{alias}_{name}"

    def in_row(self, expression: Expression) -> Expression:
        """A qualified expression with the names that columns have within rows of this query."""

        def rename(part: Expression) -> Expression | None:
            if isinstance(part, ColumnReference) and part.source is not None:
                return replace(part, name=self.row_name(part.source, part.name), source=None)
            return None

        return rewritten(expression, rename)
