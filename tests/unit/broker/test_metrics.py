"""Names and shapes of metrics, as scrapers and JMX tools expect them."""

from __future__ import annotations

import pytest

from moldau.broker.metrics import Distribution, Family, Kind, Metrics, Sample, mbean_matches


def metrics_of(*families: Family) -> Metrics:
    metrics = Metrics()
    metrics.add_source(lambda: families)
    return metrics


def text_of(*families: Family) -> str:
    return "".join(metrics_of(*families).render_prometheus())


def test_a_gauge_is_named_by_domain_type_and_name() -> None:
    family = Family(
        "kafka.server:ReplicaManager", "UnderReplicatedPartitions", Kind.GAUGE, "Too few copies.", [Sample((), 0)]
    )
    assert text_of(family) == (
        "# HELP kafka_server_replicamanager_underreplicatedpartitions Too few copies.\n"
        "# TYPE kafka_server_replicamanager_underreplicatedpartitions gauge\n"
        "kafka_server_replicamanager_underreplicatedpartitions 0\n"
    )


def test_a_meter_loses_persec_and_ends_in_total() -> None:
    samples = [Sample((), 5), Sample((("topic", "t"),), 5)]
    text = text_of(Family("kafka.server:BrokerTopicMetrics", "BytesInPerSec", Kind.METER, "", samples))
    assert "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n" in text
    assert "kafka_server_brokertopicmetrics_bytesin_total 5\n" in text
    assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 5\n' in text


def test_a_percentage_keeps_its_word_at_the_end() -> None:
    family = Family(
        "kafka.server:KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", Kind.PERCENT, "", [Sample((), 0.75)]
    )
    assert "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.75\n" in text_of(family)


def test_a_histogram_has_count_quantiles_max_and_mean() -> None:
    sample = Sample((("request", "Produce"),), Distribution(1000, [float(n) for n in range(1, 101)]))
    text = text_of(Family("kafka.network:RequestMetrics", "TotalTimeMs", Kind.HISTOGRAM, "", [sample]))
    assert 'kafka_network_requestmetrics_totaltimems_count{request="Produce"} 1000\n' in text
    assert 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 50\n' in text
    assert 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.999"} 100\n' in text
    assert 'kafka_network_requestmetrics_totaltimems_max{request="Produce"} 100\n' in text
    assert 'kafka_network_requestmetrics_totaltimems_mean{request="Produce"} 50.5\n' in text


def test_group_attributes_turn_dashes_into_underscores() -> None:
    family = Family("kafka.server:raft-metrics", "current-epoch", Kind.ATTRIBUTE, "", [Sample((), 4)])
    assert "kafka_server_raft_metrics_current_epoch 4\n" in text_of(family)
    assert dict(metrics_of(family).jmx()) == {"kafka.server:type=raft-metrics": {"current-epoch": 4}}


def test_texts_become_labels_and_labels_are_escaped() -> None:
    family = Family("kafka.server:KafkaServer", "ClusterId", Kind.TEXT, "", [Sample((), 'a"b')])
    assert 'kafka_server_kafkaserver_clusterid{clusterid="a\\"b"} 1\n' in text_of(family)


def test_quoted_mbean_values_lose_their_quotes_in_labels() -> None:
    sample = Sample((("logDirectory", '"/data"'),), 0)
    family = Family("kafka.log:LogManager", "LogDirectoryOffline", Kind.GAUGE, "", [sample])
    assert 'kafka_log_logmanager_logdirectoryoffline{logdirectory="/data"} 0\n' in text_of(family)
    assert list(metrics_of(family).jmx()) == [
        ('kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="/data"', {"Value": 0})
    ]


def test_large_families_come_in_pieces() -> None:
    samples = [Sample((("partition", str(n)),), n) for n in range(1000)]
    pieces = list(metrics_of(Family("", "kafka_x", Kind.PLAIN_GAUGE, "Many.", samples)).render_prometheus())
    assert len(pieces) > 4
    assert "".join(pieces).count("\n") == 1002


def test_rates_come_from_the_counts_of_earlier_scrapes() -> None:
    count = 0
    metrics = Metrics()
    metrics.add_source(lambda: [Family("d:T", "XPerSec", Kind.METER, "", [Sample((), count)])])
    dict(metrics.jmx(now_s=100.0))
    count = 600
    (attributes,) = dict(metrics.jmx(now_s=160.0)).values()
    assert attributes == {
        "Count": 600,
        "OneMinuteRate": 10.0,
        "FiveMinuteRate": 10.0,
        "FifteenMinuteRate": 10.0,
        "MeanRate": 10.0,
    }


def test_rates_of_deleted_topics_take_no_memory_for_ever() -> None:
    topic = ""
    metrics = Metrics()
    metrics.add_source(lambda: [Family("d:T", "XPerSec", Kind.METER, "", [Sample((("topic", topic),), 1)])])
    for number in range(1000):
        topic = str(number)
        dict(metrics.jmx(now_s=number * 10.0))
    assert len(metrics._rates._seen) <= 2 * 90


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*:*", True),
        ("kafka.server:*", True),
        ("kafka.*:type=BrokerTopicMetrics,*", True),
        ("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", False),
        ("kafka.server:name=BytesInPerSec,topic=*,type=BrokerTopicMetrics", True),
        ("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=other", False),
        ("kafka.log:*", False),
    ],
)
def test_jmx_patterns(pattern: str, matches: bool) -> None:
    assert mbean_matches(pattern, "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=t") is matches
