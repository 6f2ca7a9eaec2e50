"""Broker and topic settings: layers, units, limits, and the entries DescribeConfigs is answered with."""

from __future__ import annotations

import pytest

from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.transaction.core import TransactionSettings
from moldau.core.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig, Dynamic, Listener, parse_topic_overrides
from moldau.core.config.broker_keys import base_key
from moldau.core.config.describe import (
    ConfigEntry,
    ConfigSource,
    broker_entries,
    cluster_default_entries,
    topic_entries,
)
from moldau.core.config.key import ConfigType, parse_value, render_value
from moldau.core.config.sections import (
    CoordinatorSettings,
    FetchSettings,
    MetadataLogSettings,
    NodeSettings,
    StorageSettings,
    TopicSettings,
)
from moldau.core.errors import InvalidConfigError
from moldau.log.cleaning.cleaner import CleanerSettings
from moldau.log.config import LogConfig
from moldau.net.limits import Limits


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    return next(one for one in entries if one.name == name)


def spelled(one: ConfigEntry) -> list[str]:
    return [f"{synonym.source.name}:{synonym.name}={synonym.value}" for synonym in one.synonyms]


def test_defaults_of_topics_equal_those_of_the_log() -> None:
    assert LogConfig.of(BrokerConfig().topic_values()) == LogConfig()


def test_every_topic_key_agrees_with_its_broker_key() -> None:
    values = BrokerConfig().topic_values()
    for name, key in TOPIC_KEYS.items():
        assert values[name] == key.default, name
        if key.broker_key is not None:
            assert BROKER_KEYS[key.broker_key].type is key.type
            assert BROKER_KEYS[key.broker_key].dynamic is Dynamic.CLUSTER


def test_every_default_passes_its_own_check() -> None:
    for key in (*BROKER_KEYS.values(), *TOPIC_KEYS.values()):
        if key.valid is not None and key.default is not None:
            assert key.valid(key.default) is None, key.name


def test_every_default_survives_being_rendered_and_parsed() -> None:
    for key in BROKER_KEYS.values():
        text = render_value(key.default)
        if text is not None:
            assert parse_value(key.name, key.type, text) == key.default


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_finer_units_of_retention_win(static: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(static).topic_values()["retention.ms"] == retention_ms


def test_a_stronger_layer_wins_even_in_coarser_units() -> None:
    config = BrokerConfig({"log.retention.ms": "5"}).with_dynamic({"log.retention.hours": "2"}, {})
    assert config.topic_values()["retention.ms"] == 7_200_000


def test_layers_are_topic_then_broker_then_cluster_then_file() -> None:
    config = BrokerConfig({"log.segment.bytes": "100"})
    assert config.topic_values()["segment.bytes"] == 100
    config = config.with_dynamic({"log.segment.bytes": "200"}, {})
    assert config.topic_values()["segment.bytes"] == 200
    config = config.with_dynamic({"log.segment.bytes": "200"}, {"log.segment.bytes": "300"})
    assert config.topic_values()["segment.bytes"] == 300
    assert config.topic_values({"segment.bytes": "400"})["segment.bytes"] == 400


def test_a_stored_value_that_cannot_be_read_is_passed_over() -> None:
    config = BrokerConfig().with_dynamic({"message.max.bytes": "much", "no.such.key": "1"}, {})
    assert config.value("message.max.bytes") == 1_048_588
    assert config.topic_values({"segment.bytes": "tiny"})["segment.bytes"] == 1_073_741_824


@pytest.mark.parametrize(
    ("static", "line"),
    [
        ({"num.partitions": "0"}, "Invalid value 0 for configuration num.partitions: must be at least 1"),
        ({"num.partitions": "many"}, "Invalid value many for configuration num.partitions: expected a 32-bit number"),
        ({"num.partitions": "1_0"}, "Invalid value 1_0 for configuration num.partitions: expected a 32-bit number"),
        ({"num.partitions": str(2**31)}, "expected a 32-bit number"),
        ({"auto.create.topics.enable": "yes"}, "expected true or false"),
        ({"log.retention.ms": "0"}, "must be at least 1, or -1 for no limit"),
        ({"log.cleanup.policy": "compact,shred"}, "may only hold compact, delete"),
        ({"log.dirs": "/a,/a"}, "names a folder twice"),
        ({"log.dirs": ""}, "must name at least one folder"),
        ({"node.id": "1", "broker.id": "2"}, "differ"),
        ({"listeners": "PLAINTEXT://:9092,PLAINTEXT://:9093"}, "a name of its own"),
        ({"listeners": "A://:9092"}, "does not say which protocol listener A speaks"),
        ({"listeners": "PLAINTEXT:9092"}, "not of the form NAME://host:port"),
        ({"listeners": "PLAINTEXT://:92000"}, "not of the form NAME://host:port"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot be reached"),
        ({"advertised.listeners": "SSL://h:9092"}, "which listeners does not have"),
        ({"process.roles": "broker", "controller.quorum.bootstrap.servers": "h:1"}, "controller.listener.names"),
        ({"controller.quorum.voters": "1:h:9093"}, "not of the form id@host:port"),
        ({"replica.fetch.wait.max.ms": "40000"}, "must not be above"),
        ({"broker.session.timeout.ms": "3000"}, "at least twice"),
        ({"listener.name.plaintext.ssl.client.auth": "maybe"}, "must be one of none, requested, required"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(static: dict[str, str], line: str) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        BrokerConfig(static)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_settings_warn_and_vendor_prefixes_do_not() -> None:
    config = BrokerConfig({"no.such.key": "1", "confluent.balancer.enable": "true", "listener.name.x.anything": "1"})
    assert config.warnings == ["no.such.key is not a known setting"]


def test_retired_settings_warn_that_they_have_no_effect() -> None:
    config = BrokerConfig({"inter.broker.protocol.version": "2.4", "log.cleaner.enable": "false"})
    assert config.warnings == [
        "inter.broker.protocol.version has no effect",
        "log.cleaner.enable=false has no effect: the cleaner always runs",
    ]


def test_a_zookeeper_file_makes_a_broker_of_the_quorum_at_those_addresses() -> None:
    config = BrokerConfig(
        {"broker.id": "3", "zookeeper.connect": "a:2181,b:2181/kafka", "zookeeper.session.timeout.ms": "18000"}
    )
    assert config.node_id == 3
    assert config.value("process.roles") == ["broker"]
    assert config.value("controller.quorum.bootstrap.servers") == ["a:2181", "b:2181"]
    assert config.value("broker.session.timeout.ms") == 18_000
    assert config.value("initial.broker.registration.timeout.ms") == 18_000


@pytest.mark.parametrize(("given", "patience_ms"), [({}, 18_000), ({"zookeeper.connection.timeout.ms": "6000"}, 6000)])
def test_how_long_a_broker_tries_to_register_is_zookeepers_connection_timeout(
    given: dict[str, str], patience_ms: int
) -> None:
    config = BrokerConfig({"broker.id": "0", "zookeeper.connect": "localhost"} | given)
    assert config.value("controller.quorum.bootstrap.servers") == ["localhost:2181"]
    assert config.value("initial.broker.registration.timeout.ms") == patience_ms


def test_old_host_and_port_keys_become_listeners() -> None:
    config = BrokerConfig({"port": "9095", "advertised.host.name": "me.example"})
    assert config.listeners == (Listener("PLAINTEXT", "", 9095),)
    assert config.advertised_listeners == (Listener("PLAINTEXT", "me.example", 9095),)


def test_the_sample_combined_file_is_accepted_and_hides_its_controller_listener() -> None:
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/tmp/kraft-combined-logs",
        }
    )
    assert config.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)
    assert config.security_protocols["CONTROLLER"] == "PLAINTEXT"
    assert config.warnings == []


def test_an_ipv6_listener_is_read_and_rendered() -> None:
    (listener,) = BrokerConfig({"listeners": "PLAINTEXT://[::1]:9092"}).listeners
    assert listener == Listener("PLAINTEXT", "::1", 9092)
    assert str(listener) == "PLAINTEXT://[::1]:9092"


def test_a_listeners_own_setting_beats_the_plain_one() -> None:
    config = BrokerConfig({"max.connections": "10", "listener.name.plaintext.max.connections": "5"})
    assert config.listener_value("PLAINTEXT", "max.connections") == 5
    assert config.listener_value("SSL", "max.connections") == 10


def test_listener_prefixes_lead_to_the_base_key() -> None:
    jaas = base_key("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config")
    assert jaas is BROKER_KEYS["sasl.jaas.config"]
    assert jaas.is_sensitive


def test_topic_synonyms_are_listed_strongest_first() -> None:
    config = BrokerConfig({"log.retention.minutes": "10", "log.retention.hours": "168"}).with_dynamic(
        {}, {"log.retention.ms": "86400000"}
    )
    described = entry(topic_entries(config, {"retention.ms": "1000"}), "retention.ms")
    assert described.value == "1000"
    assert described.source is ConfigSource.TOPIC
    assert spelled(described) == [
        "TOPIC:retention.ms=1000",
        "DYNAMIC_BROKER:log.retention.ms=86400000",
        "STATIC_BROKER:log.retention.minutes=10",
        "STATIC_BROKER:log.retention.hours=168",
        "DEFAULT:log.retention.hours=168",
    ]


def test_a_topic_without_overrides_shows_the_brokers_file() -> None:
    described = entry(topic_entries(BrokerConfig({"log.segment.bytes": "1000"}), {}), "segment.bytes")
    assert (described.value, described.source) == ("1000", ConfigSource.STATIC_BROKER)
    assert spelled(described) == ["STATIC_BROKER:log.segment.bytes=1000", "DEFAULT:log.segment.bytes=1073741824"]
    assert not described.is_read_only


def test_broker_entries_tell_what_can_be_changed_and_hide_secrets() -> None:
    entries = broker_entries(
        BrokerConfig({"ssl.key.password": "hush", "my.plugin.token": "hush", "num.partitions": "3"})
    )
    assert entry(entries, "num.partitions").is_read_only
    assert entry(entries, "num.partitions").source is ConfigSource.STATIC_BROKER
    assert not entry(entries, "message.max.bytes").is_read_only
    for name in ("ssl.key.password", "my.plugin.token"):
        assert entry(entries, name).value is None
        assert entry(entries, name).is_sensitive
    assert "hush" not in repr(entries)
    assert entry(entries, "log.retention.ms").value is None
    assert entry(entries, "log.cleaner.io.max.bytes.per.second").value == "1.7976931348623157E308"


def test_cluster_defaults_are_only_what_was_set_for_all_brokers() -> None:
    config = BrokerConfig({"log.segment.bytes": "1000"}).with_dynamic({"log.segment.bytes": "2000"}, {})
    (described,) = cluster_default_entries(config)
    assert (described.name, described.value) == ("log.segment.bytes", "2000")
    assert spelled(described) == ["DYNAMIC_DEFAULT_BROKER:log.segment.bytes=2000"]


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"retention.mss": "1"}, "Unknown topic config name: retention.mss"),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        ({"retention.ms": "-2"}, "must be at least -1"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "min.compaction.lag.ms (10)"),
        ({"remote.storage.enable": "true"}, "tiered storage is not available"),
        ({"leader.replication.throttled.replicas": "0-1"}, "must be * or a list"),
    ],
)
def test_topic_overrides_are_checked(overrides: dict[str, str | None], line: str) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        parse_topic_overrides(overrides, BrokerConfig())
    assert line in str(refused.value)


@pytest.mark.parametrize(
    ("text", "values"), [("", []), ("compact", ["compact"]), (" compact , delete ", ["compact", "delete"])]
)
def test_lists_are_split_at_commas_and_trimmed(text: str, values: list[str]) -> None:
    assert parse_value("k", ConfigType.LIST, text) == values


def test_a_broker_of_an_old_file_asks_the_addresses_of_zookeeper_for_its_quorum() -> None:
    config = BrokerConfig({"zookeeper.connect": "a:2181,b/kafka"})
    assert config.value("process.roles") == ["broker"]
    assert config.value("controller.quorum.bootstrap.servers") == ["a:2181", "b:2181"]
    kept = BrokerConfig({"zookeeper.connect": "a:2181", "process.roles": "broker,controller"})
    assert kept.value("controller.quorum.bootstrap.servers") == [], "process.roles says what the node is"


@pytest.mark.parametrize(
    "section",
    [
        CleanerSettings,
        ConsumerSettings,
        CoordinatorSettings,
        FetchSettings,
        GroupSettings,
        Limits,
        MetadataLogSettings,
        NodeSettings,
        StorageSettings,
        TopicSettings,
        TransactionSettings,
    ],
)
def test_a_section_without_a_configuration_has_the_defaults_of_the_keys(section: type) -> None:
    assert BrokerConfig().section(section) == section()


def test_a_section_follows_dynamic_settings() -> None:
    config = BrokerConfig({"node.id": "1"})
    assert config.section(TopicSettings) is config.section(TopicSettings)
    changed = config.with_dynamic({"log.cleaner.threads": "3"}, {})
    assert (config.section(CleanerSettings).threads, changed.section(CleanerSettings).threads) == (1, 3)
