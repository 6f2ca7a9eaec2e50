from __future__ import annotations

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.http.tls import Listener
from moldau.registry.settings import REGISTRY_KEYS, Dialect, RegistrySettings


def test_nothing_given_means_the_defaults() -> None:
    settings = RegistrySettings.of({})
    assert settings.listener == Listener("http", "0.0.0.0", 8081)
    assert settings["kafkastore.topic"] == "_schemas"
    assert settings.config_defaults == {"compatibilityLevel": "BACKWARD"}
    assert settings.dialect is Dialect.V8
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("http://localhost:9000", Listener("http", "localhost", 9000)),
        ("http://0.0.0.0:0", Listener("http", "0.0.0.0", 0)),
        ("https://a:1,http://b:2", Listener("http", "b", 2)),
        ("http://[::1]:8081", Listener("http", "::1", 8081)),
        ("http://host", Listener("http", "host", 8081)),
        ("host:5", Listener("http", "host", 5)),
    ],
)
def test_listeners_are_addresses(text: str, listener: Listener) -> None:
    assert RegistrySettings.of({"listeners": text}).listener == listener


def test_old_names_still_count() -> None:
    settings = RegistrySettings.of({"avro.compatibility.level": "Full", "master.eligibility": "false"})
    assert (settings.default_level, settings["leader.eligibility"]) == ("FULL", False)


def test_what_the_clients_need_is_handed_to_them() -> None:
    settings = RegistrySettings.of(
        {"kafkastore.security.protocol": "SSL", "kafkastore.ssl.truststore.location": "/x", "odd": "1"}
    )
    assert settings.client_properties == {"security.protocol": "SSL", "ssl.truststore.location": "/x"}
    assert settings.warnings == ("odd is not a known setting",)


def test_others_are_told_a_name_that_leads_here() -> None:
    assert RegistrySettings.of({"host.name": "r1"}).host_name == "r1"
    assert RegistrySettings.of({"listeners": "http://10.0.0.1:1"}).host_name == "10.0.0.1"
    assert RegistrySettings.of({}).host_name not in ("", "0.0.0.0")


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema.compatibility.level": "sideways"},
        {"listeners": "ftp://a:1"},
        {"listeners": "http://a:b"},
        {"listeners": "http://a:70000"},
        {"listeners": ""},
        {"kafkagroup.heartbeat.interval.ms": "20000"},
        {"kafkastore.timeout.ms": "-1"},
        {"mode.mutability": "perhaps"},
        {"moldau.registry.dialect": "6"},
    ],
)
def test_what_cannot_work_is_refused_by_name(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidConfigError, match=next(iter(wrong))):
        RegistrySettings.of(wrong)


def test_every_key_is_explained() -> None:
    assert all(key.doc.endswith(".") for key in REGISTRY_KEYS.values())
