"""What analysis asks about functions by their names: which are aggregates, which give several rows."""

from __future__ import annotations

from moldau.pipeline.cores.sql.functions.registry import AggregateFunction
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.functions_in_use import functions_in_use

__all__ = ["can_undo", "check_exists", "is_aggregate", "is_table_function"]


def is_aggregate(name: str) -> bool:
    """Whether a function aggregates rows."""
    return functions_in_use().is_aggregate(name)


def check_exists(name: str) -> None:
    """Raise if there is no function of that name."""
    try:
        functions_in_use().get(name)
    except FunctionLookupError as error:
        raise KsqlError(str(error)) from None


def is_table_function(name: str) -> bool:
    """Whether a function gives several rows."""
    return functions_in_use().is_table_function(name)


def can_undo(name: str) -> bool:
    """Whether an aggregate can take a row back, as tables need it."""
    function = functions_in_use().find(name)
    return isinstance(function, AggregateFunction) and function.is_undoable
