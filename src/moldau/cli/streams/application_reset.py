"""kafka-streams-application-reset: makes a Streams application read its input again, from given offsets.

It sets the group's offsets and deletes internal topics, with Kafka's messages and in Kafka's order. It cannot delete
state on the machines where the application ran; the last line says how to remove it. `moldau streams reset` also
removes the state on this machine. `reset_positions` computes the new offsets. Start at `main`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, report_client_log
from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.streams.reset_positions import SCENARIOS, Positions
from moldau.cli.tool import ToolError, run, say, warn_about_stray_words
from moldau.client.connection import load_properties
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.groups import Groups

__all__ = ["PARSER", "is_internal", "main"]

DEFAULT_SERVERS = "localhost:9092"
INTERNAL_SUFFIXES = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
    # Specific to moldau: the progress of an application with exactly-once processing.
    "-progress",
)
_FOREIGN_KEY_TOPIC = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic")

PARSER = Parser(
    "Let a Streams application process its input again: set the offsets of its input topics and delete its internal "
    "topics. Stop the application first, and have a look with --dry-run.",
    [
        Option("application-id", "The application.id, which is also its group.", "id", is_required=True),
        Option(BOOTSTRAP_SERVER.name, f"{BOOTSTRAP_SERVER.help} (default: {DEFAULT_SERVERS})", BOOTSTRAP_SERVER.value),
        Option("input-topics", "Topics to read again, with commas between: by default from their beginning.", "list"),
        Option("intermediate-topics", "Deprecated: topics both written and read, to be skipped to their end.", "list"),
        Option("internal-topics", "Delete only these internal topics, with commas between.", "list"),
        Option("to-earliest", "Reset input topics to their oldest record. The default."),
        Option("to-latest", "Reset input topics to their end."),
        Option("to-offset", "Reset input topics to an offset.", "offset", int),
        Option("shift-by", "Reset input topics to so many records further, or back.", "number", int),
        Option("by-duration", "Reset input topics to so long ago: PnDTnHnMnS.", "duration"),
        Option("to-datetime", "Reset input topics to a moment: YYYY-MM-DDThh:mm:ss.sss.", "moment"),
        Option("from-file", "Reset input topics to the offsets of a CSV file: topic,partition,offset.", "file"),
        COMMAND_CONFIG,
        Option("config-file", "Deprecated: the same as --command-config.", "file"),
        Option("force", "Take members out of the group that have not left it; the application must not run."),
        Option("dry-run", "Only show what would be done."),
    ],
    epilog=(
        "Examples:\n"
        "  kafka-streams-application-reset --application-id visits --input-topics clicks,users --dry-run\n"
        "  kafka-streams-application-reset --application-id visits --input-topics clicks --by-duration P1D"
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _run, argv, report=_report)


def _report(error: MoldauError) -> None:
    print(f"ERROR: {error}", file=sys.stderr, flush=True)


def _run(parsed: Parsed) -> int:
    for scenario in SCENARIOS:
        parsed.forbid([other for other in SCENARIOS if other != scenario], because_of=scenario)
    warn_about_stray_words(parsed)
    if parsed.has("config-file"):
        say(
            "Option --config-file has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    file = parsed.value("config-file") or parsed.value("command-config")

    from moldau.client.admin import Admin
    from moldau.client.groups import Groups

    properties = load_properties(file) if file else {}
    admin = Admin(parsed.value("bootstrap-server") or DEFAULT_SERVERS, properties, report=report_client_log)
    return _Reset(parsed, admin, Groups(admin)).run()


class _Reset:
    """One run of the tool."""

    def __init__(self, parsed: Parsed, admin: Admin, groups: Groups) -> None:
        self._parsed = parsed
        self._admin = admin
        self._groups = groups
        self._application: str = parsed.value("application-id")
        self._is_dry = parsed.has("dry-run")
        self._inputs = _list(parsed, "input-topics")
        self._intermediate = _list(parsed, "intermediate-topics")

    def run(self) -> int:
        """Set offsets, then delete topics; returns 1 if a topic to read again does not exist."""
        self._empty_group()
        counts = self._admin.partition_counts()
        if self._is_dry:
            say("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
        is_complete = self._set_offsets(counts)
        self._delete_internal_topics(counts)
        if not self._is_dry:
            self._tell_about_state()
        return 0 if is_complete else 1

    def _tell_about_state(self) -> None:
        # On stderr, because Kafka's tool has this only in its help: programs that parse stdout do not expect it.
        name = self._application
        print(
            f"State of {name} in the state.dir of the machines it ran on is untouched, and wrong from now on. Remove "
            f"it before the next start: call KafkaStreams.clean_up() there, or delete the folder {name} in state.dir.",
            file=sys.stderr,
            flush=True,
        )

    # --- the group

    def _empty_group(self) -> None:
        group = self._groups.describe(self._application)
        if group is None or not group.members:
            return
        if not self._parsed.has("force"):
            names = ", ".join(f"{member.client_id} at {member.host}" for member in group.members)
            raise ToolError(
                f"Consumer group '{self._application}' is still active and has following members: {names}. Make sure to"
                " stop all running application instances before running the reset tool. You can use option '--force'"
                " to remove active members from the group."
            )
        from moldau.client.groups import remove_members

        say(f"Force deleting all active members in the group: {self._application}")
        members = [(member.member_id, member.instance_id) for member in group.members]
        remove_members(self._admin, self._application, members)

    # --- offsets

    def _set_offsets(self, counts: dict[str, int]) -> bool:
        """Set the group's offsets; returns whether every topic exists."""
        if self._parsed.has("intermediate-topics"):
            say("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
        if not self._inputs and not self._intermediate:
            say("No input or intermediate topics specified. Skipping seek.")
            return True
        if self._inputs:
            say(f"Reset-offsets for input topics {_java_list(self._inputs)}")
        if self._intermediate:
            say(f"Seek-to-end for intermediate topics {_java_list(self._intermediate)}")
        missing = [topic for topic in self._inputs if topic not in counts]
        lost = [topic for topic in self._intermediate if topic not in counts]
        _tell_missing("Following input topics are not found, skipping them", "Topic: ", missing)
        _tell_missing("Following intermediate topics are not found, skipping them", "Topic:", lost)
        inputs = _partitions(self._inputs, counts)
        intermediate = [at for at in _partitions(self._intermediate, counts) if at not in inputs]
        if inputs or intermediate:
            self._commit(inputs, intermediate)
            say("Done.")
        return not missing and not lost

    def _commit(self, inputs: list[TopicPartition], intermediate: list[TopicPartition]) -> None:
        positions = Positions(self._admin, self._groups, self._application)
        wanted: dict[TopicPartition, int] = {}
        if inputs:
            say(f"Following input topics offsets will be reset to (for consumer group {self._application})")
            wanted = positions.wanted(self._parsed, inputs)
            for at in inputs:
                say(f"Topic: {at.topic} Partition: {at.partition} Offset: {wanted[at]}")
        if intermediate:
            say(f"Following intermediate topics offsets will be reset to end (for consumer group {self._application})")
            for at in intermediate:
                say(f"Topic: {at.topic}")
            wanted |= positions.latest(intermediate)
        if not self._is_dry:
            from moldau.client.groups import RESET, commit_for_good

            commit_for_good(self._admin, self._application, wanted, metadata=RESET)

    # --- topics

    def _delete_internal_topics(self, counts: dict[str, int]) -> None:
        users = {*self._inputs, *self._intermediate}
        inferred = [topic for topic in counts if topic not in users and is_internal(topic, self._application)]
        specified = _list(self._parsed, "internal-topics")
        if not set(specified) <= set(inferred):
            raise ToolError(
                "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all "
                "internal topics. Do a dry run without the --internal-topics option to see the list of all internal "
                "topics that can be deleted."
            )
        kind, topics = ("specified", specified) if specified else ("inferred", inferred)
        say(f"Deleting {kind} internal topics {_java_list(topics)}")
        if topics and not self._is_dry:
            self._admin.delete_topics(topics)
        say("Done.")


def is_internal(topic: str, application_id: str) -> bool:
    """Whether a topic's name is that of an internal topic of an application."""
    is_named_so = topic.endswith(INTERNAL_SUFFIXES) or _FOREIGN_KEY_TOPIC.fullmatch(topic) is not None
    return topic.startswith(f"{application_id}-") and is_named_so


def _list(parsed: Parsed, option: str) -> list[str]:
    return [topic for text in parsed.values(option) for topic in text.split(",") if topic]


def _java_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"


def _tell_missing(title: str, prefix: str, topics: list[str]) -> None:
    if topics:
        say(title)
        for topic in topics:
            say(f"{prefix}{topic}")


def _partitions(topics: Iterable[str], counts: dict[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in dict.fromkeys(topics) for number in range(counts.get(topic, 0))]


if __name__ == "__main__":
    sys.exit(main())
