"""A configuration is read by Kafka's names, checked, and wondered about aloud."""

from __future__ import annotations

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.streams.settings import Guarantee, Latency, StreamsSettings

LEAST = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def warnings_of(config: dict[str, object]) -> list[str]:
    said: list[str] = []
    StreamsSettings.of({**LEAST, **config}, said.append)
    return said


def test_two_settings_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    settings = StreamsSettings.of(LEAST)

    assert settings.guarantee is Guarantee.AT_LEAST_ONCE
    assert settings.latency is Latency.BATCH
    assert settings.offset_reset is OffsetReset.EARLIEST
    assert settings.commit_interval_ms is None
    assert settings.max_batch_records == 500_000
    assert settings.fails_on_data_loss
    assert settings.state_dir == "/home/ada/.local/state/moldau/streams"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("application.id", ""),
        ("application.id", "a b"),
        ("application.id", ".."),
        ("bootstrap.servers", "localhost"),
        ("processing.guarantee", "twice"),
        ("moldau.latency", "soon"),
        ("commit.interval.ms", "often"),
        ("commit.interval.ms", -1),
        ("num.stream.threads", 0),
        ("auto.offset.reset", "middle"),
        ("application.server", "7070"),
        ("moldau.fail.on.data.loss", "maybe"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(InvalidConfigError, match=key.replace(".", r"\.")):
        StreamsSettings.of({**LEAST, key: value})


@pytest.mark.parametrize("key", LEAST)
def test_what_cannot_be_guessed_must_be_there(key: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"{key} is missing"):
        StreamsSettings.of({name: value for name, value in LEAST.items() if name != key})


def test_old_names_of_exactly_once_still_work() -> None:
    said: list[str] = []
    settings = StreamsSettings.of({**LEAST, "processing.guarantee": "exactly_once_beta"}, said.append)

    assert settings.is_exactly_once
    assert said == ["processing.guarantee=exactly_once_beta is now called exactly_once_v2"]


def test_a_misspelt_key_is_told_with_the_right_one() -> None:
    assert warnings_of({"comit.interval.ms": 5}) == [
        "comit.interval.ms is not a setting of a Streams application; did you mean commit.interval.ms?"
    ]


def test_a_key_without_effect_is_told_with_the_reason() -> None:
    assert warnings_of({"num.standby.replicas": 1}) == [
        "num.standby.replicas has no effect here: state is in Spark's checkpoint, so there are no standby copies"
    ]


def test_keys_of_clients_and_of_spark_are_welcome() -> None:
    given = {"sasl.mechanism": "PLAIN", "producer.linger.ms": 1, "spark.master": "local[1]", "retries": 3}

    assert warnings_of(given) == []


def test_clients_get_what_is_theirs() -> None:
    settings = StreamsSettings.of(
        {
            **LEAST,
            "security.protocol": "SSL",
            "consumer.fetch.max.bytes": 1,
            "main.consumer.fetch.max.bytes": 2,
            "producer.linger.ms": 3,
            "producer.enable.idempotence": True,
        }
    )

    assert settings.client_properties("producer") == {
        "client.id": "app",
        "security.protocol": "SSL",
        "linger.ms": "3",
        "enable.idempotence": "true",
    }
    assert settings.client_properties("consumer")["fetch.max.bytes"] == "2"
    assert "linger.ms" not in settings.client_properties("admin")


def test_a_reset_for_the_main_consumer_wins() -> None:
    settings = StreamsSettings.of(
        {**LEAST, "auto.offset.reset": "earliest", "main.consumer.auto.offset.reset": "latest"}
    )

    assert settings.offset_reset is OffsetReset.LATEST


def test_settings_that_are_no_dict_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"settings are a dict, such as .* not list"):
        StreamsSettings.of([("application.id", "app")])  # type: ignore[arg-type]
