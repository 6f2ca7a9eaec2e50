"""Helpers for `count` of grouped streams and tables: the default serde, and Kafka Streams' numbering of stores."""

from __future__ import annotations

from dataclasses import replace

from moldau.pipeline.dsl.graph import Graph
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.serdes.plain import LongSerde

__all__ = ["burn_number_of_count", "counting"]


def counting(materialized: Materialized | None) -> Materialized:
    """The options of a count's store, with a serde of 8-byte integers unless they name another."""
    options = option_of(materialized, Materialized)
    return options if options.value_serde is not None else replace(options, value_serde=LongSerde())


def burn_number_of_count(graph: Graph, materialized: Materialized | None) -> None:
    """Consume one store number, as Kafka Streams' `count` does when its `Materialized` has no store name."""
    if materialized is not None and option_of(materialized, Materialized).store_name is None:
        graph.names.store("KSTREAM-AGGREGATE-")
