"""The broker a suite runs on: moldau or Apache Kafka, started the same way, with the scripts that belong to it.

Suites that others wrote look for Kafka's scripts under `KAFKA_PATH/bin`; here they find moldau's own commands, or
Apache Kafka's classes behind the same names. Start at `running`.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.free_ports import free_port
from tests.oracle.apache_kafka import QUICK_START, ApacheKafka, libs

from moldau.testing import Broker

__all__ = ["AUTHORIZER", "KINDS", "VERSIONS", "Endpoint", "cache_folder", "running"]

KINDS = ("moldau", "kafka")
VERSIONS = {"moldau": "4.2.0", "kafka": "4.3.1"}
"""What the suites are told they are talking to: the Kafka whose APIs moldau announces, and the one that runs."""

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""For suites that try ACLs on a broker without authentication."""

CLASSES = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}


@dataclass(frozen=True)
class Endpoint:
    """A started broker, as a suite needs to know it."""

    kind: str
    bootstrap: str
    log_dir: Path
    """Where its partitions are on disk."""
    kafka_path: Path
    """A folder in the shape of a Kafka installation: `bin/` with scripts, `libs/` with Java's client if it is there."""

    @property
    def version(self) -> str:
        return VERSIONS[self.kind]


def cache_folder(name: str) -> Path:
    """A folder for what was fetched, outside the work tree."""
    return Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau") / name


@contextmanager
def running(kind: str, properties: Mapping[str, str]) -> Iterator[Endpoint]:
    """Start a broker with these settings on a free port; it and its data are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="compat-") as folder:
        kafka_path = Path(folder) / "kafka"
        if kind == "kafka":
            with ApacheKafka(properties=properties) as kafka:
                _install(kafka_path, _java_scripts())
                yield Endpoint(kind, kafka.bootstrap, kafka.log_dir, kafka_path)
        else:
            # A client may ask where the address came from: from a setting, as on Apache Kafka.
            address = f"PLAINTEXT://127.0.0.1:{free_port()}"
            with Broker({"listeners": address, "advertised.listeners": address, **properties}) as broker:
                _install(kafka_path, _moldau_scripts())
                yield Endpoint(kind, broker.bootstrap_servers, broker.data, kafka_path)


def _install(folder: Path, scripts: Mapping[str, str]) -> None:
    (folder / "bin").mkdir(parents=True)
    for name, command in {**scripts, "kafka-run-class.sh": _run_class()}.items():
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
    (folder / "libs").symlink_to(libs())


def _java_scripts() -> dict[str, str]:
    return {name: f"{_run_class()} {java_class}" for name, java_class in CLASSES.items()}


def _moldau_scripts() -> dict[str, str]:
    commands = Path(sys.executable).parent
    return {name: shlex.quote(str(commands / name)) for name in CLASSES}


def _run_class() -> str:
    return f'java {" ".join(QUICK_START)} -cp "$CLASSPATH:{libs()}/*"'
