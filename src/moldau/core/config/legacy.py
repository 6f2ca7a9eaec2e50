"""Configuration files of older Kafka releases: what their settings mean here.

A file with `zookeeper.connect` and no `process.roles` describes a broker of a ZooKeeper cluster; its addresses are used
as those of the controller quorum, and `zookeeper.connection.timeout.ms` as the time the broker tries to register
there. Other retired keys are translated if they have an equivalent and warned about if not. Start at
`modernise_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["modernise_settings"]

RETIRED_KEYS = frozenset(
    {
        "inter.broker.protocol.version",
        "log.message.format.version",
        "message.format.version",
        "log.message.timestamp.difference.max.ms",
        "log.message.downconversion.enable",
        "control.plane.listener.name",
        "quota.producer.default",
        "quota.consumer.default",
        "offsets.commit.required.acks",
        "zookeeper.sync.time.ms",
        "zookeeper.set.acl",
        "zookeeper.max.in.flight.requests",
    }
)
RETIRED_PREFIXES = ("password.encoder.", "zookeeper.ssl.", "zookeeper.clientCnxnSocket")
JAVA_PLUGINS = (
    "metric.reporters",
    "kafka.metrics.reporters",
    "client.quota.callback.class",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
)
DEFAULT_CONNECTION_TIMEOUT_MS = "18000"
ZOOKEEPER_PORT = 2181
ADDRESS_KEYS = ("host.name", "port", "advertised.host.name", "advertised.port")


def modernise_settings(static: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the settings as current keys, and warnings about the changes for the operator."""
    settings, warnings = dict(static), list[str]()
    _listeners_from_addresses(settings, warnings)
    _quorum_from_zookeeper(settings)
    for key in [key for key in settings if key in RETIRED_KEYS or key.startswith(RETIRED_PREFIXES)]:
        del settings[key]
        warnings.append(f"{key} has no effect")
    if settings.get("log.cleaner.enable", "true").strip().lower() == "false":
        warnings.append("log.cleaner.enable=false has no effect: the cleaner always runs")
    warnings += [f"{key} names Java classes and has no effect" for key in JAVA_PLUGINS if settings.get(key)]
    if settings.get("authorizer.class.name"):
        warnings.append("authorizer.class.name has no effect yet: everybody may do everything")
    return settings, warnings


def _listeners_from_addresses(settings: dict[str, str], warnings: list[str]) -> None:
    found = {key: settings.pop(key).strip() for key in ADDRESS_KEYS if key in settings}
    if not found:
        return
    warnings += [f"{key} is an old key; use listeners and advertised.listeners" for key in found]
    host, port = found.get("host.name", ""), found.get("port", "9092")
    if "host.name" in found or "port" in found:
        settings.setdefault("listeners", f"PLAINTEXT://{host}:{port}")
    if "advertised.host.name" in found or "advertised.port" in found:
        advertised_host, advertised_port = found.get("advertised.host.name", host), found.get("advertised.port", port)
        settings.setdefault("advertised.listeners", f"PLAINTEXT://{advertised_host}:{advertised_port}")


def _quorum_from_zookeeper(settings: dict[str, str]) -> None:
    session_timeout = settings.pop("zookeeper.session.timeout.ms", None)
    connection_timeout = settings.pop("zookeeper.connection.timeout.ms", None)
    connect = settings.pop("zookeeper.connect", None)
    if connect is None or "process.roles" in settings:
        return
    servers, _, _chroot = connect.partition("/")
    settings["process.roles"] = "broker"
    if settings.get("broker.id", "").strip() == "-1":
        # -1 asks for a generated id, as leaving it out does.
        del settings["broker.id"]
    settings.setdefault("controller.quorum.bootstrap.servers", ",".join(_with_port(one) for one in servers.split(",")))
    settings.setdefault("controller.listener.names", "CONTROLLER")
    if session_timeout is not None:
        settings.setdefault("broker.session.timeout.ms", session_timeout)
    patience_ms = connection_timeout or session_timeout or DEFAULT_CONNECTION_TIMEOUT_MS
    settings.setdefault("initial.broker.registration.timeout.ms", patience_ms)


def _with_port(server: str) -> str:
    server = server.strip()
    return server if not server or ":" in server else f"{server}:{ZOOKEEPER_PORT}"
