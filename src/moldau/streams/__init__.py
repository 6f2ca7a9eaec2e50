"""Stream processing with the Kafka Streams API: describe a topology, run it on Spark, test it in memory.

This is the public API; the DSL is implemented in `pipeline.dsl`. Describing and testing a topology need no Spark and no
Java: the modules that run it are imported on first use. Start at `StreamsBuilder`, then `KafkaStreams` and
`TopologyTestDriver`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.pipeline.cores.handlers import Response as HandlerResponse
from moldau.pipeline.cores.processors import ContextualProcessor, ProcessorContext, RecordMetadata
from moldau.pipeline.cores.punctuation import Cancellable, PunctuationType
from moldau.pipeline.cores.records import Record, ValueAndTimestamp
from moldau.pipeline.dsl import expression_functions as functions
from moldau.pipeline.dsl.branching import BranchedKStream
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.dsl.cogrouped import (
    CogroupedKStream,
    SessionWindowedCogroupedKStream,
    TimeWindowedCogroupedKStream,
)
from moldau.pipeline.dsl.expressions import aggregate, col, key, left, lit, right, value
from moldau.pipeline.dsl.functions import with_key
from moldau.pipeline.dsl.grouped import KGroupedStream
from moldau.pipeline.dsl.grouped_table import KGroupedTable
from moldau.pipeline.dsl.kstream import KStream
from moldau.pipeline.dsl.ktable import GlobalKTable, KTable
from moldau.pipeline.dsl.options.joins import Joined, StreamJoined, TableJoined
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named
from moldau.pipeline.dsl.options.operators import Branched, Consumed, Grouped, Produced, Repartitioned
from moldau.pipeline.dsl.options.stores import StoreBuilder, Stores
from moldau.pipeline.dsl.options.suppressed import BufferConfig, Suppressed
from moldau.pipeline.dsl.options.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from moldau.pipeline.dsl.serdes import Serdes
from moldau.pipeline.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream
from moldau.pipeline.ir import types
from moldau.pipeline.ir.errors import CopartitioningError, TopologyError
from moldau.pipeline.ir.nodes import EmitStrategy, OffsetReset
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.lists import ListSerde
from moldau.serdes.plain import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
    VoidSerde,
)
from moldau.serdes.serde import Serde, SerdeError
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, Window, Windowed

if TYPE_CHECKING:
    from moldau.serdes.schema_serde import AvroSerde, JsonSchemaSerde, ProtobufSerde
    from moldau.streams.kafka_streams import KafkaStreams, Response, State
    from moldau.streams.piped_topics import TestInputTopic, TestOutputTopic, TestRecord
    from moldau.streams.test_driver import TopologyTestDriver

_ON_DEMAND = {
    "AvroSerde": "moldau.serdes.schema_serde",
    "JsonSchemaSerde": "moldau.serdes.schema_serde",
    "KafkaStreams": "moldau.streams.kafka_streams",
    "ProtobufSerde": "moldau.serdes.schema_serde",
    "Response": "moldau.streams.kafka_streams",
    "State": "moldau.streams.kafka_streams",
    "TestInputTopic": "moldau.streams.piped_topics",
    "TestOutputTopic": "moldau.streams.piped_topics",
    "TestRecord": "moldau.streams.piped_topics",
    "TopologyTestDriver": "moldau.streams.test_driver",
}

__all__ = [
    "AvroSerde",
    "BooleanSerde",
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "BytesSerde",
    "Cancellable",
    "CogroupedKStream",
    "Consumed",
    "ContextualProcessor",
    "CopartitioningError",
    "DoubleSerde",
    "EmitStrategy",
    "FloatSerde",
    "GlobalKTable",
    "Grouped",
    "HandlerResponse",
    "IntegerSerde",
    "JoinWindows",
    "Joined",
    "JsonSchemaSerde",
    "JsonSerde",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "ListSerde",
    "LongSerde",
    "Materialized",
    "Named",
    "OffsetReset",
    "ProcessorContext",
    "Produced",
    "ProtobufSerde",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "Repartitioned",
    "Response",
    "Serde",
    "SerdeError",
    "Serdes",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindowedSerde",
    "SessionWindows",
    "ShortSerde",
    "SlidingWindows",
    "State",
    "StoreBuilder",
    "Stores",
    "StreamJoined",
    "StreamsBuilder",
    "StringSerde",
    "Suppressed",
    "TableJoined",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindowedSerde",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "UnlimitedWindows",
    "UuidSerde",
    "ValueAndTimestamp",
    "VoidSerde",
    "Window",
    "Windowed",
    "aggregate",
    "col",
    "functions",
    "key",
    "left",
    "lit",
    "right",
    "types",
    "value",
    "with_key",
]


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
