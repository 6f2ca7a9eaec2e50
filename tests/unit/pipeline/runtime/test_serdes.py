"""Default serdes by Kafka's class names, by short words, as classes and as objects."""

from __future__ import annotations

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.ir.serdes import JsonSerde, LongSerde, StringSerde
from moldau.pipeline.runtime.serdes import default_serde


@pytest.mark.parametrize(
    "given",
    [
        "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "Serdes.StringSerde",
        "string",
        StringSerde,
        StringSerde(),
    ],
)
def test_there_are_many_ways_to_name_one(given: object) -> None:
    assert default_serde({"default.key.serde": given}, "key") == StringSerde()


def test_the_two_parts_have_their_own() -> None:
    config = {"default.key.serde": "Long", "default.value.serde": "JSON"}

    assert (default_serde(config, "key"), default_serde(config, "value")) == (LongSerde(), JsonSerde())
    assert default_serde({}, "key") is None


@pytest.mark.parametrize("given", ["com.example.AvroSerde", 5, object])
def test_what_is_no_serde_is_refused(given: object) -> None:
    with pytest.raises(InvalidConfigError, match=r"default\.value\.serde"):
        default_serde({"default.value.serde": given}, "value")
