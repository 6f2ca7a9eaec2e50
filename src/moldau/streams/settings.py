"""The settings of one application, read and checked once. Keys are those of Kafka's `StreamsConfig`.

`settings_keys` describes each key; keys that affect the processing of records are read by `pipeline.cores.settings`.
Start at `StreamsSettings.of`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from moldau.client.connection import normalize_servers
from moldau.core.errors import InvalidConfigError
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.rewrites.optimizing import SETTING, optimizations
from moldau.streams.settings_keys import ACTED_ON, IDLE, advice_about, is_client_key

__all__ = ["Guarantee", "Latency", "StreamsSettings", "default_state_dir"]

DEFAULT_BATCH_RECORDS = 500_000
_PREFIXES = ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin.", "topic.")
_LEGAL_ID = re.compile(r"[a-zA-Z0-9._-]{1,200}")

Choice = TypeVar("Choice", bound=Enum)

logger = logging.getLogger("moldau.streams")


class Guarantee(Enum):
    """The processing guarantee: how often a record takes effect if there are failures."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once_v2"


class Latency(Enum):
    """The execution mode: micro-batches, or Spark's real-time mode for topologies that support it."""

    BATCH = "batch"
    REALTIME = "realtime"


def default_state_dir() -> str:
    """The default of `state.dir`: a folder that survives reboots, because state is kept nowhere else."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return str(Path(base) / "moldau" / "streams")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsSettings:
    """The settings of one application; `given` is the original config."""

    application_id: str
    bootstrap_servers: str
    guarantee: Guarantee
    latency: Latency
    state_dir: str
    commit_interval_ms: int | None
    threads: int | None
    max_batch_records: int
    fails_on_data_loss: bool
    offset_reset: OffsetReset
    application_server: tuple[str, int] | None
    dead_letter_topic: str | None
    replication_factor: int
    given: Mapping[str, Any]
    spark: Mapping[str, str]
    clients: Mapping[str, str]
    """Properties of all Kafka clients, such as security and timeouts."""
    prefixed: Mapping[str, Mapping[str, str]]
    """Properties of one kind of client, by prefix without the dot: `consumer`, `producer`, `admin`."""

    @classmethod
    def of(cls, config: Mapping[str, Any], warn: Callable[[str], None] = logger.warning) -> StreamsSettings:
        """The settings of a config; raises `InvalidConfigError`. `warn` is called for each key without effect."""
        if not isinstance(config, Mapping):
            raise InvalidConfigError(
                "settings are a dict, such as {'application.id': 'visits', 'bootstrap.servers': 'localhost:9092'}, "
                f"not {type(config).__name__}"
            )
        for key in config:
            if problem := _problem_with(key):
                warn(problem)
        _check_optimization(config)
        return cls(
            application_id=_application_id(config),
            bootstrap_servers=normalize_servers(_server_list(config.get("bootstrap.servers"))),
            guarantee=_guarantee(config.get("processing.guarantee", Guarantee.AT_LEAST_ONCE.value), warn),
            latency=_latency(config.get("moldau.latency", Latency.BATCH.value)),
            state_dir=str(config.get("state.dir") or default_state_dir()),
            commit_interval_ms=_number(config, "commit.interval.ms", None, least=0),
            threads=_number(config, "num.stream.threads", None, least=1),
            max_batch_records=_number(config, "moldau.batch.max.records", DEFAULT_BATCH_RECORDS, least=1)
            or DEFAULT_BATCH_RECORDS,
            fails_on_data_loss=_flag(config, "moldau.fail.on.data.loss", default=True),
            offset_reset=_offset_reset(config),
            application_server=_server(config.get("application.server")),
            dead_letter_topic=config.get("errors.dead.letter.queue.topic.name") or None,
            replication_factor=_number(config, "replication.factor", -1, least=-1) or -1,
            given=dict(config),
            spark={key: _text(value) for key, value in config.items() if key.startswith("spark.")},
            clients={key: _text(value) for key, value in config.items() if is_client_key(key)},
            prefixed=_settings_by_prefix(config),
        )

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    def client_properties(self, kind: str) -> dict[str, str]:
        """Java properties of this kind of client, without the servers and the properties that the runtime sets."""
        common = {"client.id": str(self.given.get("client.id") or self.application_id)}
        own: dict[str, str] = {}
        for prefix in ("consumer", "main.consumer") if kind == "consumer" else (kind,):
            own |= self.prefixed.get(prefix, {})
        properties = {**common, **self.clients, **own}
        properties.pop("bootstrap.servers", None)
        return properties


def _problem_with(key: str) -> str | None:
    if key in ACTED_ON or key.startswith("spark.") or is_client_key(key) or key.startswith(_PREFIXES):
        return None
    return f"{key} has no effect here: {IDLE[key]}" if key in IDLE else advice_about(key)


def _application_id(config: Mapping[str, Any]) -> str:
    given = config.get("application.id")
    if not given:
        raise InvalidConfigError("application.id is missing: it names the consumer group and the state of a pipeline")
    if not isinstance(given, str) or not _LEGAL_ID.fullmatch(given) or given in (".", ".."):
        raise InvalidConfigError(
            f"application.id: {given!r} must be letters, digits, '.', '_' and '-', at most 200 of them"
        )
    return given


def _guarantee(given: Any, warn: Callable[[str], None]) -> Guarantee:
    if isinstance(given, Guarantee):
        return given
    if given in ("exactly_once", "exactly_once_beta"):
        warn(f"processing.guarantee={given} is now called exactly_once_v2")
        return Guarantee.EXACTLY_ONCE
    return _choice("processing.guarantee", Guarantee, given)


def _latency(given: Any) -> Latency:
    return _choice("moldau.latency", Latency, given)


def _check_optimization(config: Mapping[str, Any]) -> None:
    """Raise `InvalidConfigError` for an invalid value; it has no effect here, as the topology is already built."""
    try:
        optimizations(config.get(SETTING))
    except TopologyError as error:
        raise InvalidConfigError(str(error)) from None


def _choice(key: str, kind: type[Choice], given: object) -> Choice:
    try:
        return kind(given)
    except ValueError:
        known = " or ".join(str(one.value) for one in kind)
        raise InvalidConfigError(f"{key}: {given!r} is not {known}") from None


def _offset_reset(config: Mapping[str, Any]) -> OffsetReset:
    for prefix in ("main.consumer.", "consumer.", ""):
        if (given := config.get(f"{prefix}auto.offset.reset")) is not None:
            return _choice("auto.offset.reset", OffsetReset, str(getattr(given, "value", given)).lower())
    return OffsetReset.EARLIEST


def _number(config: Mapping[str, Any], key: str, default: int | None, *, least: int) -> int | None:
    given = config.get(key)
    if given is None:
        return default
    try:
        number = int(str(given))
    except ValueError:
        raise InvalidConfigError(f"{key}: {given!r} is not a whole number") from None
    if number < least:
        raise InvalidConfigError(f"{key}: {number} is less than {least}")
    return number


def _flag(config: Mapping[str, Any], key: str, *, default: bool) -> bool:
    given = config.get(key, default)
    if isinstance(given, bool):
        return given
    if str(given).lower() not in ("true", "false"):
        raise InvalidConfigError(f"{key}: {given!r} is not true or false")
    return str(given).lower() == "true"


def _server(given: Any) -> tuple[str, int] | None:
    if not given:
        return None
    host, colon, port = str(given).rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise InvalidConfigError(f"application.server: {given!r} is not host:port, for example localhost:7070")
    return host.strip("[]"), int(port)


def _server_list(servers: Any) -> str:
    if servers is None:
        raise InvalidConfigError("bootstrap.servers is missing: write host:port, for example localhost:9092")
    return servers if isinstance(servers, str) else ",".join(map(str, servers))


def _settings_by_prefix(config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, value in config.items():
        prefix = next((one for one in _PREFIXES if key.startswith(one)), None)
        if prefix is not None:
            found.setdefault(prefix.rstrip("."), {})[key.removeprefix(prefix)] = _text(value)
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
