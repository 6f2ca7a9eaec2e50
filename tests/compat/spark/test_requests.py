"""Which requests Spark sends: the same to either broker, in the same versions, and none about groups unless told to."""

from __future__ import annotations

from pathlib import Path

from tests.compat.spark.cluster import Cluster
from tests.compat.spark.seen import Seen, summary
from tests.compat.spark.source import Kafka, finished
from tests.compat.spark.workload import Topics, records

from moldau.protocol.api import ApiKey

GROUP_APIS = {
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
}


def test_reading_and_writing_ask_for_no_group(
    kafka: Kafka, topics: Topics, seen: Seen, cluster: Cluster, tmp_path: Path
) -> None:
    source, target = topics.filled(records(1200)), topics.create()
    tapped = Kafka(kafka.spark, cluster.tap.bootstrap, tmp_path / "tapped")

    tapped.read(subscribe=source, startingTimestamp=records(1)[0].timestamp_ms).count()
    stream = tapped.read_stream(subscribePattern=source, maxOffsetsPerTrigger=600)
    finished(tapped.to_kafka(stream.selectExpr(f"'{target}' AS topic", "key", "value"), availableNow=True))

    asked = sorted(cluster.tap.asked)
    assert not GROUP_APIS & {one.api_key for one in asked}
    assert {ApiKey.FETCH, ApiKey.PRODUCE, ApiKey.LIST_OFFSETS} <= {one.api_key for one in asked}
    seen(asked=[f"{ApiKey(one.api_key).name} v{one.version}" for one in asked])


def test_the_deprecated_way_to_offsets_asks_a_group(kafka: Kafka, topics: Topics, seen: Seen, cluster: Cluster) -> None:
    kafka.spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    topic = topics.filled(records(600))

    try:
        rows, batches = kafka.run(kafka.read_stream(subscribe=topic))
    finally:
        kafka.spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")

    assert len(rows) == 600
    seen(rows=summary(rows), batches=batches)
