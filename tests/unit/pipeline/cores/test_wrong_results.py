"""Functions and processors that give what their operator cannot use: told in clear words, with the user's line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.failures import ProcessingError, StateError
from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.punctuation import InvalidScheduleError
from moldau.streams import (
    Consumed,
    Grouped,
    KStream,
    LongSerde,
    Produced,
    PunctuationType,
    Record,
    StreamsBuilder,
    StringSerde,
    TopologyTestDriver,
)

TEXT = StringSerde()


def piped(describe: Callable[[KStream], KStream]) -> None:
    """Give one record to a stream described like this."""
    builder = StreamsBuilder()
    describe(builder.stream("in", Consumed.with_(TEXT, TEXT))).to("out", Produced.with_(TEXT, TEXT))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "value", timestamp_ms=10)


def processing(process: Callable[[ProcessorContext, Record], None]) -> Callable[[KStream], KStream]:
    class Processor:
        def init(self, context: ProcessorContext) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            process(self.context, record)

    return lambda stream: stream.process(Processor)


def starting(init: Callable[[ProcessorContext], Any]) -> Callable[[KStream], KStream]:
    class Processor:
        def init(self, context: ProcessorContext) -> None:
            init(context)

        def process(self, record: Record) -> None: ...

    return lambda stream: stream.process(Processor)


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (lambda s: s.map(lambda k, v: v), r"must return a pair \(key, value\), but returned 'value' \(str\)"),
        (lambda s: s.map(lambda k, v: None), r"a pair \(key, value\), but returned None"),
        (lambda s: s.flat_map(lambda k, v: [v]), r"a pair \(key, value\), but returned 'value'"),
        (lambda s: s.flat_map(lambda k, v: None), "must return any number of results, such as a list"),
        (lambda s: s.flat_map_values(lambda v: 5), r"any number of results, such as a list, but returned 5 \(int\)"),
        (processing(lambda context, record: context.forward(record.value)), r"forwards 'value' \(str\); forward a Rec"),
        (processing(lambda context, record: context.forward(record.key, record.value)), r"forwards 'k' \(str\)"),
    ],
)
def test_a_result_that_its_operator_cannot_use_is_shown(describe: Callable[[KStream], KStream], message: str) -> None:
    with pytest.raises(ProcessingError, match=rf"topic in.*test_wrong_results.py:\d+.*{message}"):
        piped(describe)


def test_rows_of_a_table_are_grouped_by_pairs() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", Consumed.with_(TEXT, TEXT))
    rows.group_by(lambda key, value: value, Grouped.with_(TEXT, TEXT)).count().to_stream().to(
        "out", Produced.with_(TEXT, LongSerde())
    )
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(ProcessingError, match=r"must return a pair \(key, value\), but returned 'value'"),
    ):
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "value")


def test_an_error_that_a_function_raises_itself_is_told_as_it_is() -> None:
    with pytest.raises(ProcessingError, match="raised ValueError: not this one"):
        piped(lambda stream: stream.map(raising))


def test_a_function_that_exits_does_not_take_its_worker_along() -> None:
    with pytest.raises(ProcessingError, match=r"test_wrong_results.py:\d+\) raised SystemExit: 3"):
        piped(lambda stream: stream.map_values(lambda value: sys.exit(3)))


def raising(key: str, value: str) -> tuple[str, str]:
    raise ValueError("not this one")


def test_a_processor_that_fails_before_any_record_names_its_line() -> None:
    def init(context: ProcessorContext) -> None:
        int("no number")

    with pytest.raises(
        ProcessingError,
        match=r"KSTREAM-PROCESSOR-\d+ \(test_wrong_results.py:\d+, failing at test_wrong_results.py:\d+\) could not "
        "start: init raised ValueError",
    ):
        piped(starting(init))


def test_a_processor_that_cannot_be_made_names_its_line() -> None:
    def supplier() -> Any:
        return {}["nothing"]

    with pytest.raises(ProcessingError, match="could not start: making it raised KeyError: 'nothing'"):
        piped(lambda stream: stream.process(supplier))


@pytest.mark.parametrize(
    ("init", "kind", "message"),
    [
        (
            lambda c: c.get_state_store("seen"),
            StateError,
            r"name it where .*test_wrong_results.*process\(supplier, 'see",
        ),
        (
            lambda c: c.schedule("5s", PunctuationType.STREAM_TIME, print),
            InvalidScheduleError,
            "ms or a timedelta, not",
        ),
        (
            lambda c: c.schedule(timedelta(seconds=5), "stream", print),
            InvalidScheduleError,
            "the type of a schedule is PunctuationType.STREAM_TIME or PunctuationType.WALL_CLOCK_TIME, not 'stream'",
        ),
    ],
)
def test_what_a_processor_asks_for_wrongly_is_refused(
    init: Callable[[ProcessorContext], Any], kind: type[MoldauError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        piped(starting(init))
