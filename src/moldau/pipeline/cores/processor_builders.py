"""The part of users' own processors in the table in `builders`."""

from __future__ import annotations

from moldau.pipeline.cores.global_stores import GlobalStoreProcessor
from moldau.pipeline.cores.processor import Builder
from moldau.pipeline.cores.processors import user_processor
from moldau.pipeline.cores.transform_values import TransformValuesProcessor
from moldau.pipeline.ir import nodes as ir

__all__ = ["PROCESSOR_BUILDERS"]

PROCESSOR_BUILDERS: dict[type[ir.Node], Builder] = {
    ir.Process: user_processor,
    ir.GlobalStoreSource: GlobalStoreProcessor,
    ir.TableTransformValues: TransformValuesProcessor,
}
