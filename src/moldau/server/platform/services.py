"""The services of the platform in starting order: names, ports, commands, health checks. Start at `SERVICES`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moldau.core.errors import StartupError
from moldau.server.config import LOOPBACK

__all__ = ["CONSOLE_PORT", "DEFAULT_PORTS", "METRICS_PORT", "SERVICES", "Layout", "Service", "chosen_services"]

CONSOLE_PORT = 9021
"""Reserved for the web console."""
METRICS_PORT = 9404
CONTROLLER_OFFSET = 10_000
"""How far above a broker's port its controller listens, where several brokers run."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the services of one platform listen and keep their files."""

    folder: Path
    host: str = LOOPBACK
    ports: Mapping[str, int]
    bootstrap_servers: str | None = None
    """A cluster that runs elsewhere; the platform then has no broker of its own."""
    brokers: int = 1
    """How many; those after the first have the ports after the first one's, and controllers are above them."""
    names: Sequence[str]
    """The services that run, in starting order."""
    log_format: str = "text"
    """How the lines of their logs look: text or json."""

    @property
    def servers(self) -> str:
        if self.bootstrap_servers is not None:
            return self.bootstrap_servers
        address, _, port = self.address_of("broker").rpartition(":")
        return ",".join(f"{address}:{int(port) + place}" for place in range(self.brokers))

    @property
    def further_ports(self) -> dict[str, int]:
        """The ports of the broker service besides its own, by what they are for."""
        first, metrics = self.ports["broker"], self.ports["metrics"]
        found = {"metrics": metrics}
        for place in range(self.brokers if self.brokers > 1 else 0):
            found[f"controller {place + 1}"] = first + CONTROLLER_OFFSET + place
            if place:
                found[f"broker {place + 1}"] = first + place
                found[f"metrics {place + 1}"] = metrics + place if metrics else 0
        return found

    def address_of(self, name: str) -> str:
        """Where clients on this machine reach a service."""
        host = LOOPBACK if self.host in ("0.0.0.0", "::") else self.host
        return f"[{host}]:{self.ports[name]}" if ":" in host else f"{host}:{self.ports[name]}"

    def url_of(self, name: str) -> str:
        return f"http://{self.address_of(name)}"

    def log_of(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    @property
    def engine_folder(self) -> Path:
        """The engine process that ksql and Connect share: one Spark driver for all pipelines."""
        return self.folder / "engine"

    def command_of(self, name: str) -> list[str]:
        """The command line of a service, the same that a person would type."""
        return [sys.executable, "-m", "moldau", *SERVICES[name].arguments(self), "--log-format", self.log_format]


@dataclass(frozen=True, kw_only=True)
class Service:
    title: str
    port: int
    """Its default port, the one that Kafka's users expect."""
    arguments: Callable[[Layout], list[str]]
    needs: tuple[str, ...] = ("broker",)
    """Services that it works with: it is stopped before them, and started when they run."""
    starts_at_once: bool = False
    """Whether it is started without waiting for those, because it waits for brokers by itself."""
    health_path: str | None = "/healthz"
    """None if a service speaks Kafka's protocol: then accepting connections is enough."""
    stop_s: float = 20.0
    """How long it may take to stop before it is killed."""


def _address(layout: Layout, name: str) -> list[str]:
    return ["--host", layout.host, "--port", str(layout.ports[name])]


def _brokers_and_schemas(layout: Layout) -> list[str]:
    registry = ["--schema-registry", layout.url_of("registry")] if "registry" in layout.names else []
    return ["--bootstrap-server", layout.servers, *registry]


def _broker(layout: Layout) -> list[str]:
    metrics = ["--override", f"metrics.http.port={layout.ports['metrics']}"]
    if layout.brokers > 1:
        metrics += ["--brokers", str(layout.brokers)]
    # As in the file that Kafka ships for one machine: the first member of a group need not wait for others.
    delay = ["--override", "group.initial.rebalance.delay.ms=0"]
    return ["server", *_address(layout, "broker"), "--data", str(layout.folder / "log"), *metrics, *delay]


def _registry(layout: Layout) -> list[str]:
    return ["registry", *_address(layout, "registry"), "--bootstrap-server", layout.servers]


def _rest(layout: Layout) -> list[str]:
    return ["rest", *_address(layout, "rest"), *_brokers_and_schemas(layout)]


def _state_and_engine(layout: Layout, name: str) -> list[str]:
    return ["--data", str(layout.folder / name), "--override", f"moldau.engine.dir={layout.engine_folder}"]


def _connect(layout: Layout) -> list[str]:
    brokers = ["--bootstrap-server", layout.servers]
    return ["connect", *_address(layout, "connect"), *brokers, *_state_and_engine(layout, "connect")]


def _ksql(layout: Layout) -> list[str]:
    connect = ["--override", f"ksql.connect.url={layout.url_of('connect')}"]
    state = _state_and_engine(layout, "ksql")
    return ["ksql-server", *_address(layout, "ksql"), *_brokers_and_schemas(layout), *state, *connect]


SERVICES: Mapping[str, Service] = {
    "broker": Service(title="broker", port=9092, arguments=_broker, needs=(), health_path=None, stop_s=60),
    "registry": Service(title="schema registry", port=8081, arguments=_registry, starts_at_once=True),
    "rest": Service(title="REST proxy", port=8082, arguments=_rest, needs=("broker", "registry"), starts_at_once=True),
    "connect": Service(title="Connect", port=8083, arguments=_connect, health_path="/health", stop_s=60),
    "ksql": Service(title="ksql", port=8088, arguments=_ksql, needs=("broker", "registry"), stop_s=60),
}
"""In starting order."""
DEFAULT_PORTS = {name: service.port for name, service in SERVICES.items()} | {"metrics": METRICS_PORT}


def chosen_services(words: Sequence[str], *, has_own_broker: bool) -> list[str]:
    """The services to run: those named, or all. Those named need a broker, so it is included."""
    unknown = [word for word in words if word not in SERVICES]
    if unknown:
        raise StartupError(f"there is no service {unknown[0]!r}; there are: {', '.join(SERVICES)}")
    if "broker" in words and not has_own_broker:
        raise StartupError("--bootstrap-server names a cluster that runs already; leave `broker` out, or the option")
    wanted = set(words or SERVICES) | {"broker"}
    return [name for name in SERVICES if name in wanted and (has_own_broker or name != "broker")]
