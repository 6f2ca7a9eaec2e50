"""The joins' part of the table in `builders`."""

from __future__ import annotations

from moldau.pipeline.cores.processor import Builder
from moldau.pipeline.ir import nodes as ir

__all__ = ["JOIN_BUILDERS"]

JOIN_BUILDERS: dict[type[ir.Node], Builder] = {}
