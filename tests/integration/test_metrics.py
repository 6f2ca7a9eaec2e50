"""What operators see of a running broker: names they know, counts that are exact."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.free_ports import free_port

from moldau.testing import Broker

RECORDS = 1000

ALERTING = {
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_atminisrpartitioncount",
    "kafka_server_replicamanager_offlinereplicacount",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_isrshrinks_total",
    "kafka_server_replicamanager_isrexpands_total",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_activebrokercount",
    "kafka_controller_kafkacontroller_globaltopiccount",
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_log_logcleaner_deadthreadcount",
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_kafkaserver_clusterid",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_errors_total",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "kafka_log_log_size",
    "kafka_log_log_logendoffset",
    "kafka_cluster_partition_underreplicated",
    "kafka_server_raft_metrics_current_epoch",
    "kafka_server_raft_metrics_current_state",
    "kafka_server_broker_metadata_metrics_last_applied_record_offset",
    "kafka_server_metadataloader_currentmetadataversion",
    "kafka_topic_partitions",
    "kafka_topic_partition_current_offset",
    "kafka_brokers",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
    "python_info",
    "moldau_event_loop_lag_seconds",
}
"""Names that dashboards and alert rules are written against; none may go."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"metrics.http.port": str(free_port())}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        text: str = response.read().decode()
        return text


def scrape(broker: Broker) -> dict[str, float]:
    text = fetched(f"{broker.metrics_url}/metrics")
    return {name: float(value) for name, value in re.findall(r"^([a-z][^#\n]*) (\S+)$", text, re.MULTILINE)}


def names_of(broker: Broker) -> set[str]:
    return {name.partition("{")[0] for name in scrape(broker)}


def test_counts_are_exact_for_what_was_produced_and_consumed(broker: Broker, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("counted", 1, 1)])["counted"].result(10)
    before = scrape(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for _ in range(RECORDS):
        producer.produce("counted", b"x" * 100)
    assert producer.flush(20) == 0
    after = scrape(broker)
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert after[f'{name}{{topic="counted"}}'] == RECORDS
    assert after[name] - before[name] == RECORDS
    assert after['kafka_log_log_logendoffset{topic="counted",partition="0"}'] == RECORDS
    assert after['kafka_topic_partition_current_offset{topic="counted",partition="0"}'] == RECORDS
    size = after['kafka_log_log_size{topic="counted",partition="0"}']
    assert after['kafka_server_brokertopicmetrics_bytesin_total{topic="counted"}'] == size > RECORDS * 100

    settings = {"group.id": "unused", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    consumer.assign([TopicPartition("counted", 0, 0)])
    assert len(consumer.consume(RECORDS, timeout=20)) == RECORDS
    consumer.close()
    assert scrape(broker)['kafka_server_brokertopicmetrics_bytesout_total{topic="counted"}'] >= size


def test_the_names_operators_rely_on_are_there(broker: Broker, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("named", 1, 1)])["named"].result(10)
    assert ALERTING - names_of(broker) == set()


def test_every_family_is_declared_once_and_before_its_series(broker: Broker) -> None:
    text = fetched(f"{broker.metrics_url}/metrics")
    declared: list[str] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.append(line.split()[2])
        elif not line.startswith("#"):
            assert re.match(r"[a-z_0-9]+", line)[0] == declared[-1]  # type: ignore[index]
    assert len(declared) == len(set(declared))


def test_an_error_is_counted_under_its_name(broker: Broker, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("no good", 1, 1)])["no good"].exception(10)
    name = 'kafka_network_requestmetrics_errors_total{request="CreateTopics",error="INVALID_TOPIC_EXCEPTION"}'
    assert scrape(broker)[name] == 1


def test_jmx_and_health_answer_too(broker: Broker) -> None:
    pattern = "kafka.server:type=ReplicaManager,name=LeaderCount"
    found = json.loads(fetched(f"{broker.metrics_url}/jmx?object-name={pattern}"))
    assert list(found) == [pattern]
    assert json.loads(fetched(f"{broker.metrics_url}/healthz"))["healthy"]


def test_a_deleted_topic_takes_its_series_but_not_the_totals(broker: Broker, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("short-lived", 1, 1)])["short-lived"].result(10)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce("short-lived", b"x")
    assert producer.flush(20) == 0
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    before = scrape(broker)[name]
    admin.delete_topics(["short-lived"])["short-lived"].result(10)
    after = scrape(broker)
    assert after[name] == before
    assert not [series for series in after if 'topic="short-lived"' in series]
