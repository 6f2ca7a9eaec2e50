"""kafka-console-consumer's options, and the plan made from them. Start at `Plan.of`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.cli.cluster_options import CONSUMER_CONFIG, ZOOKEEPER, pairs
from moldau.cli.console.formatter import Formatter, formatter_for
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.topics.selection import topic_pattern
from moldau.client.connection import load_properties, normalize_servers
from moldau.client.following import BEGINNING, END

__all__ = ["PARSER", "Plan"]

PARSER = Parser(
    "Print the records of a topic to standard output.",
    [
        Option(
            "bootstrap-server",
            "Where to reach the cluster: brokers as host:port, with commas between.",
            "host:port",
            aliases=("broker-list",),
        ),
        ZOOKEEPER,
        Option("topic", "The topic to read.", "topic"),
        Option("include", "A regular expression: read all topics it matches.", "regex", aliases=("whitelist",)),
        Option("blacklist", "A regular expression: read all topics it does not match.", "regex", is_hidden=True),
        Option("partition", "Read this partition only, from the end unless --offset says otherwise.", "number", int),
        Option("offset", "Where to begin in --partition: an offset, earliest or latest.", "offset", str, "latest"),
        Option("from-beginning", "Begin with the oldest record instead of the next new one."),
        Option("max-messages", "Leave after this many records.", "number", int),
        Option("timeout-ms", "Leave when no record came for this long.", "ms", int),
        Option("skip-message-on-error", "Go on after a record that cannot be printed."),
        Option("group", "Read as a member of this consumer group, and commit what was read.", "group"),
        Option(
            "isolation-level",
            "read_committed hides records of open and aborted transactions; read_uncommitted shows all.",
            "level",
            str,
            "read_uncommitted",
        ),
        Option("key-deserializer", "How keys become text: String, Integer, Long, Double, ...", "class"),
        Option("value-deserializer", "How values become text: String, Integer, Long, Double, ...", "class"),
        Option(
            "formatter",
            "What prints records: Default-, Logging- or NoOpMessageFormatter; for the coordinators' topics "
            "Offsets-, GroupMetadata- and TransactionLogMessageFormatter.",
            "class",
        ),
        Option(
            "property",
            "How records are shown: print.key=true, print.value=, print.timestamp=, print.partition=, print.offset=, "
            "print.epoch=, print.headers=, key.separator=, line.separator=, headers.separator=, null.literal=, "
            "key.deserializer=, value.deserializer=, headers.deserializer=. May be repeated.",
            "name=value",
            aliases=("formatter-property",),
        ),
        Option("formatter-config", "A file of such properties.", "file"),
        Option(
            "consumer-property",
            "A property of the consumer, such as fetch.min.bytes=1000. May be repeated.",
            "name=value",
            aliases=("command-property",),
        ),
        CONSUMER_CONFIG,
        Option("enable-systest-events", "Print a line of JSON when the consumer has stopped."),
        Option("new-consumer", "Accepted for compatibility.", is_hidden=True),
        Option("delete-consumer-offsets", "Accepted for compatibility.", is_hidden=True),
        Option("csv-reporter-enabled", "Accepted for compatibility.", is_hidden=True),
        Option("metrics-dir", "Accepted for compatibility.", "directory", is_hidden=True),
    ],
    epilog=(
        "Example: kafka-console-consumer --bootstrap-server localhost:9092 --topic orders --from-beginning "
        "--property print.key=true"
    ),
)

_OFFSET_COMPLAINT = (
    "The provided offset value '{}' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of the consumer."""

    topics: list[str] | re.Pattern[str]
    properties: Mapping[str, str]
    formatter: Formatter
    group: str | None = None
    partition: int | None = None
    start: int = END
    max_messages: int | None = None
    timeout_ms: int | None = None
    skips_errors: bool = False
    prints_events: bool = False

    @classmethod
    def of(cls, parsed: Parsed, *, default_formatter: str | None = None) -> Plan:
        """The plan of a command line; `default_formatter` is used if `--formatter` is not given."""
        parsed.require("bootstrap-server")
        given = _given_properties(parsed)
        group = _group(parsed, given)
        if group is not None and parsed.has("partition"):
            raise UsageError("Options group and partition cannot be specified together.")
        start = _start(parsed, given)
        servers = ",".join([parsed.value("bootstrap-server"), *parsed.words_after("bootstrap-server")])
        properties = {"isolation.level": parsed.value("isolation-level"), "enable.auto.commit": "true", **given}
        if parsed.has("isolation-level"):
            properties["isolation.level"] = parsed.value("isolation-level")
        properties["bootstrap.servers"] = normalize_servers(servers)
        if group is None:
            properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
            properties["enable.auto.commit"] = "false"
        else:
            properties["group.id"] = group
        if parsed.has("from-beginning"):
            properties["auto.offset.reset"] = "earliest"
        properties.setdefault("client.id", f"consumer-{properties['group.id']}-1")
        return cls(
            topics=_topics(parsed),
            properties=properties,
            formatter=_formatter(parsed, default_formatter),
            group=group,
            partition=parsed.value("partition"),
            start=start,
            max_messages=_positive(parsed.value("max-messages")),
            timeout_ms=_positive(parsed.value("timeout-ms")),
            skips_errors=parsed.has("skip-message-on-error"),
            prints_events=parsed.has("enable-systest-events"),
        )


def _positive(number: int | None) -> int | None:
    """The limit, or None if it is negative: Kafka's tools treat that as no limit."""
    return None if number is None or number < 0 else number


def _given_properties(parsed: Parsed) -> dict[str, str]:
    from_file = load_properties(parsed.value("consumer.config")) if parsed.has("consumer.config") else {}
    return from_file | pairs(parsed.values("consumer-property"))


def _group(parsed: Parsed, given: Mapping[str, str]) -> str | None:
    """The group id from option, property and file; raises an error if they differ."""
    from_file = load_properties(parsed.value("consumer.config")) if parsed.has("consumer.config") else {}
    places = (
        parsed.value("group"),
        pairs(parsed.values("consumer-property")).get("group.id"),
        from_file.get("group.id"),
    )
    ids = {place for place in places if place is not None}
    if len(ids) > 1:
        detected = ", ".join(f"'{group}'" for group in sorted(ids))
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', "
            f"or via '--consumer.config') do not match. Detected group ids: {detected}"
        )
    return ids.pop() if ids else None


def _topics(parsed: Parsed) -> list[str] | re.Pattern[str]:
    given = [name for name in ("topic", "include", "blacklist") if parsed.has(name)]
    if len(given) != 1:
        raise UsageError("Exactly one of --include/--topic is required.")
    if given == ["topic"]:
        return [parsed.value("topic")]
    pattern = topic_pattern(parsed.value(given[0]))
    return pattern if given == ["include"] else re.compile(rf"(?!(?:{pattern.pattern})$).*")


def _start(parsed: Parsed, given: Mapping[str, str]) -> int:
    """The start position without a committed offset; raises an error for contradictory options."""
    policy = given.get("auto.offset.reset", "").lower()
    if parsed.has("partition"):
        if not parsed.has("topic"):
            raise UsageError("The topic is required when partition is specified.")
    elif parsed.has("offset"):
        raise UsageError("The partition is required when offset is specified.")
    if parsed.has("from-beginning"):
        if parsed.has("offset"):
            raise UsageError("Options from-beginning and offset cannot be specified together.")
        if policy and policy != "earliest":
            raise UsageError(
                f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={policy}', "
                "please remove one option"
            )
        return BEGINNING
    if parsed.has("offset"):
        return _parse_offset(parsed.value("offset"))
    return BEGINNING if policy == "earliest" else END


def _parse_offset(text: str) -> int:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return BEGINNING if word == "earliest" else END
    if not word.isdigit():
        raise UsageError(_OFFSET_COMPLAINT.format(text))
    return int(word)


def _formatter(parsed: Parsed, default: str | None) -> Formatter:
    properties = load_properties(parsed.value("formatter-config")) if parsed.has("formatter-config") else {}
    properties |= pairs(parsed.values("property"))
    for option in ("key-deserializer", "value-deserializer"):
        if parsed.has(option):
            properties[option.replace("-", ".")] = parsed.value(option)
    return formatter_for(parsed.value("formatter") or default, properties)
