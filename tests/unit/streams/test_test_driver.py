"""The test driver: piped input, results, time and state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.failures import ProcessingError, StateError
from moldau.pipeline.cores.in_memory_run import UnknownTopicError
from moldau.streams import (
    Consumed,
    ContextualProcessor,
    Grouped,
    LongSerde,
    Materialized,
    ProcessorContext,
    Produced,
    PunctuationType,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    Window,
    Windowed,
)
from moldau.streams.piped_topics import EmptyTopicError, NoTimestampError, TestInputTopic, TestOutputTopic, TestRecord
from moldau.streams.test_driver import UnknownPartitionError

STRING, LONG = StringSerde(), LongSerde()
CONFIG = {"default.key.serde": STRING, "default.value.serde": STRING, "statestore.cache.max.bytes": "0"}


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines", Consumed.with_(STRING, STRING)).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, Grouped.with_(STRING, STRING)).count(Materialized.as_("counts"))
    counts.to_stream().to("out", Produced.with_(STRING, LONG))
    return builder.build()


@pytest.fixture(params=[1, 3])
def driver(request: pytest.FixtureRequest) -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(word_count(), partitions=request.param, initial_wall_clock_ms=1000) as driver:
        yield driver


def ends(driver: TopologyTestDriver) -> tuple[TestInputTopic, TestOutputTopic]:
    return driver.create_input_topic("lines", STRING, STRING), driver.create_output_topic("out", STRING, LONG)


def test_word_count_tells_every_word(driver: TopologyTestDriver) -> None:
    lines, counts = ends(driver)
    lines.pipe_input("k", "hello streams hello", 7)

    assert counts.read_record() == TestRecord("hello", 1, 7)
    assert counts.read_key_value() == ("streams", 1)
    assert counts.read_value() == 2
    assert counts.is_empty()
    with pytest.raises(EmptyTopicError, match="topic out holds no record"):
        counts.read_value()


def test_results_can_be_read_as_lists_and_maps(driver: TopologyTestDriver) -> None:
    lines, counts = ends(driver)
    lines.pipe_value_list(["a b", "a"])
    assert counts.get_queue_size() == 3
    assert counts.read_key_values_to_list() == [("a", 1), ("b", 1), ("a", 2)]

    lines.pipe_value("a b")
    assert counts.read_key_values_to_map() == {"a": 3, "b": 2}

    lines.pipe_value("b")
    assert counts.read_values_to_list() == [3]


def test_the_time_of_an_input_topic_advances_with_its_records(driver: TopologyTestDriver) -> None:
    counts = driver.create_output_topic("out", STRING, LONG)
    lines = driver.create_input_topic("lines", STRING, STRING, start_timestamp_ms=100, auto_advance_ms=10)
    lines.pipe_input("k", "a")
    lines.advance_time(5)
    lines.pipe_input("k", "b")
    lines.pipe_key_value_list([("k", "c"), ("k", "d")], start_timestamp_ms=7, advance_ms=2)
    lines.pipe_record_list([TestRecord("k", "e"), TestRecord("k", "f", 3)])

    times = {record.key: record.timestamp_ms for record in counts.read_records_to_list()}

    assert times == {"a": 100, "b": 115, "c": 7, "d": 9, "e": 125, "f": 3}


def test_without_a_start_records_have_the_drivers_time(driver: TopologyTestDriver) -> None:
    lines, counts = ends(driver)
    lines.pipe_value("a")

    assert counts.read_record().timestamp_ms == driver.wall_clock_ms == 1000


def test_stores_are_read_over_all_partitions(driver: TopologyTestDriver) -> None:
    lines, _ = ends(driver)
    lines.pipe_input("k", "b a c a", 7)
    store = driver.get_key_value_store("counts")

    assert store.get("a") == 2
    assert store.get("z") is None
    assert list(store.all()) == [("a", 2), ("b", 1), ("c", 1)]
    assert list(store.range("b", "c")) == [("b", 1), ("c", 1)]
    assert list(store.reverse_range("b", None)) == [("c", 1), ("b", 1)]
    assert list(store.reverse_all()) == [("c", 1), ("b", 1), ("a", 2)]
    assert list(store.prefix_scan(b"a")) == [("a", 2)]
    assert store.approximate_num_entries() == 3
    assert driver.get_timestamped_key_value_store("counts").get("a") == (2, 7)
    assert list(driver.get_all_state_stores()) == ["counts"]


def test_a_store_that_is_not_there_names_those_that_are(driver: TopologyTestDriver) -> None:
    with pytest.raises(StateError, match="no store 'count'; the stores of this topology are: counts"):
        driver.get_key_value_store("count")
    with pytest.raises(StateError, match="is a TimestampedStore, not a WindowStore"):
        driver.get_window_store("counts")


def test_repartition_topics_can_be_read_too(driver: TopologyTestDriver) -> None:
    lines, _ = ends(driver)
    lines.pipe_value("a")

    assert driver.produced_topic_names() == {"out", "moldau-counts-repartition"}


def test_topics_that_were_read_to_their_end_have_been_produced_to_all_the_same(driver: TopologyTestDriver) -> None:
    lines, counts = ends(driver)
    assert counts.is_empty()
    assert driver.produced_topic_names() == set()
    lines.pipe_value("a")
    counts.read_values_to_list()

    assert driver.produced_topic_names() == {"out", "moldau-counts-repartition"}


def test_a_partition_that_is_not_there_is_refused_with_the_way_to_more() -> None:
    with (
        TopologyTestDriver(word_count(), partitions=2) as driver,
        pytest.raises(UnknownPartitionError, match=r"lines has partitions 0 to 1 here.*partitions=6"),
    ):
        driver.create_input_topic("lines", STRING, STRING).pipe_input("k", "a", partition=5)


@pytest.mark.parametrize("second", [1000, timedelta(seconds=1)])
def test_time_advances_by_milliseconds_or_timedeltas(driver: TopologyTestDriver, second: int | timedelta) -> None:
    lines, counts = ends(driver)
    driver.advance_wall_clock_time(second)
    lines.advance_time(second)
    lines.pipe_value("a")

    assert driver.wall_clock_ms == counts.read_record().timestamp_ms == 2000
    with pytest.raises(TopologyError, match="the advance of a topic's time must be at least 0 ms, not -1 ms"):
        lines.advance_time(-1)


def test_a_topic_that_nobody_reads_is_refused(driver: TopologyTestDriver) -> None:
    with pytest.raises(UnknownTopicError, match="no source of this topology reads the topic line"):
        driver.create_input_topic("line", STRING, STRING).pipe_value("a")


def test_reading_a_topic_that_nothing_writes_names_those_that_are(driver: TopologyTestDriver) -> None:
    ends(driver)
    with pytest.raises(EmptyTopicError, match=r"topic outt holds no record that was not read yet; .* writes to out$"):
        driver.create_output_topic("outt", STRING, LONG).read_value()


@pytest.mark.parametrize("moment", [1.5, datetime(2024, 1, 1), "now"])
def test_a_time_that_is_none_is_refused_where_it_is_given(driver: TopologyTestDriver, moment: Any) -> None:
    lines, _ = ends(driver)
    with pytest.raises(NoTimestampError, match=r"whole milliseconds since 1970, such as int\(time.time\(\) \* 1000\)"):
        lines.pipe_input("k", "a", timestamp_ms=moment)


def test_slips_with_the_driver_are_answered(driver: TopologyTestDriver) -> None:
    kind: Any = StringSerde
    with pytest.raises(TopologyError, match=r"is not a serde.*call it: StringSerde\(\)"):
        driver.create_input_topic("lines", kind, kind)
    with pytest.raises(AttributeError, match="TopologyTestDriver has no createInputTopic; in Python it is create_inp"):
        driver.createInputTopic  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="TestOutputTopic has no readKeyValue; in Python it is read_key_value"):
        driver.create_output_topic("out", STRING, LONG).readKeyValue  # type: ignore[attr-defined]  # noqa: B018


def test_a_builder_is_no_topology_yet() -> None:
    with pytest.raises(TopologyError, match=r"a topology is needed here, not StreamsBuilder; call its build\(\)"):
        TopologyTestDriver(StreamsBuilder())  # type: ignore[arg-type]


def test_a_failing_function_names_record_and_line(driver: TopologyTestDriver) -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(int).to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as failing:
        topic = failing.create_input_topic("in", STRING, STRING)
        with pytest.raises(ProcessingError, match=r"topic in, partition 0, offset 0.*test_test_driver\.py:\d+"):
            topic.pipe_value("x")


def test_an_engine_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="no test engine 'flink'; the engines are: memory, spark"):
        TopologyTestDriver(word_count(), engine="flink")


def test_headers_pass_through() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper).to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v", 1, headers=(("trace", b"7"),))

        assert driver.create_output_topic("out", STRING, STRING).read_record().headers == (("trace", b"7"),)


def test_a_topic_written_and_read_by_one_topology_is_carried_around() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda value: value + "!").to("between")
    builder.stream("between").map_values(lambda value: value + "?").to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")

        assert driver.create_output_topic("out", STRING, STRING).read_value() == "v!?"


class Ticking:
    """Counts records and tells the count when the wall clock says so."""

    def init(self, context: Any) -> None:
        self.seen = 0
        self.context = context
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Record) -> None:
        self.seen += 1

    def tell(self, now: int) -> None:
        self.context.forward(Record("seen", str(self.seen), now))

    def close(self) -> None:
        pass


def test_the_wall_clock_advances_when_told() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Ticking).to("out")
    with TopologyTestDriver(builder.build(), CONFIG, initial_wall_clock_ms=100) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "v")
        out = driver.create_output_topic("out", STRING, STRING)
        driver.advance_wall_clock_time(9)
        assert out.is_empty()
        driver.advance_wall_clock_time(1)

        assert out.read_record() == TestRecord("seen", "1", 110)


def test_window_and_session_stores_are_read_over_all_partitions() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(TimeWindows.of_size_with_no_grace(10)).count(Materialized.as_("windows").with_retention(100))
    sessions = SessionWindows.of_inactivity_gap_and_grace(10, 100)
    grouped.windowed_by(sessions).count(Materialized.as_("sessions"))
    with TopologyTestDriver(builder.build(), CONFIG, partitions=2) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        for key, timestamp in [("b", 1), ("a", 2), ("a", 12)]:
            topic.pipe_input(key, "x", timestamp)
        windows, read = driver.get_window_store("windows"), driver.get_session_store("sessions")

        assert windows.fetch_at("a", 10) == 1
        assert list(windows.fetch("a", 0, 99)) == [(0, 1), (10, 1)]
        assert list(windows.backward_fetch("a")) == [(10, 1), (0, 1)]
        assert [(w.key, w.window.start) for w, _ in windows.fetch_all(0, 9)] == [("a", 0), ("b", 0)]
        assert [(w.key, w.window.start) for w, _ in windows.fetch_key_range("b", None, 0, 99)] == [("b", 0)]
        assert [(w.key, w.window.start) for w, _ in windows.all()] == [("a", 0), ("b", 0), ("a", 10)]
        assert list(read.fetch("a")) == [(Windowed("a", Window(2, 12)), 2)]
        assert list(read.find_sessions("a", 12, 12)) == [(Windowed("a", Window(2, 12)), 2)]
        assert list(read.find_sessions("a", 13, 99)) == []
        assert read.fetch_session("b", 1, 1) == 1
        assert [w.key for w, _ in read.all()] == ["a", "b"]


def test_rows_of_a_global_table_are_seen_once_however_many_tasks_have_them() -> None:
    builder = StreamsBuilder()
    rows = builder.global_table("rows", materialized=Materialized.as_("rows"))
    builder.stream("in").join(rows, lambda one, other: other, key_selector=lambda key, value: key).to("out")
    with TopologyTestDriver(builder.build(), CONFIG, partitions=3) as driver:
        driver.create_input_topic("rows", STRING, STRING).pipe_input("a", "1")
        store = driver.get_key_value_store("rows")

        assert list(store.all()) == [("a", "1")]
        assert store.approximate_num_entries() == 1


def test_a_versioned_table_is_read_as_of_any_time() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized.as_(Stores.persistent_versioned_key_value_store("rows", 1000)))
    with TopologyTestDriver(builder.build(), CONFIG, partitions=2) as driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_input("a", "old", 10)
        topic.pipe_input("a", "new", 20)
        rows = driver.get_versioned_key_value_store("rows")

        assert rows.get("a") == ("new", 20)
        assert rows.get_as_of("a", 19) == ("old", 10)
        assert rows.get_as_of("a", 9) is None


class Correcting:
    """Tells each value with the one that was there at the record's time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        self.past = context.get_state_store("past")

    def process(self, record: Record[str, str]) -> None:
        before = self.past.get_as_of(record.key, record.timestamp)
        if record.value == "gone":
            self.past.delete(record.key, record.timestamp)
        else:
            self.past.put(record.key, record.value, record.timestamp)
        self.context.forward(record.with_value(f"{before.value if before else '-'} {record.value}"))


def test_a_processor_may_keep_values_with_their_past() -> None:
    past = Stores.persistent_versioned_key_value_store("past", timedelta(seconds=1))
    builder = StreamsBuilder()
    builder.add_state_store(Stores.versioned_key_value_store_builder(past, STRING, STRING))
    builder.stream("in").process(Correcting, "past").to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        topic, out = driver.create_input_topic("in", STRING, STRING), driver.create_output_topic("out", STRING, STRING)
        for value, timestamp in (("a", 10), ("c", 30), ("b", 20), ("gone", 40), ("d", 50)):
            topic.pipe_input("k", value, timestamp)

        assert out.read_values_to_list() == ["- a", "a c", "a b", "c gone", "- d"]
        assert driver.get_versioned_key_value_store("past").get_as_of("k", 25) == ("b", 20)


def test_a_versioned_store_is_not_taken_for_a_plain_one() -> None:
    past = Stores.persistent_versioned_key_value_store("past", 1000)
    with pytest.raises(TopologyError, match="is used as a key-value store but is a versioned key-value store"):
        Stores.key_value_store_builder(past, STRING, STRING)


class Doubling(ContextualProcessor[str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(record.value * 2))


def test_a_processor_may_inherit_what_all_processors_do() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process_values(Doubling).to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "ab")

        assert driver.create_output_topic("out", STRING, STRING).read_value() == "abab"


def test_a_processor_without_work_says_what_it_lacks() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(ContextualProcessor)
    with (
        TopologyTestDriver(builder.build(), CONFIG) as driver,
        pytest.raises(ProcessingError, match=r"ContextualProcessor needs a method process\(self, record\)"),
    ):
        driver.create_input_topic("in", STRING, STRING).pipe_input("k", "ab")
