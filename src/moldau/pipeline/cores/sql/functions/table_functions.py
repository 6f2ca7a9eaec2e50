"""Table functions: several rows of one."""

from __future__ import annotations

from moldau.formats.types import Value
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import BUILTIN

MAX_CUBE = 20
"""Most elements that CUBE_EXPLODE varies: a row becomes at most a million."""


@BUILTIN.table("explode", "(list ARRAY<T>) -> T")
def explode(values: list[Value] | None) -> list[Value]:
    """One row for each element of an array."""
    return values or []


@BUILTIN.table("cube_explode", "(columns ARRAY<T>) -> ARRAY<T>")
def cube_explode(values: list[Value] | None) -> list[list[Value]]:
    """One row for each combination of keeping an element or making it NULL, from all NULL to complete."""
    if values is None:
        return []
    varied = [place for place, value in enumerate(values) if value is not None]
    if len(varied) > MAX_CUBE:
        raise ExpressionError(f"CUBE_EXPLODE takes at most {MAX_CUBE} elements that are not NULL, not {len(varied)}")
    rows: list[list[Value]] = []
    for number in range(1 << len(varied)):
        row: list[Value] = [None] * len(values)
        for bit, place in enumerate(reversed(varied)):
            if number >> bit & 1:
                row[place] = values[place]
        rows.append(row)
    return rows
