"""The functions that statements can call while one is analysed and planned: the built-in ones, and those of a server.

Names of functions are looked up at many places below `execution.engine`, and never beside a statement: the registry
is that of the current context. Start at `using_functions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry

__all__ = ["functions_in_use", "using_functions"]

_functions: ContextVar[FunctionRegistry] = ContextVar("ksql_functions", default=BUILTIN)


def functions_in_use() -> FunctionRegistry:
    """The functions of the statement that is being planned."""
    return _functions.get()


@contextmanager
def using_functions(functions: FunctionRegistry) -> Iterator[None]:
    """Plan with these functions while the block runs."""
    token = _functions.set(functions)
    try:
        yield
    finally:
        _functions.reset(token)
