"""Altering settings: operations, limits, and what becomes a record."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.decisions.configs import (
    ConfigOp,
    ConfigOpType,
    ResourceChange,
    decide_config_changes,
    replacement_of,
)
from moldau.controller.image import CLUSTER_DEFAULT, BrokerImage, ConfigResource, MetadataImage, TopicImage
from moldau.controller.replay import replay_records
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode

TOPIC = ConfigResource(2, "t")
BROKER = ConfigResource(4, "1")
SET, DELETE, APPEND, SUBTRACT = ConfigOpType.SET, ConfigOpType.DELETE, ConfigOpType.APPEND, ConfigOpType.SUBTRACT


def image(**topic_settings: str) -> MetadataImage:
    settings = {name.replace("_", "."): value for name, value in topic_settings.items()}
    return MetadataImage(
        topics={"t": TopicImage("t", uuid.uuid4(), {})},
        brokers={1: BrokerImage(1, 1, uuid.uuid4(), {})},
        configs={TOPIC: settings} if settings else {},
    )


def outcome(
    resource: ConfigResource, *ops: ConfigOp, before: MetadataImage | None = None
) -> tuple[ErrorCode, str | None]:
    decision = decide_config_changes(before or image(), [ResourceChange(resource, ops)], BrokerConfig())
    (result,) = decision.results
    assert (result.error is ErrorCode.NONE) or decision.records == []
    return result.error, result.message


def after(resource: ConfigResource, *ops: ConfigOp, before: MetadataImage | None = None) -> dict[str, str]:
    start = before or image()
    decision = decide_config_changes(start, [ResourceChange(resource, ops)], BrokerConfig())
    assert [result.message for result in decision.results] == [None]
    changed = replay_records(start, decision.records, offset=1, epoch=1).image
    return dict(changed.configs.get(resource, {}))


def test_settings_are_set_and_deleted() -> None:
    before = image(segment_ms="5")
    ops = ConfigOp("retention.ms", SET, "10"), ConfigOp("segment.ms", DELETE)
    assert after(TOPIC, *ops, before=before) == {"retention.ms": "10"}


def test_lists_are_appended_to_and_subtracted_from_beginning_with_the_default() -> None:
    assert after(TOPIC, ConfigOp("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    both = image(cleanup_policy="compact,delete")
    assert after(TOPIC, ConfigOp("cleanup.policy", SUBTRACT, "delete"), before=both) == {"cleanup.policy": "compact"}


def test_a_setting_that_does_not_change_makes_no_record() -> None:
    decision = decide_config_changes(
        image(segment_ms="5"), [ResourceChange(TOPIC, (ConfigOp("segment.ms", SET, "5"),))], BrokerConfig()
    )
    assert decision.records == []


def test_replacing_takes_away_what_is_not_named() -> None:
    before = image(segment_ms="5", retention_ms="1")
    change = replacement_of(before, TOPIC, [("retention.ms", "2")])
    assert after(TOPIC, *change.ops, before=before) == {"retention.ms": "2"}


@pytest.mark.parametrize(
    ("op", "error", "words"),
    [
        (ConfigOp("x", SET, "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: x"),
        (ConfigOp("segment.ms", SET, "0"), ErrorCode.INVALID_CONFIG, "at least 1"),
        (ConfigOp("segment.ms", SET, None), ErrorCode.INVALID_REQUEST, "Null value"),
        (ConfigOp("segment.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG, "not a list"),
        (ConfigOp("segment.ms", 9, "1"), ErrorCode.INVALID_REQUEST, "Unknown operation"),
    ],
)
def test_bad_topic_settings_are_refused(op: ConfigOp, error: ErrorCode, words: str) -> None:
    found, message = outcome(TOPIC, op)
    assert found is error
    assert words in (message or "")


def test_brokers_take_dynamic_settings_only() -> None:
    assert outcome(BROKER, ConfigOp("num.partitions", SET, "3")) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: Set(num.partitions)",
    )
    assert after(BROKER, ConfigOp("message.max.bytes", SET, "100")) == {"message.max.bytes": "100"}
    assert outcome(BROKER, ConfigOp("message.max.bytes", SET, "-1"))[0] is ErrorCode.INVALID_REQUEST


def test_settings_of_one_broker_cannot_be_set_for_all() -> None:
    op = ConfigOp("ssl.keystore.location", SET, "/x")
    assert outcome(CLUSTER_DEFAULT, op)[0] is ErrorCode.INVALID_REQUEST
    assert outcome(BROKER, op)[0] is ErrorCode.NONE


def test_thread_counts_change_by_a_factor_of_two_at_most() -> None:
    assert outcome(BROKER, ConfigOp("num.io.threads", SET, "16"))[0] is ErrorCode.NONE
    assert outcome(BROKER, ConfigOp("num.io.threads", SET, "17"))[0] is ErrorCode.INVALID_REQUEST
    assert outcome(BROKER, ConfigOp("num.io.threads", SET, "3"))[0] is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (ConfigResource(2, "nope"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(2, "a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ConfigResource(4, "7"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (ConfigResource(4, "one"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(99, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_do_not_exist_are_refused(resource: ConfigResource, error: ErrorCode) -> None:
    assert outcome(resource, ConfigOp("segment.ms", SET, "5"))[0] is error


def test_a_resource_or_setting_named_twice_is_refused() -> None:
    change = ResourceChange(TOPIC, (ConfigOp("segment.ms", SET, "5"),))
    results = decide_config_changes(image(), [change, change], BrokerConfig()).results
    assert [result.error for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    twice = ConfigOp("segment.ms", SET, "5"), ConfigOp("segment.ms", DELETE)
    assert outcome(TOPIC, *twice)[0] is ErrorCode.INVALID_REQUEST
