"""kafka-run-class: runs a tool by the name of the Java class that implements it in Kafka.

Tools of Kafka 0.8 whose options have changed, or that no longer exist, are in `cli.old_classes`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.tools import tool_main

__all__ = ["CLASSES", "main"]

CLASSES = {
    "kafka.Kafka": "kafka-server-start",
    "kafka.admin.BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "kafka.admin.ConfigCommand": "kafka-configs",
    "kafka.admin.ConsumerGroupCommand": "kafka-consumer-groups",
    "kafka.admin.DeleteRecordsCommand": "kafka-delete-records",
    "kafka.admin.FeatureCommand": "kafka-features",
    "kafka.admin.LeaderElectionCommand": "kafka-leader-election",
    "kafka.admin.LogDirsCommand": "kafka-log-dirs",
    "kafka.admin.MetadataQuorumCommand": "kafka-metadata-quorum",
    "kafka.admin.PreferredReplicaLeaderElectionCommand": "kafka-preferred-replica-election",
    "kafka.admin.ReassignPartitionsCommand": "kafka-reassign-partitions",
    "kafka.admin.TopicCommand": "kafka-topics",
    "kafka.consumer.ConsoleConsumer": "kafka-console-consumer",
    "kafka.producer.ConsoleProducer": "kafka-console-producer",
    "kafka.tools.ClusterTool": "kafka-cluster",
    "kafka.tools.ConsoleConsumer": "kafka-console-consumer",
    "kafka.tools.ConsoleProducer": "kafka-console-producer",
    "kafka.tools.ConsumerOffsetChecker": "kafka-consumer-offset-checker",
    "kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test",
    "kafka.tools.DumpLogSegments": "kafka-dump-log",
    "kafka.tools.EndToEndLatency": "kafka-e2e-latency",
    "kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "kafka.tools.ReplayLogProducer": "kafka-replay-log-producer",
    "kafka.tools.ReplicaVerificationTool": "kafka-replica-verification",
    "kafka.tools.StorageTool": "kafka-storage",
    "kafka.tools.StreamsResetter": "kafka-streams-application-reset",
    "org.apache.kafka.clients.tools.ProducerPerformance": "kafka-producer-perf-test",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "org.apache.kafka.tools.ClusterTool": "kafka-cluster",
    "org.apache.kafka.tools.ConfigCommand": "kafka-configs",
    "org.apache.kafka.tools.ConsoleProducer": "kafka-console-producer",
    "org.apache.kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test",
    "org.apache.kafka.tools.DeleteRecordsCommand": "kafka-delete-records",
    "org.apache.kafka.tools.DumpLogSegments": "kafka-dump-log",
    "org.apache.kafka.tools.EndToEndLatency": "kafka-e2e-latency",
    "org.apache.kafka.tools.FeatureCommand": "kafka-features",
    "org.apache.kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "org.apache.kafka.tools.GroupsCommand": "kafka-groups",
    "org.apache.kafka.tools.LeaderElectionCommand": "kafka-leader-election",
    "org.apache.kafka.tools.LogDirsCommand": "kafka-log-dirs",
    "org.apache.kafka.tools.MetadataQuorumCommand": "kafka-metadata-quorum",
    "org.apache.kafka.tools.ProducerPerformance": "kafka-producer-perf-test",
    "org.apache.kafka.tools.ReplicaVerificationTool": "kafka-replica-verification",
    "org.apache.kafka.tools.StorageTool": "kafka-storage",
    "org.apache.kafka.tools.StreamsResetter": "kafka-streams-application-reset",
    "org.apache.kafka.tools.TopicCommand": "kafka-topics",
    "org.apache.kafka.tools.TransactionsCommand": "kafka-transactions",
    "org.apache.kafka.tools.VerifiableConsumer": "kafka-verifiable-consumer",
    "org.apache.kafka.tools.VerifiableProducer": "kafka-verifiable-producer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer": "kafka-console-consumer",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": "kafka-consumer-groups",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommand": "kafka-reassign-partitions",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain": "zookeeper-server-start",
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    # Kafka's script accepts JVM options before the class.
    while words and words[0] in ("-daemon", "-loggc", "-name"):
        words = words[2:] if words[0] == "-name" else words[1:]
    if not words:
        print("USAGE: kafka-run-class [-daemon] [-name servicename] [-loggc] classname [opts]", file=sys.stderr)
        return 1
    class_name, arguments = words[0], words[1:]
    # A Scala object's class ends in a dollar sign.
    known_as = class_name.removesuffix("$")
    tool = CLASSES.get(known_as)
    return tool_main(tool)(arguments) if tool is not None else _run_old(known_as, class_name, arguments)


def _run_old(known_as: str, class_name: str, arguments: Sequence[str]) -> int:
    from moldau.cli.old_classes import REPLACED, SUCCESSORS

    successor = SUCCESSORS.get(known_as)
    if successor is not None:
        return successor.main(arguments)
    advice = REPLACED.get(known_as)
    if advice is not None:
        print(f"{class_name} is not here: {advice}", file=sys.stderr)
        return 1
    print(f"Error: Could not find or load main class {class_name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
