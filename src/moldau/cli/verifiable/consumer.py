"""kafka-verifiable-consumer: reads as a member of a group, and prints each event. Start at `Reader.run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import CONSUMER_CONFIG, report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import CLOSE_S, INTERRUPTED_S, ToolError, catch_stop_signals, log_line
from moldau.cli.verifiable.events import BROKERS, emit, run_verifiable
from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.waiting import GivenUpError, close_within, interruptible
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["Reader", "main", "summaries"]

SOURCE = "org.apache.kafka.tools.VerifiableConsumer"
POLL_S = 0.2
BATCH = 500
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"

PARSER = Parser(
    "Read a topic as a member of a group, and print rebalances, records and commits as JSON.",
    [
        Option("topic", "The topic to read.", "topic", is_required=True),
        Option("group-id", "The group to join.", "group", is_required=True),
        BROKERS,
        Option("max-messages", "How many to read; -1 to go on until stopped.", "number", int, -1),
        Option("session-timeout", "How long the group waits for a silent member.", "ms", int, 30_000),
        Option("verbose", "Print every record."),
        Option("enable-autocommit", "Commit now and then instead of after each batch."),
        Option("reset-policy", "Where to begin without offsets: earliest, latest or none.", "policy", str, "earliest"),
        Option("assignment-strategy", "How partitions are shared (classic protocol).", "class", str, RANGE),
        Option("group-instance-id", "Makes this a static member.", "id"),
        Option("group-protocol", "classic or consumer.", "protocol", str, "classic"),
        Option("group-remote-assignor", "The broker's assignor (consumer protocol).", "name"),
        CONSUMER_CONFIG,
    ],
    epilog="Example: kafka-verifiable-consumer --bootstrap-server localhost:9092 --topic t --group-id g",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_verifiable(PARSER, _run, sys.argv[1:] if argv is None else argv)


def _run(parsed: Parsed) -> int:
    reader = Reader(
        _properties(parsed),
        parsed.value("topic"),
        count=parsed.value("max-messages"),
        is_verbose=parsed.has("verbose"),
        commits=not parsed.has("enable-autocommit"),
    )
    catch_stop_signals(reader.stop)
    return reader.run()


def _properties(parsed: Parsed) -> dict[str, str]:
    protocol = parsed.value("group-protocol").lower()
    if protocol not in ("classic", "consumer"):
        raise UsageError(f"--group-protocol {parsed.value('group-protocol')}: must be classic or consumer")
    properties = load_properties(parsed.value("consumer.config")) if parsed.has("consumer.config") else {}
    properties |= {
        "group.id": parsed.value("group-id"),
        "group.protocol": protocol,
        "enable.auto.commit": "true" if parsed.has("enable-autocommit") else "false",
        "auto.offset.reset": parsed.value("reset-policy"),
        "bootstrap.servers": normalize_servers(parsed.value("bootstrap-server")),
    }
    if protocol == "classic":
        properties["partition.assignment.strategy"] = parsed.value("assignment-strategy")
        properties["session.timeout.ms"] = str(parsed.value("session-timeout"))
    elif parsed.has("group-remote-assignor"):
        properties["group.remote.assignor"] = parsed.value("group-remote-assignor")
    if parsed.has("group-instance-id"):
        properties["group.instance.id"] = parsed.value("group-instance-id")
    properties.setdefault("client.id", f"consumer-{properties['group.id']}-1")
    return properties


class Reader:
    """A group member that prints events, until it has read `count` records or is stopped."""

    def __init__(self, properties: dict[str, str], topic: str, *, count: int, is_verbose: bool, commits: bool) -> None:
        from confluent_kafka import Consumer

        title = f"Consumer clientId={properties['client.id']}, groupId={properties['group.id']}"
        self._consumer: Consumer
        self._consumer, _ = build(Consumer, "consumer", properties, report=report_client_log, title=title)
        self._topic = topic
        self._left = count if count >= 0 else None
        self._is_verbose = is_verbose
        self._commits = commits
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> int:
        emit("startup_complete")
        try:
            self._consumer.subscribe([self._topic], on_assign=_assigned, on_revoke=_revoked)
            while not self._stopped and self._left != 0:
                records = self._records()
                if records:
                    self._report(records)
            return 0
        except ToolError as error:
            log_line("ERROR", f"Error during processing, terminating consumer process: {error}", SOURCE)
            return 1
        finally:
            close_within(self._consumer, INTERRUPTED_S if self._stopped else CLOSE_S)
            emit("shutdown_complete")

    def _records(self) -> list[Any]:
        """The next batch, limited to the number of records still wanted."""
        wanted = BATCH if self._left is None else min(BATCH, self._left)
        records = []
        for message in self._consumer.consume(wanted, POLL_S):
            error = message.error()
            if error is None:
                records.append(message)
            elif error.fatal() or error.name() == "_AUTO_OFFSET_RESET":
                raise ToolError(error.str())
            else:
                log_line("WARN", error.str(), SOURCE)
        return records

    def _report(self, records: list[Any]) -> None:
        if self._is_verbose:
            for record in records:
                emit("record_data", **_data(record))
        found = summaries([TopicPartition(r.topic(), r.partition()) for r in records], [r.offset() for r in records])
        emit("records_consumed", count=len(records), partitions=found)
        if self._left is not None:
            self._left -= len(records)
        if self._commits:
            self._commit(
                {TopicPartition(entry["topic"], entry["partition"]): entry["maxOffset"] + 1 for entry in found}
            )

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka import TopicPartition as Position

        shown = [{"topic": p.topic, "partition": p.partition, "offset": offset} for p, offset in offsets.items()]
        try:
            positions = [Position(p.topic, p.partition, offset) for p, offset in offsets.items()]
            commit = partial(self._consumer.commit, offsets=positions, asynchronous=False)
            answer: Any = interruptible(commit, is_over=lambda: self._stopped)
            failed = next((position.error for position in answer or () if position.error is not None), None)
        except KafkaException as error:
            failed = error.args[0]
        except GivenUpError as error:
            emit("offsets_committed", offsets=shown, error=str(error), success=False)
            return
        if failed is None:
            emit("offsets_committed", offsets=shown, success=True)
        elif failed.fatal():
            raise ToolError(failed.str())
        else:
            emit("offsets_committed", offsets=shown, error=failed.str(), success=False)


def summaries(partitions: Sequence[TopicPartition], offsets: Sequence[int]) -> list[dict[str, Any]]:
    """The number of records of each partition, with the first and the last offset."""
    found: dict[TopicPartition, list[int]] = {}
    for partition, offset in zip(partitions, offsets, strict=True):
        found.setdefault(partition, []).append(offset)
    return [
        {**_place(partition), "count": len(seen), "minOffset": seen[0], "maxOffset": seen[-1]}
        for partition, seen in found.items()
    ]


def _place(partition: Any) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _data(record: Any) -> dict[str, Any]:
    key, value = (
        part.decode("utf-8", "replace") if part is not None else None for part in (record.key(), record.value())
    )
    place = {"topic": record.topic(), "partition": record.partition(), "offset": record.offset()}
    return {"key": key, "value": value, **place}


def _assigned(_consumer: Any, partitions: list[Any]) -> None:
    emit("partitions_assigned", partitions=[_place(partition) for partition in partitions])


def _revoked(_consumer: Any, partitions: list[Any]) -> None:
    emit("partitions_revoked", partitions=[_place(partition) for partition in partitions])


if __name__ == "__main__":
    sys.exit(main())
