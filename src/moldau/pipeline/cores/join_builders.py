"""The joins' part of the table in `builders`."""

from __future__ import annotations

from moldau.pipeline.cores.foreign_key_join import (
    RowsProcessor,
    SubscribeProcessor,
    foreign_key_lookup,
    foreign_key_resolve,
)
from moldau.pipeline.cores.global_table_join import global_table_join
from moldau.pipeline.cores.processor import Builder
from moldau.pipeline.cores.stream_join import stream_join
from moldau.pipeline.cores.stream_table_join import stream_table_join
from moldau.pipeline.cores.table_join import table_join
from moldau.pipeline.ir import foreign_key, nodes

__all__ = ["JOIN_BUILDERS"]

JOIN_BUILDERS: dict[type[nodes.Node], Builder] = {
    nodes.StreamStreamJoin: stream_join,
    nodes.StreamTableJoin: stream_table_join,
    nodes.StreamGlobalTableJoin: global_table_join,
    nodes.TableTableJoin: table_join,
    foreign_key.ForeignKeyRows: RowsProcessor,
    foreign_key.ForeignKeySubscribe: SubscribeProcessor,
    foreign_key.ForeignKeyLookup: foreign_key_lookup,
    foreign_key.ForeignKeyResolve: foreign_key_resolve,
}
