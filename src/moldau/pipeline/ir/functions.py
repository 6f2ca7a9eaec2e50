"""The functions of nodes: a user's Python function, or an expression or row function that an engine can inspect.

Expressions are in `expressions`, functions over typed rows in `row_functions`; only the opaque kind is defined here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.origin import UNKNOWN, Origin
from moldau.pipeline.ir.row_functions import RowFunction


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function that no engine can inspect; it is called, and its failures name `origin`."""

    call: Callable[..., Any]
    origin: Origin = UNKNOWN


Function = PythonFunction | Expression | RowFunction
