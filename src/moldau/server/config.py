"""Sources of a node's settings: defaults for a laptop, a file, the environment, overrides.

For each key, the later source wins. `core.config` defines the keys; this module only collects their values, as text.
Start at `gather`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.core.config.listeners import Listener, parse_listeners
from moldau.core.config.providers import substitute_variables
from moldau.core.errors import StartupError
from moldau.core.properties import parse_properties

__all__ = [
    "LOOPBACK",
    "data_folder",
    "gather",
    "laptop_defaults",
    "load_file",
    "parse_overrides",
    "settings_from_environment",
    "with_address",
]

LOOPBACK = "127.0.0.1"

_PREFIX = "KAFKA_"

# Variables that Kafka's scripts and images read themselves: never settings of the broker.
_NOT_SETTINGS = frozenset(
    {
        "KAFKA_CLUSTERS_CONFIG",
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_CMD_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_MODE",
        "KAFKA_OPTS",
        "KAFKA_PATH",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_URI",
        "KAFKA_VERSION",
    }
)


def gather(
    *,
    defaults: Mapping[str, str],
    file: Path | None,
    environ: Mapping[str, str],
    overrides: Sequence[str],
) -> dict[str, str]:
    """Merge all sources into one mapping of Kafka's keys to text."""
    settings = dict(defaults)
    if file is not None:
        settings |= load_file(file)
    settings |= settings_from_environment(environ)
    settings |= parse_overrides(overrides)
    return substitute_variables(settings, environ)


def laptop_defaults(environ: Mapping[str, str], file: Path | None = None) -> dict[str, str]:
    """The defaults of `moldau server`: one node that is broker and controller, on port 9092.

    There is no authentication, so without a file only local clients can connect; with a file, Kafka's default
    applies: all interfaces. A ZooKeeper-mode file itself sets the broker id and where the broker registers.
    """
    given: Mapping[str, str] = {} if file is None else load_file(file)
    defaults = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{LOOPBACK if file is None else ''}:9092",
        "log.dirs": str(data_folder(environ)),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "metrics.http.port": "9404",
    }
    retired = {"broker.id": "node.id", "zookeeper.connect": "process.roles", "port": "listeners"}
    return {key: text for key, text in defaults.items() if key not in {retired.get(name) for name in given}}


def with_address(settings: Mapping[str, str], host: str | None, port: int | None) -> dict[str, str]:
    """The same settings listening on another host, another port, or both."""
    if host is None and port is None:
        return dict(settings)
    listeners = parse_listeners("listeners", (settings.get("listeners") or "PLAINTEXT://:9092").split(","))
    if port is not None:
        listeners = (Listener("PLAINTEXT", listeners[0].host, port),)
    if host is not None:
        listeners = tuple(one._replace(host=host.strip("[]")) for one in listeners)
    return {**settings, "listeners": ",".join(str(one) for one in listeners)}


def data_folder(environ: Mapping[str, str]) -> Path:
    """The per-user folder for the log if no log directory is configured."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/share")
    return Path(base) / "moldau" / "log"


def load_file(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text("utf-8"))
    except FileNotFoundError:
        raise StartupError(f"{path}: no such file; give the path of a properties file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"{path}: cannot be read as a properties file ({error})") from None


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """Split the `key=value` words of `--override`."""
    parsed = {}
    for word in overrides:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise StartupError(f"--override {word!r}: expected key=value, for example log.retention.hours=24")
        parsed[key.strip()] = value.strip()
    return parsed


def settings_from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings from variables: `KAFKA_LOG_RETENTION_HOURS` sets `log.retention.hours`, as in Kafka's images.

    `JMX_PORT`, with which operators enable a broker's metrics, sets `metrics.http.port`.
    """
    metrics = {"metrics.http.port": environ["JMX_PORT"]} if environ.get("JMX_PORT") else {}
    return metrics | {
        _key_of(name): value
        for name, value in environ.items()
        if name.startswith(_PREFIX) and name not in _NOT_SETTINGS and len(name) > len(_PREFIX)
    }


def _key_of(name: str) -> str:
    """The key of a variable: `_` stands for a dot, `__` for an underscore, `___` for a dash."""
    text = name[len(_PREFIX) :].lower()
    return text.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
