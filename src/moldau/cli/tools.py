"""All Kafka-style tools by name, used by `kafka-run-class` and the `moldau` command.

`pyproject.toml` installs the same commands, without and with `.sh`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

__all__ = ["TOOLS", "tool_main"]

Main = Callable[[Sequence[str] | None], int]

TOOLS = {
    "connect-distributed": "moldau.cli.connect.worker_start:connect_distributed",
    "connect-standalone": "moldau.cli.connect.worker_start:connect_standalone",
    "connect-stop": "moldau.cli.connect.stop:connect_stop",
    "kafka-acls": "moldau.cli.not_yet:acls",
    "kafka-avro-console-consumer": "moldau.cli.console.schema_tools:avro_consumer",
    "kafka-avro-console-producer": "moldau.cli.console.schema_tools:avro_producer",
    "kafka-broker-api-versions": "moldau.cli.cluster.api_versions:main",
    "kafka-cluster": "moldau.cli.cluster.command:main",
    "kafka-configs": "moldau.cli.configs.command:main",
    "kafka-console-consumer": "moldau.cli.console.consumer:main",
    "kafka-console-producer": "moldau.cli.console.producer:main",
    "kafka-consumer-groups": "moldau.cli.groups.command:main",
    "kafka-consumer-offset-checker": "moldau.cli.groups.offset_checker:main",
    "kafka-consumer-perf-test": "moldau.cli.perf.consumer:main",
    "kafka-delete-records": "moldau.cli.records.delete:main",
    "kafka-dump-log": "moldau.cli.dump_log.command:main",
    "kafka-e2e-latency": "moldau.cli.perf.latency:main",
    "kafka-features": "moldau.cli.cluster.features:main",
    "kafka-get-offsets": "moldau.cli.offsets.get:main",
    "kafka-groups": "moldau.cli.groups.every_type:main",
    "kafka-json-schema-console-consumer": "moldau.cli.console.schema_tools:json_schema_consumer",
    "kafka-json-schema-console-producer": "moldau.cli.console.schema_tools:json_schema_producer",
    "kafka-leader-election": "moldau.cli.replicas.leader_election:main",
    "kafka-log-dirs": "moldau.cli.log_dirs.describe:main",
    "kafka-metadata-quorum": "moldau.cli.cluster.metadata_quorum:main",
    "kafka-preferred-replica-election": "moldau.cli.replicas.leader_election:preferred_main",
    "kafka-producer-perf-test": "moldau.cli.perf.producer:main",
    "kafka-protobuf-console-consumer": "moldau.cli.console.schema_tools:protobuf_consumer",
    "kafka-protobuf-console-producer": "moldau.cli.console.schema_tools:protobuf_producer",
    "kafka-reassign-partitions": "moldau.cli.replicas.reassign:main",
    "kafka-replica-verification": "moldau.cli.replicas.verification:main",
    "kafka-replay-log-producer": "moldau.cli.replay.command:main",
    "kafka-run-class": "moldau.cli.run_class:main",
    "kafka-server-start": "moldau.cli.server.start:kafka_server_start",
    "kafka-server-stop": "moldau.cli.server.stop:kafka_server_stop",
    "kafka-storage": "moldau.cli.storage.command:main",
    "kafka-streams-application-reset": "moldau.cli.streams.application_reset:main",
    "kafka-topics": "moldau.cli.topics.command:main",
    "kafka-transactions": "moldau.cli.transactions.command:main",
    "kafka-verifiable-consumer": "moldau.cli.verifiable.consumer:main",
    "kafka-verifiable-producer": "moldau.cli.verifiable.producer:main",
    "schema-registry-start": "moldau.cli.registry.start:schema_registry_start",
    "schema-registry-stop": "moldau.cli.registry.stop:schema_registry_stop",
    "zookeeper-server-start": "moldau.cli.server.zookeeper:zookeeper_server_start",
    "zookeeper-server-stop": "moldau.cli.server.zookeeper:zookeeper_server_stop",
    "zookeeper-shell": "moldau.cli.server.zookeeper_shell:main",
}


def tool_main(name: str) -> Main:
    """Import only this tool and return its main function, so that the others cost no import time."""
    module, _, function = TOOLS[name].partition(":")
    main: Main = getattr(import_module(module), function)
    return main
