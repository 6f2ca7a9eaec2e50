"""`connect-distributed` and `connect-standalone`: run a Connect worker in the foreground.

Start at `connect_distributed` and `connect_standalone`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moldau.cli.server.background import start_in_background
from moldau.cli.server.starting import HELP_WORDS, daemon_and_rest, fail, overrides_in
from moldau.connect.worker.settings import WorkerSettings
from moldau.core.errors import InvalidConfigError, MoldauError
from moldau.server.config import load_file, parse_overrides

__all__ = [
    "DISTRIBUTED_DEFAULTS",
    "ROLE",
    "STANDALONE_DEFAULTS",
    "connect_distributed",
    "connect_standalone",
    "load_connector",
    "run_worker",
]

ROLE = "connect"
STANDALONE_DEFAULTS: Mapping[str, str] = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.file.filename": "/tmp/connect.offsets",
    "offset.flush.interval.ms": "10000",
}
"""What Kafka's sample file of a standalone worker says."""
DISTRIBUTED_DEFAULTS: Mapping[str, str] = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
}
"""What Kafka's sample file of a distributed worker says."""

_DISTRIBUTED_USAGE = """\
USAGE: connect-distributed [-daemon] connect-distributed.properties [--override property=value]*

Runs a Connect worker. Workers with the same group.id share connectors and tasks; connectors are made over the REST API,
on port 8083 of this machine unless listeners says otherwise. SIGTERM ends it."""
_STANDALONE_USAGE = """\
USAGE: connect-standalone [-daemon] [connect-standalone.properties] connector1.properties [connector2.properties ...]

Runs a Connect worker alone, with the connectors of the files (.properties or .json). If the first file has a
connector.class, it is a connector, and the worker has default settings."""


def connect_distributed(arguments: Sequence[str] | None = None) -> int:
    """Run a worker of a cluster."""
    in_background, words = daemon_and_rest(arguments)
    if not words or words[0] in HELP_WORDS:
        print(_DISTRIBUTED_USAGE, file=sys.stdout if words else sys.stderr)
        return 0 if words else 1
    if in_background:
        return start_in_background("moldau.cli.connect.distributed", words, "connectDistributed.out")
    try:
        given = load_file(Path(words[0])) | parse_overrides(overrides_in(words[1:]))
        return run_worker(WorkerSettings.of(given, standalone=False))
    except MoldauError as error:
        return fail(error)


def connect_standalone(arguments: Sequence[str] | None = None) -> int:
    """Run a worker alone, with the connectors of files."""
    in_background, words = daemon_and_rest(arguments)
    if not words or words[0] in HELP_WORDS:
        print(_STANDALONE_USAGE, file=sys.stdout if words else sys.stderr)
        return 0 if words else 1
    if in_background:
        return start_in_background("moldau.cli.connect.standalone", words, "connectStandalone.out")
    try:
        files = [word for word in words if not word.startswith("-") and "=" not in Path(word).name]
        overrides = parse_overrides(overrides_in([word for word in words if word not in files]))
        worker, connectors = standalone_files(files)
        return run_worker(WorkerSettings.of({**worker, **overrides}, standalone=True), connectors)
    except MoldauError as error:
        return fail(error)


def standalone_files(files: Sequence[str]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The worker's settings and the connectors' configurations."""
    first = load_connector(Path(files[0])) if files[0].endswith(".json") else load_file(Path(files[0]))
    if "connector.class" in first:
        return dict(STANDALONE_DEFAULTS), [first, *(load_connector(Path(one)) for one in files[1:])]
    worker = {**first}
    worker.setdefault("offset.storage.file.filename", STANDALONE_DEFAULTS["offset.storage.file.filename"])
    return worker, [load_connector(Path(one)) for one in files[1:]]


def load_connector(path: Path) -> dict[str, str]:
    """A connector's configuration: properties, or JSON as for the REST API, flat or with name and config."""
    if path.suffix != ".json":
        return load_file(path)
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise InvalidConfigError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidConfigError(f"{path}: a connector is a JSON object of settings")
    config: dict[str, Any] = document
    if isinstance(document.get("config"), dict):
        config = {"name": document.get("name", ""), **document["config"]}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in config.items()}


def run_worker(
    settings: WorkerSettings, connectors: Sequence[Mapping[str, str]] = (), *, log_format: str = "text"
) -> int:
    """Run until SIGTERM; returns the exit status."""
    from moldau.server.services.connect import connect_instance
    from moldau.server.services.run import run_services

    for warning in settings.warnings:
        print(f"moldau: {warning}", file=sys.stderr)
    return run_services(lambda: [connect_instance(settings, connectors)], roles=(ROLE,), log_format=log_format)
