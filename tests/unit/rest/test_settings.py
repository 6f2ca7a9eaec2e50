from __future__ import annotations

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.rest.settings import RestSettings


def test_defaults_are_those_of_the_reference() -> None:
    settings = RestSettings.of()
    assert (settings.listener.host, settings.listener.port) == ("0.0.0.0", 8082)
    assert settings["consumer.instance.timeout.ms"] == 300_000
    assert settings["fetch.min.bytes"] == -1
    assert settings.advertised is None


def test_old_files_are_read_without_a_warning() -> None:
    settings = RestSettings.of(
        {
            "id": "kafka-rest-server",
            "zookeeper.connect": "localhost:2181",
            "port": "18082",
            "debug": "true",
            "schema.registry.url": "http://registry:8081",
            "consumer.max.poll.records": "10",
            "ssl.truststore.location": "trust.jks",
        }
    )
    assert settings.listener.port == 18082
    assert settings.warnings == ()
    assert settings.client_id == "rest-kafka-rest-server"


def test_settings_of_clients_come_by_prefix() -> None:
    settings = RestSettings.of(
        {
            "client.security.protocol": "SSL",
            "ssl.ca.location": "ca.pem",
            "consumer.auto.offset.reset": "earliest",
            "consumer.request.timeout.ms": "5",
            "producer.acks": "1",
            "client.bootstrap.servers": "broker:9092",
        }
    )
    assert settings["bootstrap.servers"] == "broker:9092"
    common = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    assert settings.client_properties("consumer") == {**common, "auto.offset.reset": "earliest"}
    assert settings.client_properties("producer") == {**common, "acks": "1"}


def test_unknown_keys_are_told() -> None:
    assert RestSettings.of({"consumer.instance.timout.ms": "1", "colour": "red"}).warnings == (
        "colour is not a known setting",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"listeners": "ftp://0.0.0.0:8082"},
        {"listeners": "http://localhost:port"},
        {"advertised.listeners": "proxy:8082"},
        {"consumer.request.timeout.ms": "soon"},
        {"fetch.min.bytes": "-2"},
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidConfigError, match=next(iter(wrong)).replace(".", r"\.")):
        RestSettings.of(wrong)
