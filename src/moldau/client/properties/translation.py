"""Translates Java client properties for librdkafka: one table of keys with other names, values or handling.

Property files and the tools' `--property` options are written for the Java clients. Most keys mean the
same to librdkafka and pass through; the rest are renamed, converted, kept for the tool itself
(`Translated.own`), or ignored with a warning. Security keys are in `client.properties.security`.
Start at `translate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from moldau.client.properties.security import SECURITY_KEYS, security_settings
from moldau.core.errors import InvalidConfigError

__all__ = ["CONSUMER_DEFAULTS", "PRODUCER_DEFAULTS", "Kind", "Translated", "translate"]

Kind = Literal["producer", "consumer", "admin"]
Settings = dict[str, str]

PRODUCER_DEFAULTS: Mapping[str, str] = {
    "acks": "all",
    "enable.idempotence": "true",
    "linger.ms": "5",
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "max.request.size": "1048576",
    "compression.type": "none",
    "delivery.timeout.ms": "120000",
    "max.in.flight.requests.per.connection": "5",
    "partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
}
"""Where the Java producer's defaults differ from librdkafka's, or must not depend on them."""

TRANSACTIONAL_DEFAULTS = {
    # With "rebootstrap", librdkafka 2.16 forgets the coordinator when all brokers are unreachable for a moment: a
    # transaction that was sending offsets then blocks forever, despite its timeout.
    "metadata.recovery.strategy": "none",
}

CONSUMER_DEFAULTS: Mapping[str, str] = {
    "auto.offset.reset": "latest",
    "isolation.level": "read_uncommitted",
    "session.timeout.ms": "45000",
    "partition.assignment.strategy": "range",
    "allow.auto.create.topics": "true",
    # By default librdkafka pauses for a second after filling its queue, which is too long for a fast reader.
    "fetch.queue.backoff.ms": "10",
}
"""librdkafka reads committed records only and joins with two assignors; Java clients do neither."""

OWN_KEYS = frozenset(
    {
        "max.block.ms",
        "default.api.timeout.ms",
        "max.poll.records",
        "exclude.internal.topics",
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
    }
)
"""Keys that a tool handles itself, since librdkafka has no setting for them."""

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "auto.include.jmx.reporter": "",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
}

_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "range": "range",
    "roundrobin": "roundrobin",
    "cooperative-sticky": "cooperative-sticky",
}

_PARTITIONERS = {
    "DefaultPartitioner": "murmur2_random",
    "UniformStickyPartitioner": "random",
    "RoundRobinPartitioner": "random",
}


@dataclass(slots=True)
class Translated:
    """librdkafka's settings, and the keys that have none."""

    settings: Settings = field(default_factory=dict)
    own: Settings = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def translate(properties: Mapping[str, str], kind: Kind) -> Translated:
    """Turn Java properties, completed with the Java client's defaults, into librdkafka's.

    Raises `InvalidConfigError` where a value contradicts another one or has no meaning.
    """
    given = {key.strip(): value for key, value in properties.items()}
    result = Translated()
    if kind == "producer":
        defaults = {**PRODUCER_DEFAULTS, **(TRANSACTIONAL_DEFAULTS if given.get("transactional.id") else {})}
        given = _with_delivery_timeout(_with_idempotence({**defaults, **given}, given), given)
    elif kind == "consumer":
        given = _with_group_protocol({**CONSUMER_DEFAULTS, **given}, given)
    for key, value in given.items():
        if key in OWN_KEYS:
            result.own[key] = value
        elif key in _SPECIAL:
            _SPECIAL[key](value, result, kind)
        elif key not in SECURITY_KEYS:
            result.settings[_RENAMED.get(key, key)] = value
    result.settings.pop("", None)
    security = {key: value for key, value in given.items() if key in SECURITY_KEYS}
    settings, warnings = security_settings(security)
    result.settings.update(settings)
    result.warnings.extend(warnings)
    return result


def _with_idempotence(complete: Settings, given: Mapping[str, str]) -> Settings:
    """Decide idempotence as the Java producer does: conflicting settings are an error if it was requested explicitly,
    and disable it otherwise."""
    if complete["enable.idempotence"].lower() != "true":
        return complete
    reasons = [
        (complete["acks"] not in ("all", "-1"), "acks must be all"),
        (int(complete.get("retries", "1")) == 0, "retries must not be 0"),
        (
            int(complete["max.in.flight.requests.per.connection"]) > 5,
            "max.in.flight.requests.per.connection must be at most 5",
        ),
    ]
    conflicts = [reason for is_conflict, reason in reasons if is_conflict]
    if conflicts and ("enable.idempotence" in given or "transactional.id" in given):
        raise InvalidConfigError(f"An idempotent producer was asked for, but {' and '.join(conflicts)}")
    return {**complete, "enable.idempotence": "false"} if conflicts else complete


def _with_delivery_timeout(complete: Settings, given: Mapping[str, str]) -> Settings:
    """Java allows a delivery timeout above the transaction timeout; librdkafka does not."""
    if "transactional.id" not in given:
        return complete
    patience_ms = min(int(complete["delivery.timeout.ms"]), int(complete.get("transaction.timeout.ms", "60000")))
    return {**complete, "delivery.timeout.ms": str(patience_ms)}


def _with_group_protocol(complete: Settings, given: Mapping[str, str]) -> Settings:
    """With the new protocol (KIP-848) the broker decides these; librdkafka fails to start where they are set."""
    if complete.get("group.protocol", "classic").strip().lower() != "consumer":
        return complete
    decided_by_broker = {"session.timeout.ms", "partition.assignment.strategy", "heartbeat.interval.ms"} - given.keys()
    return {key: value for key, value in complete.items() if key not in decided_by_broker}


def _buffer_memory(value: str, result: Translated, _kind: Kind) -> None:
    """Java limits the buffer by bytes alone; librdkafka also limits the number of messages unless that is disabled."""
    result.settings["queue.buffering.max.kbytes"] = str(max(1, int(value) // 1024))
    result.settings["queue.buffering.max.messages"] = "0"


def _batch_size(value: str, result: Translated, _kind: Kind) -> None:
    if int(value) > 0:
        result.settings["batch.size"] = value
    else:
        result.settings["batch.num.messages"] = "1"


def _linger(value: str, result: Translated, _kind: Kind) -> None:
    result.settings["linger.ms"] = value


def _request_timeout(value: str, result: Translated, kind: Kind) -> None:
    """librdkafka applies the timeout on the socket; for producers, also to how long brokers wait for replicas."""
    result.settings["socket.timeout.ms"] = str(max(10, int(value)))
    if kind == "producer":
        result.settings["request.timeout.ms"] = value


def _metadata_age(value: str, result: Translated, _kind: Kind) -> None:
    result.settings["topic.metadata.refresh.interval.ms"] = str(max(10, int(value)))
    result.settings["metadata.max.age.ms"] = value


def _offset_reset(value: str, result: Translated, _kind: Kind) -> None:
    policy = value.strip().lower()
    if policy.startswith("by_duration:"):
        result.own["auto.offset.reset"] = value.strip()
        policy = "latest"
    elif policy == "none":
        policy = "error"
    elif policy not in ("earliest", "latest", "error", "smallest", "largest", "beginning", "end"):
        raise InvalidConfigError(
            f"Invalid value {value} for configuration auto.offset.reset: "
            "must be earliest, latest, none or by_duration:<ISO-8601>"
        )
    result.settings["auto.offset.reset"] = policy


def _assignors(value: str, result: Translated, _kind: Kind) -> None:
    """Java lists several and the group agrees on one; librdkafka has no eager `sticky` and cannot mix both kinds."""
    names = [_ASSIGNORS.get(word.strip().rsplit(".", 1)[-1]) for word in value.split(",") if word.strip()]
    known = [name for name in names if name is not None]
    if len(known) < len(names):
        result.warnings.append(
            f"partition.assignment.strategy={value}: only range, roundrobin and cooperative-sticky exist"
        )
    eager = [name for name in known if name != "cooperative-sticky"]
    result.settings["partition.assignment.strategy"] = ",".join(eager or known or ["range"])


def _partitioner(value: str, result: Translated, _kind: Kind) -> None:
    name = value.strip().rsplit(".", 1)[-1]
    if name.lower() in (
        "consistent",
        "consistent_random",
        "murmur2",
        "murmur2_random",
        "random",
        "fnv1a",
        "fnv1a_random",
    ):
        result.settings["partitioner"] = name.lower()
    elif name in _PARTITIONERS:
        result.settings["partitioner"] = _PARTITIONERS[name]
        if name == "RoundRobinPartitioner":
            result.settings["sticky.partitioning.linger.ms"] = "0"
    else:
        result.warnings.append(
            f"partitioner.class={value} is a Java class and cannot run here; records follow the default"
        )


def _ignore_keys(value: str, result: Translated, _kind: Kind) -> None:
    if value.strip().lower() == "true":
        result.settings["partitioner"] = "random"


def _java_plugin(key: str) -> Callable[[str, Translated, Kind], None]:
    def drop(value: str, result: Translated, _kind: Kind) -> None:
        if value.strip():
            result.warnings.append(f"{key} names Java classes, which cannot run here; it is left out")

    return drop


_SPECIAL: Mapping[str, Callable[[str, Translated, Kind], None]] = {
    "buffer.memory": _buffer_memory,
    "batch.size": _batch_size,
    "linger.ms": _linger,
    "request.timeout.ms": _request_timeout,
    "metadata.max.age.ms": _metadata_age,
    "auto.offset.reset": _offset_reset,
    "partition.assignment.strategy": _assignors,
    "partitioner.class": _partitioner,
    "partitioner.ignore.keys": _ignore_keys,
    "interceptor.classes": _java_plugin("interceptor.classes"),
    "metric.reporters": _java_plugin("metric.reporters"),
    "security.providers": _java_plugin("security.providers"),
}
