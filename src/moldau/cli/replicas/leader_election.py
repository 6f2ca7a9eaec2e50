"""kafka-leader-election, and kafka-preferred-replica-election of older releases. Start at `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.replicas.json_files import compact, partitions_in
from moldau.cli.tool import run, say
from moldau.client.errors import ClientError, java_exception_prefix
from moldau.client.replica_admin import ElectionType, elect_leaders
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

__all__ = ["main", "preferred_main"]

PATH = Option("path-to-json-file", "A file that lists partitions; all of them without it.", "file")
_PARSER = Parser(
    "Elect leaders: the preferred replicas again, or with loss of records any that is alive.",
    [
        BOOTSTRAP_SERVER,
        Option("command-config", COMMAND_CONFIG.help, "file", aliases=("admin.config",)),
        Option("election-type", "preferred, or unclean, which may lose records.", "type", is_required=True),
        Option("all-topic-partitions", "Every partition that needs it."),
        Option("topic", "The topic, with --partition.", "topic"),
        Option("partition", "The partition's number.", "number", int),
        Option("path-to-json-file", 'A file of the form {"partitions": [{"topic": "t", "partition": 0}]}.', "file"),
    ],
)
_OLD_PARSER = Parser(
    "Make the first replica of each partition its leader again.",
    [
        BOOTSTRAP_SERVER,
        ZOOKEEPER,
        Option("command-config", COMMAND_CONFIG.help, "file", aliases=("admin.config",)),
        PATH,
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(_PARSER, _elect, argv)


def preferred_main(argv: Sequence[str] | None = None) -> int:
    return run(_OLD_PARSER, _elect_preferred, argv)


def _elect(parsed: Parsed) -> int:
    kind = _kind(parsed.value("election-type"))
    ways = ("all-topic-partitions", "topic", "path-to-json-file")
    parsed.exactly_one(ways, f"One and only one of the following options is required: {', '.join(ways)}")
    if parsed.has("partition") != parsed.has("topic"):
        raise UsageError("--topic and --partition belong together")
    wanted: list[TopicPartition] | None = None
    if parsed.has("topic"):
        wanted = [TopicPartition(parsed.value("topic"), parsed.value("partition"))]
    elif parsed.has("path-to-json-file"):
        wanted = partitions_in(parsed.value("path-to-json-file"))
    with open_admin(parsed).wire() as client:
        results = elect_leaders(client, kind, wanted)
    done = [one for one, failure in results.items() if failure is None]
    needless = [one for one, failure in results.items() if _is_needless(failure)]
    if done:
        say(f"Successfully completed leader election ({kind.name}) for partitions {_joined(done)}")
    if needless:
        say(f"Valid replica already elected for partitions {_joined(needless)}")
    failed = {one: failure for one, failure in results.items() if failure is not None and not _is_needless(failure)}
    for one, failure in sorted(failed.items()):
        reason = f"{java_exception_prefix(failure)}{failure}"
        say(f"Error completing leader election ({kind.name}) for partition: {one}: {reason}")
    if failed:
        print(f"{len(failed)} replica(s) could not be elected", file=sys.stderr)
    return 1 if failed else 0


def _elect_preferred(parsed: Parsed) -> int:
    wanted = partitions_in(parsed.value("path-to-json-file")) if parsed.has("path-to-json-file") else None
    admin = open_admin(parsed)
    if wanted is None:
        names = admin.topic_names()
        wanted = [
            TopicPartition(one.name, each.partition) for one in admin.describe_topics(names) for each in one.partitions
        ]
    with admin.wire() as client:
        results = elect_leaders(client, ElectionType.PREFERRED, wanted)
    failed = {one: failure for one, failure in results.items() if failure is not None and not _is_needless(failure)}
    good = sorted(one for one in results if one not in failed)
    if parsed.has("zookeeper"):
        listed = compact(
            {"version": 1, "partitions": [{"topic": one.topic, "partition": one.partition} for one in good]}
        )
        say(f"Created preferred replica election path with {listed}")
        say(f"Successfully started preferred replica election for partitions Set({_joined(good)})")
    else:
        say(f"Successfully completed preferred replica election for partitions {_joined(good)}")
    for one, failure in sorted(failed.items()):
        say(f"Error completing preferred replica election for partition {one}: {failure}")
    return 1 if failed else 0


def _kind(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise UsageError(
            f"Cannot parse argument '{text}' of option election-type: write preferred or unclean"
        ) from None


def _is_needless(failure: ClientError | None) -> bool:
    return failure is not None and failure.error_code is ErrorCode.ELECTION_NOT_NEEDED


def _joined(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(str(one) for one in sorted(partitions))


if __name__ == "__main__":
    sys.exit(main())
