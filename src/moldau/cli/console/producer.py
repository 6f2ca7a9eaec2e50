"""kafka-console-producer: sends each line of standard input as a record. Start at `send_lines`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from moldau.cli.cluster_options import report_client_log
from moldau.cli.console.line_reader import KNOWN_CLASSES, Line, LineReader
from moldau.cli.console.producer_options import PARSER, producer_properties, reader_properties
from moldau.cli.options import Parsed, Parser, UsageError
from moldau.cli.tool import INTERRUPTED_S, log_line, run, warn_about_stray_words
from moldau.client.connection import build, normalize_servers
from moldau.client.connection_log import ConnectionLog
from moldau.client.errors import error_name
from moldau.client.unsent_records import UnsentRecords, end_producer, flush_interruptibly
from moldau.client.waiting import GivenUpError, interruptible
from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["main", "open_producer", "send_lines"]

NETWORK_LOG = "org.apache.kafka.clients.NetworkClient"
ERROR_LOG = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"
METADATA_TIMEOUT_S = 5.0
POLL_EVERY = 2000
POLL_S = 0.2


def main(argv: Sequence[str] | None = None, *, parser: Parser = PARSER, line_reader: str | None = None) -> int:
    """Run the tool; `line_reader` is the class that reads lines if `--line-reader` is not given."""
    return run(parser, partial(_produce, default_reader=line_reader), argv, report=_report)


def _report(error: MoldauError) -> None:
    print(error, file=sys.stderr)


def _produce(parsed: Parsed, *, default_reader: str | None) -> int:
    stray = parsed.words_after("bootstrap-server")
    warn_about_stray_words(parsed, stray)
    reader = _reader(parsed, parsed.value("line-reader") or default_reader)
    properties = producer_properties(parsed, is_interactive=sys.stdin.isatty())
    # Course material has broker lists with a blank after each comma, which the shell splits into words.
    properties["bootstrap.servers"] = normalize_servers(",".join([parsed.value("bootstrap-server"), *stray]))
    unsent = UnsentRecords()
    producer, max_block_s = open_producer(properties, unsent)
    sender = _Sender(producer, parsed.value("topic"), max_block_s, is_sync=parsed.has("sync"))
    try:
        with _polling(producer):
            try:
                send_lines(sender, reader, _read_with_prompt(sys.stdin.buffer, shows_prompt=sys.stdin.isatty()))
            except Exception:
                flush_interruptibly(producer)
                raise
            flush_interruptibly(producer)
    except KeyboardInterrupt:
        end_producer(producer, INTERRUPTED_S)
        for line in unsent.drain_lines(properties["bootstrap.servers"]):
            log_line("WARN", line, ERROR_LOG)
        raise
    return 0


@contextmanager
def _polling(producer: Producer) -> Iterator[None]:
    """Poll in a thread while input is awaited: librdkafka delivers log lines and failures only when polled."""
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.is_set():
            producer.poll(POLL_S)

    thread = threading.Thread(target=poll, name="poll", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _reader(parsed: Parsed, class_name: str | None) -> LineReader:
    properties = reader_properties(parsed)
    if class_name is None or class_name.endswith(KNOWN_CLASSES):
        return LineReader(properties, parsed.value("topic"))
    # Imported only here: lines without a schema need no registry.
    from moldau.cli.console.schema_lines import SCHEMA_READERS, SchemaLineReader

    schema_type = SCHEMA_READERS.get(class_name.rsplit(".", 1)[-1])
    if schema_type is None:
        raise UsageError(f"{class_name} is a Java class, which cannot run here; leave --line-reader out")
    return SchemaLineReader(properties, schema_type, parsed.value("topic"))


def open_producer(properties: dict[str, str], unsent: UnsentRecords) -> tuple[Producer, float]:
    """A producer that reports only failed records, and how long a send may block, in seconds."""
    from confluent_kafka import Producer

    extra: dict[str, Any] = {"on_delivery": partial(_log_failure, unsent), "delivery.report.only.error": True}
    title = f"Producer clientId={properties.get('client.id', 'console-producer')}"
    producer, translated = build(Producer, "producer", properties, report=report_client_log, title=title, extra=extra)
    return producer, int(translated.own.get("max.block.ms", "60000")) / 1000


def send_lines(sender: _Sender, reader: LineReader, lines: Iterable[bytes]) -> None:
    """Parse and send until the input ends; a line that cannot be parsed ends the tool."""
    is_plain = reader.is_plain
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip(b"\n")
        if line.endswith(b"\r"):
            line = line[:-1]
        sender.send(Line(None, line, []) if is_plain else reader.parse(line, number))


class _Sender:
    """Passes records to librdkafka, and waits while its buffer is full."""

    def __init__(self, producer: Producer, topic: str, max_block_s: float, *, is_sync: bool) -> None:
        self._producer = producer
        self._topic = topic
        self._max_block_s = max_block_s
        self._is_sync = is_sync
        self._sent = 0

    def send(self, line: Line) -> None:
        if self._sent == 0:
            try:
                self._look_up_topic()
            except KeyboardInterrupt:
                # Passed to librdkafka, so that it is counted among the records that were not sent.
                self._try_send(line)
                raise
        self._sent += 1
        if self._sent % POLL_EVERY == 0:
            self._producer.poll(0)
        deadline = None
        while not self._try_send(line):
            deadline = deadline or time.monotonic() + self._max_block_s
            self._producer.poll(0.1)
            if time.monotonic() > deadline:
                _log_error(self._topic, line.key, line.value, "no room in the buffer within max.block.ms")
                return
        if self._is_sync:
            flush_interruptibly(self._producer)

    def _try_send(self, line: Line) -> bool:
        from confluent_kafka import KafkaException

        try:
            if line.headers:
                self._producer.produce(self._topic, line.value, line.key, headers=line.headers)
            else:
                self._producer.produce(self._topic, line.value, line.key)
        except BufferError:
            return False
        except KafkaException as error:
            _log_error(self._topic, line.key, line.value, error.args[0].str())
        return True

    def _look_up_topic(self) -> None:
        """Request the topic's metadata once, which may create the topic; log an error as Java clients do."""
        from confluent_kafka import KafkaException

        connections = ConnectionLog.to(report_client_log)
        ask = partial(self._producer.list_topics, self._topic, timeout=METADATA_TIMEOUT_S)
        try:
            found = interruptible(ask, is_over=lambda: connections.is_cut_off).topics.get(self._topic)
        except (KafkaException, GivenUpError):
            return
        if found is not None and found.error is not None:
            text = f"Error while fetching metadata with correlation id 1 : {{{self._topic}={error_name(found.error)}}}"
            log_line("WARN", f"[Producer clientId=console-producer] {text}", NETWORK_LOG)


def _read_with_prompt(stream: BinaryIO, *, shows_prompt: bool) -> Iterator[bytes]:
    if not shows_prompt:
        yield from stream
        return
    while True:
        print(">", end="", flush=True)
        line = stream.readline()
        if not line:
            return
        yield line


def _log_failure(unsent: UnsentRecords, error: Any, message: Any) -> None:
    if error is not None and not unsent.notes(error, message.topic()):
        _log_error(message.topic(), message.key(), message.value(), error.str())


def _log_error(topic: str, key: bytes | None, value: bytes | None, reason: str) -> None:
    text = f"Error when sending message to topic {topic} with key: {_size(key)}, value: {_size(value)}"
    log_line("ERROR", f"{text} with error: {reason}", ERROR_LOG)


def _size(content: bytes | None) -> str:
    return "null" if content is None else f"{len(content)} bytes"


if __name__ == "__main__":
    sys.exit(main())
