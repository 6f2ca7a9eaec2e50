"""The registry of all built-in functions: importing this module declares them."""

from __future__ import annotations

from moldau.pipeline.cores.sql.functions import (
    collections,
    encodings,
    json,
    lambdas,
    math,
    regex,
    strings,
    table_functions,
    times,
    urls,
)
from moldau.pipeline.cores.sql.functions.aggregates import collecting, distinct, numbers
from moldau.pipeline.cores.sql.functions.registry import BUILTIN

__all__ = ["BUILTIN", "MODULES"]

MODULES = (
    collecting,
    collections,
    distinct,
    encodings,
    json,
    lambdas,
    math,
    numbers,
    regex,
    strings,
    table_functions,
    times,
    urls,
)
"""The modules that declare functions."""
