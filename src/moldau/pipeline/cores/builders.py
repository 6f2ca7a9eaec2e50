"""The table from a node's class to what makes its processor; each family of operators brings its own part.

Sources, sinks and repartitionings at the edges are linked by `task`. Start at `BUILDERS`.
"""

from __future__ import annotations

from moldau.pipeline.cores.join_builders import JOIN_BUILDERS
from moldau.pipeline.cores.outputs import SinkProcessor
from moldau.pipeline.cores.processor import Builder
from moldau.pipeline.cores.processor_builders import PROCESSOR_BUILDERS
from moldau.pipeline.cores.stateful import STATEFUL_BUILDERS
from moldau.pipeline.cores.stateless import STATELESS_BUILDERS
from moldau.pipeline.cores.tables import TABLE_BUILDERS
from moldau.pipeline.ir import nodes as ir

__all__ = ["BUILDERS"]

BUILDERS: dict[type[ir.Node], Builder] = {
    **STATELESS_BUILDERS,
    **TABLE_BUILDERS,
    **STATEFUL_BUILDERS,
    **JOIN_BUILDERS,
    **PROCESSOR_BUILDERS,
    ir.Sink: SinkProcessor,
}
