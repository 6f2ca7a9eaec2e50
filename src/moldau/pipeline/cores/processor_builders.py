"""The part of users' own processors in the table in `builders`."""

from __future__ import annotations

from moldau.pipeline.cores.processor import Builder
from moldau.pipeline.ir import nodes as ir

__all__ = ["PROCESSOR_BUILDERS"]

PROCESSOR_BUILDERS: dict[type[ir.Node], Builder] = {}
