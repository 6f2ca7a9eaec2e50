"""The topic of schemas must exist and be fit for them: one partition, compacted. Start at `ensure_topic`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from moldau.client.admin import Admin
from moldau.client.errors import ClientError, UnreachableError
from moldau.core.errors import ErrorCode, StartupError
from moldau.registry.outages import Outage

__all__ = ["ensure_topic"]

RETRY_S = 0.2
_logger = logging.getLogger("moldau.registry")


def ensure_topic(
    admin: Admin,
    topic: str,
    *,
    replication_factor: int,
    deadline: float,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Create the topic where it is missing; raises `StartupError` for one that would lose or reorder schemas.

    `deadline` is a moment of the monotonic clock: until then, or `is_stopping`, brokers may still be on their way.
    """
    outage = Outage(f"topic {topic} at {admin.servers}")
    while True:
        try:
            if topic not in admin.topic_names():
                _create(admin, topic, replication_factor)
            _check(admin, topic)
        except ClientError as error:
            if is_stopping() or time.monotonic() > deadline:
                raise StartupError(f"topic {topic} at {admin.servers}: {error}") from None
            if not isinstance(error, UnreachableError):  # `told_while_waiting` says that nobody answers
                _tell(outage.failed(str(error), time.monotonic()))
            time.sleep(RETRY_S)
        else:
            _tell(outage.recovered(time.monotonic()))
            return


def _tell(line: str | None) -> None:
    if line is not None:
        _logger.warning("%s", line)


def _create(admin: Admin, topic: str, replication_factor: int) -> None:
    replicas = min(replication_factor, admin.broker_count())
    if replicas < replication_factor:
        _logger.warning("topic %s gets %d replicas, as there are no more brokers", topic, replicas)
    try:
        admin.create_topic(topic, partitions=1, replication_factor=replicas, configs={"cleanup.policy": "compact"})
    except ClientError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def _check(admin: Admin, topic: str) -> None:
    partitions = len(admin.describe_topics([topic])[0].partitions)
    if partitions != 1:
        raise StartupError(f"topic {topic} has {partitions} partitions; schemas need their order, so it must have one")
    entries = admin.describe_configs("topic", [topic])[topic]
    policy = next((entry.value for entry in entries if entry.name == "cleanup.policy"), None)
    if policy != "compact":
        raise StartupError(
            f"topic {topic} has cleanup.policy={policy}, which would delete schemas; change that with: "
            f"kafka-configs --alter --entity-type topics --entity-name {topic} --add-config cleanup.policy=compact"
        )
