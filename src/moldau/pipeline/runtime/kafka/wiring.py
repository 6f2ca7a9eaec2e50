"""Builds pipelines whose source, sink or both are Kafka. Start at `kafka_pipeline`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.cluster import Cluster
from moldau.pipeline.runtime.kafka.sinks import AtLeastOnceSink, ExactlyOnceSink
from moldau.pipeline.runtime.kafka.source import KafkaSource
from moldau.pipeline.runtime.pipeline import Pipeline
from moldau.pipeline.runtime.sink import Sink
from moldau.pipeline.runtime.source import Source

__all__ = ["kafka_pipeline"]


def kafka_pipeline(
    topology: Topology,
    identity: PipelineIdentity,
    clients: KafkaClients,
    options: PipelineOptions,
    engine: Engine,
    *,
    source: Source | None = None,
    new_sink: Callable[[], Sink] | None = None,
) -> Pipeline:
    """Build a pipeline, not started yet.

    topology: complete, with all serdes named.
    source: the source of records, if not Kafka topics.
    new_sink: makes a sink for each run, if rows do not go to Kafka topics. Then the sink decides whether the pipeline
        is exactly-once, and `options` must agree.
    """
    writes_kafka = new_sink is None
    cluster = Cluster(
        clients,
        topology,
        written=_written_topics(topology, options) if writes_kafka else (),
        progress_topic=identity.progress_topic if writes_kafka and options.is_exactly_once else None,
        replication_factor=options.replication_factor,
        provided=None if source is None else source.counts,
    )
    reads: Source = source or KafkaSource(topology, identity, clients, options, cluster)

    def new_kafka_sink() -> Sink:
        return (
            ExactlyOnceSink(identity, clients, reads.position) if options.is_exactly_once else AtLeastOnceSink(clients)
        )

    return Pipeline.of(
        topology,
        identity,
        options,
        engine,
        environment=cluster,
        source=reads,
        new_sink=new_sink or new_kafka_sink,
        realtime_options=clients.connector_properties("producer") if options.is_realtime and writes_kafka else None,
    )


def _written_topics(topology: Topology, options: PipelineOptions) -> Iterable[str]:
    yield from (sink.topic for sink in topology.sinks if sink.topic is not None)
    if options.dead_letter_topic is not None:
        yield options.dead_letter_topic
