"""What operators see of groups: counts under Kafka's names, lag under the exporters'."""

from __future__ import annotations

import re
import urllib.request

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.free_ports import free_port

from moldau.testing import Broker


def scraped(broker: Broker) -> dict[str, float]:
    with urllib.request.urlopen(f"{broker.metrics_url}/metrics", timeout=20) as response:
        text = response.read().decode()
    return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


def test_groups_and_their_lag_are_told() -> None:
    with Broker({"metrics.http.port": str(free_port())}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(10):
            producer.produce("t", str(number))
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 4)], asynchronous=False)
        consumer.close()
        found = scraped(broker)
    assert found['kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"}'] == 6
    assert found['kafka_consumergroup_lag_sum{consumergroup="g",topic="t"}'] == 6
    assert found['kafka_consumergroup_current_offset{consumergroup="g",topic="t",partition="0"}'] == 4
    assert found['kafka_consumergroup_members{consumergroup="g"}'] == 0
    assert found['kafka_server_group_coordinator_metrics_group_count{protocol="classic"}'] == 1
    assert found['kafka_server_group_coordinator_metrics_classic_group_count{state="Empty"}'] == 1
    assert found["kafka_server_group_coordinator_metrics_offset_commit_count"] == 1
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroups"] == 1
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroupsempty"] == 1
