"""The console tools beside a broker."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal
from tests.integration.server_process import wait_until

from moldau.testing import Broker

PRODUCE = "kafka-console-producer --bootstrap-server localhost:9092 --topic"
CONSUME = "kafka-console-consumer --bootstrap-server localhost:9092"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker({"num.partitions": "1"}) as broker:
        yield Terminal(broker)


def read(terminal: Terminal, topic: str, count: int, options: str = "") -> list[str]:
    line = f"{CONSUME} --topic {topic} --from-beginning --max-messages {count} {options}"
    return terminal.output(line).splitlines()


def test_headers_keys_nulls_and_everything_about_a_record(terminal: Terminal) -> None:
    terminal.output(
        f"{PRODUCE} rich --property parse.key=true --property parse.headers=true --property null.marker=NULL",
        stdin="a:1,b:NULL\tk\tv\n\tNULL\tw\n\tk\tNULL\n",
    )
    shown = " ".join(
        f"--property print.{field}=true" for field in ("timestamp", "partition", "offset", "epoch", "headers", "key")
    )
    lines = read(terminal, "rich", 3, shown)
    assert re.sub(r"CreateTime:\d{13}", "CreateTime:T", "\n".join(lines)) == (
        "CreateTime:T\tPartition:0\tOffset:0\tEpoch:0\ta:1,b:null\tk\tv\n"
        "CreateTime:T\tPartition:0\tOffset:1\tEpoch:0\tNO_HEADERS\tnull\tw\n"
        "CreateTime:T\tPartition:0\tOffset:2\tEpoch:0\tNO_HEADERS\tk\tnull"
    )


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_goes_there_and_back(terminal: Terminal, codec: str) -> None:
    lines = [f"line {number} of {codec}" for number in range(200)]
    terminal.output(f"{PRODUCE} codec-{codec} --compression-codec {codec}", stdin="\n".join(lines))
    assert read(terminal, f"codec-{codec}", 200) == lines


def test_empty_lines_dos_ends_and_unicode_survive(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} odd", stdin="ahoj světe\r\n\nno end")
    assert read(terminal, "odd", 3) == ["ahoj světe", "", "no end"]


def test_a_line_without_its_separator_stops_the_producer(terminal: Terminal) -> None:
    done = terminal.run(f"{PRODUCE} stopped --property parse.key=true --property key.separator=,", stdin="a,b\nabc\n")
    assert done.returncode == 1
    assert done.stderr.endswith("No key separator found on line number 2: 'abc'\n")
    assert read(terminal, "stopped", 1) == ["b"]


def test_a_partition_is_read_from_an_offset(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} offsets", stdin="0\n1\n2\n3\n")
    line = f"{CONSUME} --topic offsets --partition 0"
    assert terminal.output(f"{line} --offset 2 --max-messages 1") == "2\n"
    assert terminal.output(f"{line} --offset earliest --max-messages 2") == "0\n1\n"
    late = terminal.run(f"{line} --offset latest --timeout-ms 300")
    assert (late.returncode, late.stdout) == (0, "")
    assert "TimeoutException" in late.stderr
    assert late.stderr.endswith("Processed a total of 0 messages\n")


def test_patterns_cover_several_topics(terminal: Terminal) -> None:
    for name in ("many-1", "many-2"):
        terminal.output(f"{PRODUCE} {name}", stdin=f"{name}\n")
    lines = terminal.output(f"{CONSUME} --include 'many-.*' --from-beginning --max-messages 2").splitlines()
    assert sorted(lines) == ["many-1", "many-2"]


def test_a_topic_that_comes_later_is_waited_for(terminal: Terminal) -> None:
    options = "--consumer-property allow.auto.create.topics=false"
    with terminal.start(f"{CONSUME} --topic later {options}") as consumer:
        wait_until(lambda: any("UNKNOWN_TOPIC_OR_PARTITION" in line for line in consumer.stderr), what="the warning")
        terminal.output(f"{PRODUCE} later", stdin="here at last\n")
        assert consumer.lines(1) == ["here at last"]
        assert consumer.interrupt() == 0


def test_values_are_deserialized_and_those_that_cannot_be_are_reported(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} numbers", stdin="abcd\nabc\nABCD\n")
    line = f"{CONSUME} --topic numbers --from-beginning --value-deserializer Integer"
    stopped = terminal.run(f"{line} --max-messages 3")
    assert stopped.stdout == f"{int.from_bytes(b'abcd')}\n"
    assert "Size of data received by IntegerDeserializer is not 4" in stopped.stderr
    skipping = terminal.output(f"{line} --max-messages 3 --skip-message-on-error")
    assert skipping.splitlines() == [str(int.from_bytes(b"abcd")), str(int.from_bytes(b"ABCD"))]


def test_a_reader_that_goes_away_ends_the_consumer(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} piped", stdin="".join(f"{number}\n" for number in range(100)))
    consumer = terminal.popen(f"{CONSUME} --topic piped --from-beginning")
    assert consumer.stdout is not None
    assert consumer.stderr is not None
    with consumer:
        assert consumer.stdout.readline() == b"0\n"
        consumer.stdout.close()
        # The pipe is noticed with the next record.
        terminal.output(f"{PRODUCE} piped", stdin="one more\n")
        complaint = consumer.stderr.read().decode()
        assert consumer.wait(30) == 0
    assert "Unable to write to standard out, closing consumer." in complaint
    assert "Traceback" not in complaint


def test_at_a_terminal_there_is_a_prompt(terminal: Terminal) -> None:
    ours, theirs = pty.openpty()
    producer = terminal.popen(f"{PRODUCE} typed", stdin=theirs)
    os.close(theirs)
    with producer:
        os.write(ours, b"First message\nSecond message\n\x04")
        assert producer.wait(60) == 0
        assert producer.stdout is not None
        assert producer.stdout.read() == b">>>"
    os.close(ours)
    assert read(terminal, "typed", 2) == ["First message", "Second message"]


def test_a_failed_record_is_logged_and_the_next_one_sent(terminal: Terminal) -> None:
    big = "x" * 2_000_000
    done = terminal.run(f"{PRODUCE} failing --producer-property max.request.size=1000000", stdin=f"{big}\nsmall\n")
    assert done.returncode == 0
    assert "Error when sending message to topic failing with key: null, value: 2000000 bytes with error:" in done.stderr
    assert read(terminal, "failing", 1) == ["small"]


def test_properties_without_a_counterpart_are_named(terminal: Terminal) -> None:
    done = terminal.run(f"{PRODUCE} warned --producer-property interceptor.classes=com.acme.Spy", stdin="x\n")
    assert done.returncode == 0
    assert "WARN interceptor.classes names Java classes" in done.stderr


def test_events_for_system_tests(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} events", stdin="x\n")
    lines = read(terminal, "events", 1, "--enable-systest-events")
    assert lines[0] == "x"
    assert re.fullmatch(r'\{"timestamp":\d+,"name":"shutdown_complete"\}', lines[1])


def test_records_since_a_duration(terminal: Terminal) -> None:
    terminal.output(f"{PRODUCE} recent", stdin="recent\n")
    line = f"{CONSUME} --topic recent --consumer-property auto.offset.reset=by_duration:PT1H --max-messages 1"
    assert terminal.output(line) == "recent\n"


def test_reading_backlogs_is_quick_and_complete(terminal: Terminal) -> None:
    lines = "".join(f"{number}\n" for number in range(100_000))
    terminal.output(f"{PRODUCE} backlog", stdin=lines)
    assert terminal.output(f"{CONSUME} --topic backlog --from-beginning --max-messages 100000") == lines
