"""The key rules of persistent queries: the key of the result must be selected, once, and something beside it.

Start at `split_projection`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.pipeline.ksql.analysis.grouping import joined_names
from moldau.pipeline.ksql.analysis.select_items import SelectedColumn
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax.expressions import Expression

__all__ = ["KeyPart", "Projection", "missing_keys", "split_projection"]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of the key, as the expressions that select it; any of them will do."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Projection:
    """A SELECT split into the columns of the key, in the key's order, and those of the value."""

    key: tuple[SelectedColumn, ...]
    value: tuple[SelectedColumn, ...]


def missing_keys(sink: str, kind: str, names: Sequence[str], *, needs_all: bool, note: str = "") -> KsqlError:
    """The error for a key that is not selected; `kind` says what it is ("key column")."""
    plural = "s" if len(names) > 1 else ""
    listed = joined_names(names, "and" if needs_all else "or")
    example = ", ".join(names) if needs_all else names[0]
    return KsqlError(
        f"The query used to build `{sink}` must include the {kind}{plural} {listed} in its projection "
        f"(eg, SELECT {example}...).{note}"
    )


def split_projection(select: Sequence[SelectedColumn], key: Sequence[KeyPart]) -> Projection | None:
    """The columns of key and value; None where a part of the key is not selected."""
    keys: list[SelectedColumn] = []
    for part in key:
        chosen = next((one for one in part.expressions if any(column.expression == one for column in select)), None)
        if chosen is None:
            return None
        selected = [column for column in select if column.expression == chosen]
        if len(selected) > 1:
            names = joined_names([f"`{column.name}`" for column in selected])
            raise KsqlError(
                f"The projection contains a key column more than once: {names}.\nEach key column must only be in the "
                "projection once. If you intended to copy the key into the value, then consider using the AS_VALUE "
                "function to indicate which key reference should be copied."
            )
        keys.append(selected[0])
    value = tuple(column for column in select if column not in keys)
    if not value:
        raise KsqlError("The projection contains no value columns.")
    return Projection(tuple(keys), value)
