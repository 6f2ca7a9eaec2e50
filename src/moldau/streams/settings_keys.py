"""The configuration keys of a Streams application: Kafka's names, and the effect of each in moldau.

There are three kinds: keys with an effect, keys of Kafka Streams without an effect here (the reason is logged once),
and keys of Kafka's clients, which are passed to the clients. Start at `ACTED_ON`.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

__all__ = ["ACTED_ON", "IDLE", "advice_about", "is_client_key"]

ACTED_ON: Mapping[str, str] = {
    "application.id": "names the consumer group, the transactional id, the state directory and internal topics",
    "application.server": "host:port on which the stores answer over HTTP; port 0 takes a free one",
    "auto.offset.reset": "where to begin without a committed offset: earliest (default) or latest",
    "auto.register.schemas": "true (default) lets serdes register schemas that their subject does not have yet",
    "basic.auth.user.info": "user:password for the schema registry",
    "bootstrap.servers": "brokers, host:port, several with commas between",
    "cache.max.bytes.buffering": "older name of statestore.cache.max.bytes",
    "client.id": "what brokers log about this application's clients; default is the application.id",
    "commit.interval.ms": (
        "time from one batch to the next; without it a batch begins when the last one has ended. In real time the "
        "length of a batch, 30 s without it"
    ),
    "default.deserialization.exception.handler": "log-and-fail (default) or log-and-continue",
    "default.key.serde": "serde of keys where the topology names none",
    "default.timestamp.extractor": "(record, previous timestamp) -> milliseconds, where a source names none",
    "default.value.serde": "serde of values where the topology names none",
    "deserialization.exception.handler": "newer name of default.deserialization.exception.handler",
    "errors.dead.letter.queue.topic.name": "topic for records that a handler skips",
    "key.subject.name.strategy": "which subject keys have: TopicNameStrategy (default), RecordNameStrategy or "
    "TopicRecordNameStrategy",
    "moldau.batch.max.records": "the most records that one batch takes from its topics; default 500000",
    "moldau.fail.on.data.loss": "false continues if records were deleted before they were read; default true",
    "moldau.latency": "batch (default), or realtime for topologies without Python",
    "num.stream.threads": "tasks that run at once; the default is the number of cores. spark.master wins over it",
    "processing.exception.handler": "log-and-fail (default) or log-and-continue",
    "processing.guarantee": "at_least_once (default) or exactly_once_v2",
    "replication.factor": "of topics that are made for this application; default -1, the broker's own",
    "schema.registry.url": "the registry of serdes with schemas; several with commas between, mock://name in tests",
    "state.dir": "folder or URI with a checkpoint for each application",
    "statestore.cache.max.bytes": "0 emits every change of a table, more than 0 one change per key and batch",
    "topology.optimization": "none (default), all, or some of reuse.ktable.source.topics, merge.repartition.topics, "
    "single.store.self.join; takes effect where it is given to StreamsBuilder.build",
    "use.latest.version": "true writes with the latest schema of the subject, whatever the serde was given",
    "value.subject.name.strategy": "which subject values have, as for keys",
}
"""Keys with an effect, and a description of it."""

_INSIDE_SPARK = "Spark keeps tasks, state and their recovery itself"
_NO_STANDBY = "state is in Spark's checkpoint, so there are no standby copies"

IDLE: Mapping[str, str] = {
    "acceptable.recovery.lag": _NO_STANDBY,
    "allow.os.group.write.access": "the folder's own permissions hold",
    "basic.auth.credentials.source": "basic.auth.user.info holds where it is given, else what stands in the URL",
    "buffered.records.per.partition": "moldau.batch.max.records bounds what is read ahead",
    "built.in.metrics.version": "there is one version",
    "default.client.supplier": "clients are librdkafka's and Spark's",
    "default.dsl.store": _INSIDE_SPARK,
    "default.production.exception.handler": "a record that cannot be written ends the batch, which is done again",
    "dsl.store.suppliers.class": _INSIDE_SPARK,
    "enable.metrics.push": "metrics are read with KafkaStreams.metrics()",
    "ensure.explicit.internal.resource.naming": "names follow the topology; a changed one is refused by its checkpoint",
    "group.protocol": "partitions are assigned by Spark",
    "log.summary.interval.ms": "progress is shown by `moldau streams run`",
    "max.task.idle.ms": "a batch takes the records of all partitions by their timestamps",
    "max.warmup.replicas": _NO_STANDBY,
    "metric.reporters": "metrics are read with KafkaStreams.metrics()",
    "metrics.num.samples": "metrics are those of the last batches",
    "metrics.recording.level": "metrics are those of the last batches",
    "metrics.sample.window.ms": "metrics are those of the last batches",
    "num.standby.replicas": _NO_STANDBY,
    "poll.ms": "commit.interval.ms sets the pace",
    "probing.rebalance.interval.ms": _INSIDE_SPARK,
    "processor.wrapper.class": "processors are Python objects",
    "production.exception.handler": "a record that cannot be written ends the batch, which is done again",
    "rack.aware.assignment.non_overlap_cost": _INSIDE_SPARK,
    "rack.aware.assignment.strategy": _INSIDE_SPARK,
    "rack.aware.assignment.tags": _INSIDE_SPARK,
    "rack.aware.assignment.traffic_cost": _INSIDE_SPARK,
    "repartition.purge.interval.ms": "records are repartitioned inside Spark, not through a topic",
    "rocksdb.config.setter": "use spark.sql.streaming.stateStore.rocksdb.*",
    "specific.avro.reader": "values are plain Python values",
    "state.cleanup.delay.ms": _INSIDE_SPARK,
    "task.assignor.class": _INSIDE_SPARK,
    "task.timeout.ms": "an unreachable cluster is waited for",
    "upgrade.from": "there is no rolling upgrade of one application",
    "window.size.ms": "give it to the serde",
    "windowed.inner.class.serde": "give it to the serde",
    "windowstore.changelog.additional.retention.ms": "there are no changelog topics",
}
"""Keys of Kafka Streams without an effect here, and the reason."""

_CLIENT_KEYS = frozenset(
    [
        "acks",
        "batch.size",
        "buffer.memory",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "compression.type",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "isolation.level",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.request.size",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "partitioner.class",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "send.buffer.bytes",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "transaction.timeout.ms",
    ]
)


def is_client_key(key: str) -> bool:
    """Whether a key without prefix belongs to Kafka's clients."""
    return key in _CLIENT_KEYS or key.startswith(("sasl.", "ssl."))


def advice_about(key: str) -> str:
    """The warning for an unknown key, with the most similar known key if there is one."""
    near = get_close_matches(key, [*ACTED_ON, *IDLE, *_CLIENT_KEYS], n=1)
    hint = f"; did you mean {near[0]}?" if near else "; it is left out"
    return f"{key} is not a setting of a Streams application{hint}"
