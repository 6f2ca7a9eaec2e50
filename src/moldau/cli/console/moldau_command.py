"""`moldau produce` and `moldau consume`: the console tools with short options, and JSON lines on request."""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.console.consumer import Wording
from moldau.cli.console.consumer import consume as print_records
from moldau.cli.console.consumer_options import PARSER
from moldau.cli.console.formatter import Message
from moldau.cli.console.producer import main as producer_main
from moldau.cli.sub_commands import add_connection, command_parser, run_command

__all__ = ["consume", "consume_parser", "produce", "produce_parser"]

WAITING = {
    "UNKNOWN_TOPIC_OR_PARTITION": "there is no topic {} yet; waiting for it",
    "LEADER_NOT_AVAILABLE": "topic {} has no leader yet; waiting for one",
}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def produce(argv: Sequence[str]) -> int:
    return run_command(produce_parser(), argv, _produce)


def produce_parser() -> CommandParser:
    made = command_parser(
        "produce",
        "Send each line of standard input to a topic as one record.",
        [
            "echo hello | moldau produce orders",
            "moldau produce orders --key-separator :      # lines like  alice:42",
            "moldau produce orders --acks 1 --compression zstd < lines.txt",
        ],
    )
    made.add_argument("topic")
    made.add_argument("-k", "--key-separator", metavar="TEXT", help="what separates key and value")
    made.add_argument("--headers", action="store_true", help="lines begin with h1:v1,h2:v2 and a tab")
    made.add_argument("--null", metavar="TEXT", help="text that stands for null, to write tombstones")
    made.add_argument("--acks", choices=("0", "1", "all"), default="all", help="how many replicas must confirm")
    made.add_argument("--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none")
    made.add_argument("--sync", action="store_true", help="wait for each record before the next")
    add_connection(made, has_output=False)
    return made


def _produce(options: argparse.Namespace) -> int:
    words = ["--topic", options.topic, f"--request-required-acks={options.acks}"]
    words += [f"--compression-codec={options.compression}"]
    if options.key_separator:
        words += ["--property", "parse.key=true", "--property", f"key.separator={options.key_separator}"]
    if options.headers:
        words += ["--property", "parse.headers=true"]
    if options.null is not None:
        words += ["--property", f"null.marker={options.null}"]
    if options.sync:
        words.append("--sync")
    return producer_main([*words, *_connection(options, "producer")])


def consume(argv: Sequence[str]) -> int:
    return run_command(consume_parser(), argv, _consume)


def consume_parser() -> CommandParser:
    made = command_parser(
        "consume",
        "Print the records of a topic.",
        [
            "moldau consume orders --from-beginning",
            "moldau consume orders -p 0 --offset 100 -n 10 --show key,timestamp",
            "moldau consume orders --from-beginning --timeout 5s   # what there is, then leave",
            "moldau consume orders --from-beginning -o json | head",
        ],
    )
    made.add_argument("topic")
    made.add_argument("-f", "--from-beginning", action="store_true", help="begin with the oldest record")
    made.add_argument("-p", "--partition", type=int, help="read one partition only")
    made.add_argument("--offset", help="where to begin in it: an offset, earliest or latest")
    made.add_argument("-n", "--max-messages", type=int, metavar="N", help="leave after N records")
    made.add_argument(
        "-t",
        "--timeout",
        "--timeout-ms",
        dest="timeout_ms",
        type=_milliseconds,
        metavar="TIME",
        help="leave when nothing came for so long: 10s, 500ms, 2m; a bare number is milliseconds",
    )
    made.add_argument("-g", "--group", help="read as a member of this group")
    made.add_argument("--committed", action="store_true", help="only records of committed transactions")
    made.add_argument("--regex", action="store_true", help="the topic is a regular expression")
    made.add_argument(
        "--show", default="", metavar="FIELDS", help="of key,timestamp,partition,offset,epoch,headers, with commas"
    )
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text, or a JSON line each")
    add_connection(made, has_output=False)
    return made


def _consume(options: argparse.Namespace) -> int:
    words = ["--include" if options.regex else "--topic", options.topic]
    for flag, name in ((options.from_beginning, "from-beginning"),):
        words += [f"--{name}"] if flag else []
    for name in ("partition", "offset", "max_messages", "timeout_ms", "group"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name.replace('_', '-')}={value}"]
    if options.committed:
        words.append("--isolation-level=read_committed")
    for field in filter(None, options.show.split(",")):
        words += ["--property", f"print.{field.strip()}=true"]
    formatter = json_line if options.output == "json" else None
    parsed = PARSER.parse([*words, *_connection(options, "consumer")])
    return print_records(parsed, formatter=formatter, wording=PlainWording())


class PlainWording(Wording):
    """The messages for people, without Java's terms."""

    def timed_out(self, timeout_ms: int) -> None:
        self._say(f"nothing came for {_time(timeout_ms)}, leaving")

    def reader_left(self) -> None:
        pass  # no message, like other commands in a pipe to `head`

    def missing(self, topics: dict[str, str], client_id: str) -> None:
        for topic, reason in sorted(topics.items()):
            self._say(WAITING.get(reason, f"topic {{}}: {reason}").format(topic))

    def ended(self, count: int) -> None:
        self._say(f"{count:,} record{'' if count == 1 else 's'}")

    @staticmethod
    def _say(text: str) -> None:
        print(f"moldau: {text}", file=sys.stderr, flush=True)


def _milliseconds(text: str) -> int:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 10s, 500ms or 2m")
    return int(float(found[1]) * _UNITS_MS[found[2] or "ms"])


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g} s" if milliseconds >= 1000 else f"{milliseconds} ms"


def _connection(options: argparse.Namespace, kind: str) -> list[str]:
    words = [f"--bootstrap-server={options.bootstrap_server}"]
    words += [f"--{kind}.config={options.config_file}"] if options.config_file else []
    for text in options.client_properties:
        words += [f"--{kind}-property", text]
    return words


def json_line(message: Message) -> bytes:
    """A record as one line of JSON; bytes that are not text are encoded as base64."""
    kind, milliseconds = message.timestamp()
    document = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": milliseconds if kind else None,
        "key": _text(message.key()),
        "value": _text(message.value()),
        "headers": [[name, _text(value)] for name, value in message.headers() or []],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _text(content: bytes | str | None) -> str | dict[str, str] | None:
    if content is None or isinstance(content, str):
        return content
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
