"""Stores that a processor fills from a topic: whole in every task, written by one processor and read by all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.pipeline.cores.failures import ProcessingError
from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.processors import ProcessorContext
from moldau.pipeline.cores.punctuation import PunctuationType
from moldau.pipeline.cores.records import Record
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.dsl.builder import StreamsBuilder
from moldau.pipeline.dsl.options.operators import Consumed
from moldau.pipeline.dsl.options.stores import StoreBuilder, Stores
from moldau.pipeline.ir.errors import TopologyError
from moldau.serdes.plain import StringSerde

TEXT = StringSerde()
TEXTS = Consumed.with_(TEXT, TEXT)
Work = Callable[[ProcessorContext, Record], None]


class Calling:
    """Does what a function says with each record."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.work(self.context, record)


def names() -> StoreBuilder:
    return Stores.key_value_store_builder(Stores.persistent_key_value_store("names"), TEXT, TEXT)


def put_upper(context: ProcessorContext, record: Record) -> None:
    value = None if record.value is None else record.value.upper()
    context.get_state_store("names").put(record.key, value)


def look_up(context: ProcessorContext, record: Record) -> None:
    context.forward(record.with_value(f"{record.value} {context.get_state_store('names').get(record.key)}"))


def running(fill: Work, *, use: Work = look_up, partitions: int = 1) -> InMemoryRun:
    builder = StreamsBuilder()
    builder.add_global_store(names(), "people", TEXTS, lambda: Calling(fill))
    builder.stream("in", TEXTS).process(lambda: Calling(use)).to("out")
    topology = builder.build().with_default_serdes(key=TEXT, value=TEXT)
    return InMemoryRun(topology, TaskSettings(), partitions=partitions)


def told(run: InMemoryRun) -> list[str]:
    return [(row.value or b"").decode() for row in run.drain() if row.topic == "out"]


def test_every_partition_knows_what_the_processor_has_put() -> None:
    run = running(put_upper, partitions=4)
    for key in ("a", "b", "c", "d"):
        run.pipe("people", key.encode(), f"{key}-name".encode(), 1)
    run.pipe("people", b"d", None, 2)
    for key in ("a", "b", "c", "d"):
        run.pipe("in", key.encode(), b"is", 3)
    assert sorted(told(run)) == ["is A-NAME", "is B-NAME", "is C-NAME", "is None"]


def test_what_was_put_survives_a_restart() -> None:
    run = running(put_upper)
    run.pipe("people", b"a", b"x", 1)
    run.rebuild()
    run.pipe("in", b"a", b"is", 2)
    assert told(run) == ["is X"]


def test_the_store_moves_neither_stream_time_nor_schedules() -> None:
    def tell_time(context: ProcessorContext, record: Record) -> None:
        context.forward(record.with_value(str(context.current_stream_time_ms())))

    run = running(put_upper, use=tell_time)
    run.pipe("people", b"a", b"x", 1000)
    run.pipe("in", b"a", b"v", 5)
    assert told(run) == ["5"]


def test_other_processors_may_only_read_it() -> None:
    run = running(put_upper, use=put_upper)
    with pytest.raises(ProcessingError, match="'names' is global and read-only here: put is not allowed"):
        run.pipe("in", b"a", b"v", 5)


@pytest.mark.parametrize(
    ("fill", "refusal"),
    [
        (lambda context, record: context.schedule(5, PunctuationType.STREAM_TIME, print), "has no schedules"),
        (lambda context, record: context.current_stream_time_ms(), "there is no stream time there"),
        (lambda context, record: context.get_state_store("others"), "has no access to store 'others'"),
    ],
)
def test_what_a_global_processor_cannot_have_is_refused(fill: Work, refusal: str) -> None:
    with pytest.raises(ProcessingError, match=refusal):
        running(fill).pipe("people", b"a", b"x", 1)


def test_it_is_described_as_kafka_streams_does() -> None:
    builder = StreamsBuilder()
    builder.add_global_store(names(), "people", TEXTS, lambda: Calling(put_upper))
    builder.stream("in", TEXTS).process(lambda: Calling(look_up)).to("out")
    assert (
        builder.build()
        .describe()
        .startswith(
            "Topologies:\n"
            "   Sub-topology: 0 for global store (will not generate tasks)\n"
            "    Source: KSTREAM-SOURCE-0000000000 (topics: [people])\n"
            "      --> KTABLE-SOURCE-0000000001\n"
            "    Processor: KTABLE-SOURCE-0000000001 (stores: [names])\n"
        )
    )


def test_a_store_has_one_name_and_one_builder() -> None:
    builder, store = StreamsBuilder(), names()
    builder.add_state_store(store).add_state_store(store)
    with pytest.raises(TopologyError, match="a store called names exists already"):
        builder.add_state_store(names())
    with pytest.raises(TopologyError, match="a store called names exists already"):
        builder.add_global_store(store, "people", TEXTS, lambda: Calling(put_upper))
    with pytest.raises(TopologyError, match="add_global_store takes what Stores builds"):
        builder.add_global_store("names", "people", TEXTS, lambda: Calling(put_upper))  # type: ignore[arg-type]
