"""What counts of grouped streams and tables have in common: their serde, and Kafka Streams' numbering of them."""

from __future__ import annotations

from dataclasses import replace

from moldau.pipeline.dsl.graph import Graph
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.serdes.plain import LongSerde

__all__ = ["burn_number_of_count", "counting"]


def counting(materialized: Materialized | None) -> Materialized:
    """How a count is stored: as whole numbers of 8 bytes, unless it says otherwise."""
    options = option_of(materialized, Materialized)
    return options if options.value_serde is not None else replace(options, value_serde=LongSerde())


def burn_number_of_count(graph: Graph, materialized: Materialized | None) -> None:
    """Kafka Streams' `count` takes one number too many when it is told of a store without a name."""
    if materialized is not None and option_of(materialized, Materialized).store_name is None:
        graph.names.store("KSTREAM-AGGREGATE-")
