"""kafka-reassign-partitions: propose, start, watch and cancel moves of partitions. Start at `main`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.replicas.json_files import Assignment, assignment_json, assignments_in, topics_in
from moldau.cli.replicas.plan import spread
from moldau.cli.tool import ToolError, run, say
from moldau.client.errors import ClientError
from moldau.client.replica_admin import alter_reassignments
from moldau.client.wire_admin import describe_log_dirs, list_reassignments
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin, TopicDescription

__all__ = ["main"]

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
BROKER_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
TOPIC_LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

_PARSER = Parser(
    "Move partitions to other brokers, or change how many replicas they have.",
    [
        BOOTSTRAP_SERVER,
        ZOOKEEPER,
        COMMAND_CONFIG,
        Option("generate", "Propose an assignment of topics to brokers; nothing is changed."),
        Option("execute", "Begin the moves of --reassignment-json-file."),
        Option("verify", "Say how far those moves are, and lift throttles when they are done."),
        Option("cancel", "Stop those moves; what was there stays."),
        Option("list", "Show all moves under way."),
        Option("topics-to-move-json-file", 'For --generate: {"version": 1, "topics": [{"topic": "t"}]}.', "file"),
        Option("broker-list", "For --generate: the brokers to use, as 0,1,2.", "ids"),
        Option("disable-rack-aware", "For --generate: pass over racks."),
        Option(
            "reassignment-json-file",
            'The moves: {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}.',
            "file",
        ),
        Option("throttle", "At most so many bytes a second between brokers for these moves.", "bytes", int, default=-1),
        Option(
            "replica-alter-log-dirs-throttle", "The same between the folders of a broker.", "bytes", int, default=-1
        ),
        Option("additional", "Add to moves that are under way."),
        Option("disallow-replication-factor-change", "Refuse moves that change how many replicas there are."),
        Option("preserve-throttles", "Leave throttles as they are."),
        Option("timeout", "Accepted for compatibility.", "ms", int, is_hidden=True),
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(_PARSER, _run, argv)


def _run(parsed: Parsed) -> int:
    action = parsed.exactly_one(
        ACTIONS, f"Command must include exactly one action: {', '.join(f'--{one}' for one in sorted(ACTIONS))}"
    )
    if action == "generate":
        parsed.require("topics-to-move-json-file", "broker-list")
        _generate(parsed)
        return 0
    if action == "list":
        return _list(open_admin(parsed))
    parsed.require("reassignment-json-file")
    targets = assignments_in(parsed.value("reassignment-json-file"))
    return {"execute": _execute, "verify": _verify, "cancel": _cancel}[action](parsed, targets)


# Proposing


def _generate(parsed: Parsed) -> None:
    admin, names = open_admin(parsed), topics_in(parsed.value("topics-to-move-json-file"))
    wanted = _ids(parsed.value("broker-list"))
    nodes = {node.id: node for node in admin.describe_cluster().nodes}
    missing = [one for one in wanted if one not in nodes]
    if missing:
        raise ToolError(f"Unknown broker id(s) {', '.join(map(str, missing))}: they are not running")
    racks = {one: None if parsed.has("disable-rack-aware") else nodes[one].rack for one in wanted}
    if len({rack is None for rack in racks.values()}) > 1:
        raise ToolError("Not all brokers have rack information. Add --disable-rack-aware to pass over racks")
    topics = admin.describe_topics(names)
    current = _assignment_of(topics)
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in topics:
        try:
            lists = spread(len(topic.partitions), topic.replication_factor, racks)
        except ValueError as error:
            raise ToolError(f"{topic.name}: {error}") from None
        numbers = sorted(one.partition for one in topic.partitions)
        proposed |= {TopicPartition(topic.name, number): one for number, one in zip(numbers, lists, strict=True)}
    say(f"Current partition replica assignment\n{assignment_json(current, _folders(admin, current))}\n")
    say(f"Proposed partition reassignment configuration\n{assignment_json(proposed)}")


def _ids(text: str) -> list[int]:
    try:
        found = [int(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(f"--broker-list {text}: write the brokers' ids with commas between, as 0,1,2") from None
    if len(set(found)) != len(found):
        raise ToolError(f"Broker list contains duplicate entries: {text}")
    return found


def _assignment_of(topics: Iterable[TopicDescription]) -> dict[TopicPartition, Sequence[int]]:
    return {TopicPartition(one.name, each.partition): each.replicas for one in topics for each in one.partitions}


def _folders(admin: Admin, assignment: Assignment) -> dict[tuple[TopicPartition, int], str]:
    """The log directory of each replica on a broker that answers."""
    found: dict[tuple[TopicPartition, int], str] = {}
    for broker in {one for replicas in assignment.values() for one in replicas}:
        try:
            with admin.wire(broker) as client:
                for folder in describe_log_dirs(client):
                    found |= {(one.partition, broker): folder.path for one in folder.replicas}
        except ClientError:
            continue
    return found


def _current(admin: Admin, targets: Collection[TopicPartition]) -> dict[TopicPartition, Sequence[int]]:
    """The replicas of these partitions as they are."""
    known = _assignment_of(admin.describe_topics(sorted({one.topic for one in targets})))
    missing = sorted(one for one in targets if one not in known)
    if missing:
        raise ToolError(f"Unable to find partition {missing[0]}")
    return {one: known[one] for one in targets}


# Moving


def _execute(parsed: Parsed, targets: Assignment) -> int:
    admin = open_admin(parsed)
    alive = {node.id for node in admin.describe_cluster().nodes}
    unknown = sorted({one for replicas in targets.values() for one in replicas} - alive)
    if unknown:
        raise ToolError(f"Unknown broker id(s) {', '.join(map(str, unknown))}: they are not running")
    current = _current(admin, targets)
    with admin.wire() as client:
        moving = list_reassignments(client)
        if moving and not parsed.has("additional"):
            raise ToolError(
                "Cannot execute because there is an existing partition assignment. Use --additional to override this "
                "and create a new partition assignment in addition to the existing one. The --additional option can "
                "also be used to change the throttle by resubmitting the current reassignment."
            )
        say(f"Current partition replica assignment\n\n{assignment_json(current, _folders(admin, current))}\n")
        say("Save this to use as the --reassignment-json-file option during rollback")
        _throttle(parsed, admin, current, targets)
        failures = alter_reassignments(
            client, targets, may_change_factor=not parsed.has("disallow-replication-factor-change")
        )
    failed = {one: failure for one, failure in failures.items() if failure is not None}
    if failed:
        listed = "\n".join(f"{one}: {failure}" for one, failure in sorted(failed.items()))
        raise ToolError(f"Error reassigning partition(s):\n{listed}")
    say(f"Successfully started partition reassignment{_s(targets)} for {_joined(targets)}")
    return 0


def _throttle(parsed: Parsed, admin: Admin, current: Assignment, targets: Assignment) -> None:
    between, within = parsed.value("throttle"), parsed.value("replica-alter-log-dirs-throttle")
    if between < 0 and within < 0:
        return
    say(
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
        "is removed."
    )
    brokers = sorted({one for each in (current, targets) for replicas in each.values() for one in replicas})
    if between >= 0:
        for topic in sorted({one.topic for one in targets}):
            admin.alter_configs("topic", topic, add=_throttled_replicas(topic, current, targets))
        for broker in brokers:
            admin.alter_configs("broker", str(broker), add=dict.fromkeys(BROKER_RATES, str(between)))
        say(f"The inter-broker throttle limit was set to {between} B/s")
    if within >= 0:
        for broker in brokers:
            admin.alter_configs("broker", str(broker), add={DIRECTORY_RATE: str(within)})
        say(f"The replica-alter-dir throttle limit was set to {within} B/s")


def _throttled_replicas(topic: str, current: Assignment, targets: Assignment) -> dict[str, str]:
    """Who sends is who has the partition, who receives is who is added."""
    mine = sorted(one for one in targets if one.topic == topic)
    senders = [f"{one.partition}:{broker}" for one in mine for broker in current[one]]
    receivers = [f"{one.partition}:{broker}" for one in mine for broker in targets[one] if broker not in current[one]]
    return dict(zip(TOPIC_LISTS, (",".join(senders), ",".join(receivers)), strict=True))


def _verify(parsed: Parsed, targets: Assignment) -> int:
    admin = open_admin(parsed)
    known = _assignment_of(admin.describe_topics([one for one in admin.topic_names() if one in _topics(targets)]))
    with admin.wire() as client:
        moving = list_reassignments(client)
    say("Status of partition reassignment:")
    for one, wanted in sorted(targets.items()):
        has = known.get(one)
        if one in moving:
            say(f"Reassignment of partition {one} is still in progress.")
        elif has is not None and list(has) == list(wanted):
            say(f"Reassignment of partition {one} is completed.")
        else:
            found = ",".join(map(str, has or ()))
            say(
                f"There is no active reassignment of partition {one}, but replica set is {found} rather than "
                f"{','.join(map(str, wanted))}."
            )
    if not any(one in moving for one in targets) and not parsed.has("preserve-throttles"):
        say()
        _clear_throttles(admin, targets)
    return 0


def _clear_throttles(admin: Admin, targets: Assignment) -> None:
    brokers = sorted(node.id for node in admin.describe_cluster().nodes)
    say(f"Clearing broker-level throttles on broker{_s(brokers)} {','.join(map(str, brokers))}")
    for broker in brokers:
        admin.alter_configs("broker", str(broker), delete=[*BROKER_RATES, DIRECTORY_RATE])
    topics = sorted(_topics(targets))
    say(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    for topic in topics:
        admin.alter_configs("topic", topic, delete=TOPIC_LISTS)


def _cancel(parsed: Parsed, targets: Assignment) -> int:
    admin = open_admin(parsed)
    with admin.wire() as client:
        moving = {one for one in list_reassignments(client) if one in targets}
        failures = alter_reassignments(client, dict.fromkeys(sorted(moving))) if moving else {}
    failed = {one: failure for one, failure in failures.items() if failure is not None}
    if failed:
        listed = "\n".join(f"{one}: {failure}" for one, failure in sorted(failed.items()))
        raise ToolError(f"Error cancelling partition reassignment{_s(failed)} for:\n{listed}")
    if moving:
        say(f"Successfully cancelled partition reassignment{_s(moving)} for: {_joined(moving)}")
    else:
        say("None of the specified partition reassignments are active.")
    # Moves between folders of a broker are not made here; Kafka's tool ends this line nowhere.
    print("None of the specified partition moves are active.", end="", flush=True)
    if not parsed.has("preserve-throttles"):
        _clear_throttles(admin, targets)
    return 0


def _list(admin: Admin) -> int:
    with admin.wire() as client:
        moving = list_reassignments(client)
    if not moving:
        say("No partition reassignments found.")
        return 0
    say("Current partition reassignments:")
    for one, replicas in sorted(_current(admin, moving).items()):
        adding, removing = (",".join(map(str, each)) for each in moving[one])
        more = f" adding: {adding}." if adding else ""
        less = f" removing: {removing}." if removing else ""
        say(f"{one}: replicas: {','.join(map(str, replicas))}.{more}{less}")
    return 0


def _topics(targets: Iterable[TopicPartition]) -> set[str]:
    return {one.topic for one in targets}


def _joined(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(str(one) for one in sorted(partitions))


def _s(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


if __name__ == "__main__":
    sys.exit(main())
