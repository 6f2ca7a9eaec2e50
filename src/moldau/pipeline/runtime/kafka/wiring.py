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
from moldau.pipeline.runtime.kafka.store_feed import StoreFeed, changelog_configs, changelog_topics
from moldau.pipeline.runtime.pipeline import Pipeline
from moldau.pipeline.runtime.run import Realtime
from moldau.pipeline.runtime.sink import Sink
from moldau.pipeline.runtime.source import Source
from moldau.pipeline.runtime.stores.queryable import queryable_stores

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
        changelogs=_changelogs(topology, identity) if writes_kafka and options.is_realtime else {},
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
        realtime=_realtime(topology, identity, clients) if options.is_realtime and writes_kafka else None,
    )


def _realtime(topology: Topology, identity: PipelineIdentity, clients: KafkaClients) -> Realtime:
    topics = changelog_topics(topology, identity.name)
    return Realtime(
        sink_options=clients.connector_properties("producer"),
        new_feed=lambda database: StoreFeed(clients, identity.group_id, database, topics),
    )


def _changelogs(topology: Topology, identity: PipelineIdentity) -> dict[str, dict[str, str]]:
    stores = queryable_stores(topology)
    found = changelog_topics(topology, identity.name)
    return {topic: changelog_configs(stores[store]) for topic, (store, _) in found.items()}


def _written_topics(topology: Topology, options: PipelineOptions) -> Iterable[str]:
    yield from (sink.topic for sink in topology.sinks if sink.topic is not None)
    if options.dead_letter_topic is not None:
        yield options.dead_letter_topic
    log_topic = options.task_settings.get("ksql.logging.processing.topic.name")
    if log_topic:
        yield str(log_topic)
