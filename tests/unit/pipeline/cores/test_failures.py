"""Poison records and failing functions: which record, which line, and what follows from it."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
from tests.unit.pipeline.cores.piped_tables import Pipe

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.failures import (
    DeserializationError,
    ExtractedTimestampError,
    HandlerError,
    ProcessingError,
    RecordError,
    SerializationError,
)
from moldau.pipeline.cores.handlers import Response, log_and_continue
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.operators import Grouped
from moldau.serdes.plain import DoubleSerde, LongSerde

CONTINUE = {"processing_handler": log_and_continue, "deserialization_handler": log_and_continue}


def reciprocal(value: int) -> float:
    return 1 / value


FAILING_LINE = inspect.getsourcelines(reciprocal)[1] + 1


def test_a_failing_function_names_record_node_and_line() -> None:
    pipe = Pipe(lambda stream: stream.map_values(reciprocal, named="upside-down"))
    pipe("a", 1, 1)

    with pytest.raises(ProcessingError) as caught:
        pipe("a", 0, 2)

    assert str(caught.value).startswith("topic in, partition 0, offset 1: upside-down (test_failures.py:")
    assert f"failing at test_failures.py:{FAILING_LINE}" in str(caught.value)
    assert "ZeroDivisionError" in str(caught.value)
    assert (caught.value.node, caught.value.origin.line) == ("upside-down", FAILING_LINE)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_travels_home_from_a_worker() -> None:
    pipe = Pipe(lambda stream: stream.map_values(reciprocal))
    with pytest.raises(ProcessingError) as caught:
        pipe("a", 0, 1)

    error = pickle.loads(pickle.dumps(caught.value))

    assert type(error) is ProcessingError
    assert (str(error), error.place, error.origin) == (str(caught.value), caught.value.place, caught.value.origin)


def test_a_pipeline_may_go_on_without_the_record() -> None:
    pipe = Pipe(lambda stream: stream.map_values(reciprocal), **CONTINUE)

    assert [pipe("a", value, 1) for value in (1, 0, 2)] == [[("a", 1.0, 1)], [], [("a", 0.5, 1)]]
    assert pipe.dropped() == {"processing failed": 1}


def test_only_the_failing_branch_loses_the_record() -> None:
    def build(stream):  # type: ignore[no-untyped-def]
        return stream.flat_map_values(lambda value: [value, value - 1]).map_values(reciprocal)

    pipe = Pipe(build, **CONTINUE)

    assert pipe("a", 1, 1) == [("a", 1.0, 1)]


def test_a_state_change_before_the_failure_stays_when_the_pipeline_goes_on() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count().map_values(lambda count: 1 / (count - 2)), **CONTINUE)

    assert pipe("a", "x", 1) == [("a", -1.0, 1)]
    assert pipe("a", "x", 2) == []
    assert pipe("a", "x", 3) == [("a", 1.0, 3)]


def test_a_users_handler_decides_by_the_error() -> None:
    seen: list[tuple[RecordError, Any]] = []

    def handler(error: RecordError, record: Any) -> Response:
        seen.append((error, record))
        return Response.FAIL if "ValueError" in str(error) else Response.CONTINUE

    pipe = Pipe(lambda stream: stream.map_values(lambda value: int(value) // 0), processing_handler=handler)

    assert pipe("a", "1", 1) == []
    with pytest.raises(RecordError, match="ValueError"):
        pipe("a", "x", 2)
    assert [record.offset for _, record in seen] == [0, 1]


def test_a_handler_that_decides_nothing_stops_the_pipeline() -> None:
    silent: dict[str, Any] = dict.fromkeys(CONTINUE, lambda error, record: None)
    pipe = Pipe(lambda stream: stream.map_values(reciprocal), **silent)

    with pytest.raises(HandlerError, match=r"ZeroDivisionError.*returned None instead of HandlerResponse\.CONTINUE"):
        pipe("a", 0, 1)
    with pytest.raises(HandlerError, match=r"cannot be read.*returned None"):
        pipe.run.pipe("in", b"a", b"{", 1)


def test_a_handler_that_fails_itself_stops_the_pipeline_and_is_not_asked_again() -> None:
    asked: list[RecordError] = []

    def handler(error: RecordError, record: Any) -> Response:
        asked.append(error)
        if len(asked) == 1:
            raise KeyError("no such word")
        return Response.CONTINUE

    pipe = Pipe(
        lambda stream: stream.filter(lambda key, value: True).map_values(reciprocal), processing_handler=handler
    )

    with pytest.raises(HandlerError, match=r"ZeroDivisionError.*the exception handler raised KeyError: 'no such word'"):
        pipe("a", 0, 1)
    assert len(asked) == 1


def test_unreadable_bytes_stop_the_pipeline_with_a_clear_word() -> None:
    pipe = Pipe(lambda stream: stream)

    with pytest.raises(DeserializationError, match=r"topic in, partition 0, offset 0: the value b'\{' cannot be read"):
        pipe.run.pipe("in", b"a", b"{", 1)
    with pytest.raises(DeserializationError, match=r"the key b'\\xff' cannot be read"):
        pipe.run.pipe("in", b"\xff", b"1", 1)


def test_unreadable_records_can_be_left_behind() -> None:
    pipe = Pipe(lambda stream: stream, **CONTINUE)
    pipe.run.pipe("in", b"a", b"{", 1)

    assert pipe("a", 1, 1) == [("a", 1, 1)]
    assert pipe.dropped() == {"cannot be read": 1}


def test_dead_letters_carry_the_record_and_its_story() -> None:
    pipe = Pipe(lambda stream: stream.map_values(reciprocal), **CONTINUE, dead_letter_topic="dead")
    pipe.run.pipe("in", b"a", b"{", 1)
    pipe.run.pipe("in", b"b", b"0", 2)

    unreadable, failed = [row for row in pipe.run.drain() if row.topic == "dead"]

    assert (unreadable.key, unreadable.value, unreadable.timestamp) == (b"a", b"{", 1)
    assert (failed.key, failed.value, failed.timestamp) == (b"b", b"0", 2)
    story = dict(failed.headers)
    assert story["__streams.errors.exception"] == b"builtins.ZeroDivisionError"
    assert story["__streams.errors.topic"] == b"in"
    assert story["__streams.errors.offset"] == b"1"
    assert b"division by zero" in (story["__streams.errors.message"] or b"")


def test_a_result_that_its_serde_cannot_write_names_the_node() -> None:
    pipe = Pipe(lambda stream: stream.map_values(lambda value: {1, 2}))

    with pytest.raises(
        SerializationError, match=r"KSTREAM-SINK.*the value \{1, 2\} \(set\).*cannot be written as JSON"
    ):
        pipe("a", 1, 1)


def test_a_record_without_a_time_is_refused() -> None:
    pipe = Pipe(lambda stream: stream)

    with pytest.raises(ExtractedTimestampError, match="has no timestamp"):
        pipe("a", 1, -1)


def test_records_without_a_time_can_be_left_behind_or_get_their_partitions() -> None:
    skip = TaskSettings.of({"default.timestamp.extractor": "LogAndSkipOnInvalidTimestamp"}).timestamps
    pipe = Pipe(lambda stream: stream, timestamps=skip)
    assert [pipe("a", 1, timestamp) for timestamp in (5, -1)] == [[("a", 1, 5)], []]
    assert pipe.dropped() == {"negative extracted timestamp": 1}

    name = "org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp"
    follow = TaskSettings.of({"default.timestamp.extractor": name}).timestamps
    pipe = Pipe(lambda stream: stream, timestamps=follow)
    assert [pipe("a", 1, timestamp) for timestamp in (5, 3, -1)] == [[("a", 1, 5)], [("a", 1, 3)], [("a", 1, 5)]]
    with pytest.raises(InvalidConfigError, match="is not a timestamp extractor"):
        TaskSettings.of({"default.timestamp.extractor": "Tomorrow"})


@pytest.mark.parametrize(
    "name",
    [
        "log-and-continue",
        "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler",
        "LogAndContinueProcessingExceptionHandler",
        "continue",
    ],
)
def test_handlers_are_known_by_kafkas_names(name: str) -> None:
    settings = TaskSettings.of({"processing.exception.handler": name, "deserialization.exception.handler": name})

    assert settings.processing_handler is log_and_continue
    assert settings.deserialization_handler is log_and_continue


def test_an_unknown_handler_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"processing\.exception\.handler: 'MyHandler' is not a handler"):
        TaskSettings.of({"processing.exception.handler": "MyHandler"})
    with pytest.raises(InvalidConfigError, match="not a number of bytes"):
        TaskSettings.of({"statestore.cache.max.bytes": "much"})


def test_a_key_of_the_wrong_type_is_named_in_clear_words() -> None:
    pipe = Pipe(lambda stream: stream.select_key(lambda key, value: 5).repartition().group_by_key().count())

    with pytest.raises(SerializationError, match=r"the key 5 \(int\).*is not text"):
        pipe("a", 1, 1)

    pipe = Pipe(lambda stream: stream.group_by_key(Grouped.with_(LongSerde(), None)).count())
    with pytest.raises(
        ProcessingError, match=r"KSTREAM-AGGREGATE-\d+ .*cannot store the key: 'a' \(str\) is not a long"
    ):
        pipe("a", 1, 1)


def test_a_store_of_doubles_gives_doubles_also_before_a_restart() -> None:
    doubles = Materialized.with_(None, DoubleSerde())
    pipe = Pipe(
        lambda stream: (
            stream.group_by_key().aggregate(int, lambda key, value, total: total + value, doubles).map_values(str)
        )
    )

    assert pipe("a", 1, 1) == [("a", "1", 1)]
    assert pipe("a", 1, 1) == [("a", "2.0", 1)]


def test_a_value_of_the_wrong_type_is_refused_when_it_is_stored() -> None:
    longs = Materialized.with_(None, LongSerde())
    pipe = Pipe(lambda stream: stream.group_by_key().aggregate(int, lambda key, value, total: total + value, longs))
    pipe("a", 1, 1)

    with pytest.raises(RecordError, match="topic in, partition 0, offset 1"):
        pipe("a", 0.5, 2)
