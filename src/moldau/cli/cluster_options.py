"""The connection options that all admin tools share, old spellings included.

`--zookeeper` is from the time when tools connected to ZooKeeper: the registration point that `zookeeper-server-start`
runs returns the brokers. Start at `open_admin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.options import Option, Parsed, UsageError
from moldau.cli.tool import log_line
from moldau.client.connection import load_properties, normalize_servers

if TYPE_CHECKING:
    from moldau.client.admin import Admin

__all__ = [
    "BOOTSTRAP_SERVER",
    "BROKERS",
    "COMMAND_CONFIG",
    "CONSUMER_CONFIG",
    "PRODUCER_CONFIG",
    "ZOOKEEPER",
    "bootstrap_servers",
    "open_admin",
    "pairs",
    "report_client_log",
]

BOOTSTRAP_SERVER = Option(
    "bootstrap-server",
    "Where to reach the cluster: one or more brokers as host:port, with commas between.",
    "host:port",
)
BROKERS = Option(
    "bootstrap-server",
    "Where to reach the cluster: brokers as host:port, with commas between.",
    "host:port",
    aliases=("broker-list",),
    is_required=True,
)
"""The same option, required, for tools that formerly had `--broker-list`."""
COMMAND_CONFIG = Option("command-config", "A file of client properties, for example for TLS and SASL.", "file")
CONSUMER_CONFIG = Option("consumer.config", "A file of consumer properties.", "file", aliases=("command-config",))
PRODUCER_CONFIG = Option("producer.config", "A file of producer properties.", "file", aliases=("command-config",))
ZOOKEEPER = Option(
    "zookeeper",
    "From the ZooKeeper days: the host:port where brokers register, or of a broker. Output takes the old form.",
    "host:port",
)
CLIENT_LOG = "org.apache.kafka.clients.NetworkClient"


def bootstrap_servers(parsed: Parsed) -> str:
    """The cluster's address from `--bootstrap-server` or `--zookeeper`, checked and normalized."""
    if parsed.has("zookeeper") and not parsed.has("bootstrap-server"):
        from moldau.client.registration_point import brokers_behind

        return brokers_behind(",".join([parsed.value("zookeeper"), *parsed.words_after("zookeeper")]))
    if not parsed.has("bootstrap-server"):
        raise UsageError('Missing required argument "[bootstrap-server]"')
    return normalize_servers(",".join([parsed.value("bootstrap-server"), *parsed.words_after("bootstrap-server")]))


def open_admin(parsed: Parsed, *, timeout_ms: int | None = None) -> Admin:
    from moldau.client.admin import Admin

    properties: Mapping[str, str] = {}
    if "command-config" in parsed.options and parsed.has("command-config"):
        properties = load_properties(parsed.value("command-config"))
    return Admin(bootstrap_servers(parsed), properties, report=report_client_log, timeout_ms=timeout_ms)


def report_client_log(level: str, text: str) -> None:
    log_line(level, text, CLIENT_LOG)


def pairs(texts: list[str], *, what: str = "command line properties") -> dict[str, str]:
    """Parse `key=value` words; an empty value is allowed, a missing `=` is not."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"Invalid {what}: {text} (write key=value)")
        found[key.strip()] = value
    return found
