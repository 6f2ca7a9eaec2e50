"""Which outputs run natively, decided output by output."""

from __future__ import annotations

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.spark.native.checks import NativeRefusalError
from moldau.pipeline.spark.sections import Cut, cut_topology, handover
from moldau.streams import (
    Consumed,
    Grouped,
    KStream,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    aggregate,
    value,
)

TEXT, LONG = StringSerde(), LongSerde()
TEXTS, TO_TEXT, TO_LONG = Consumed.with_(TEXT, TEXT), Produced.with_(TEXT, TEXT), Produced.with_(TEXT, LONG)


class Sketch:
    """A topology with one source, to be cut."""

    def __init__(self) -> None:
        self.builder = StreamsBuilder()
        self.stream: KStream[str, str] = self.builder.stream("in", TEXTS)

    def cut(self, **config: str) -> Cut:
        settings = TaskSettings.of({name.replace("_", "."): setting for name, setting in config.items()})
        return cut_topology(self.builder.build(), settings)


def test_a_function_ahead_of_a_count_leaves_the_count_to_spark() -> None:
    sketch = Sketch()
    sketch.stream.map_values(str.upper).group_by_key().count().to_stream().to("out", TO_LONG)

    cut = sketch.cut()

    (section,) = cut.sections
    assert (section.before is not None, section.after, cut.hosted) == (True, None, None)
    assert section.before is not None
    assert isinstance(section.before.nodes[-1], ir.Repartition)
    assert cut.native_outputs == (section.aggregate.name,)  # type: ignore[union-attr]
    assert "KSTREAM-MAPVALUES" in str(cut.refusals[cut.native_outputs[0]])


def test_a_function_behind_a_count_reads_its_changes() -> None:
    sketch = Sketch()
    sketch.stream.group_by_key().count().to_stream(lambda key, count: key[::-1]).to("out", TO_LONG)

    (section,) = sketch.cut().sections

    assert section.before is None
    assert section.after is not None
    assert [type(node) for node in section.after.nodes] == [ir.StreamSource, ir.SelectKey, ir.Sink]
    assert section.after.sources[0].topics == ("moldau-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog",)


def test_a_repartitioning_that_is_there_hands_the_records_over() -> None:
    sketch = Sketch()
    sketch.stream.group_by(lambda _, text: text, Grouped.with_(TEXT, TEXT)).count().to_stream().to("out", TO_LONG)

    (section,) = sketch.cut().sections

    assert section.aggregate is not None
    assert handover(section.aggregate) is section.aggregate.input


def test_branches_are_decided_one_by_one() -> None:
    sketch = Sketch()
    sketch.stream.filter(value != "x").to("native", TO_TEXT)
    sketch.stream.map_values(str.upper).to("python", TO_TEXT)

    cut = sketch.cut()

    (section,) = cut.sections
    assert [sink.topic for sink in section.topology.sinks] == ["native"]
    assert cut.hosted is not None
    assert [sink.topic for sink in cut.hosted.sinks] == ["python"]


def test_a_function_is_called_once_so_that_what_shares_it_stays_together() -> None:
    sketch = Sketch()
    shouted = sketch.stream.map_values(str.upper)
    shouted.to("copy", TO_TEXT)
    shouted.group_by_key().count().to_stream().to("out", TO_LONG)

    cut = sketch.cut()

    assert not cut.sections
    assert any("needs Python and feeds KSTREAM-SINK" in str(refusal) for refusal in cut.refusals.values())


def test_changes_that_go_on_to_state_stay_in_python_for_the_sake_of_their_order() -> None:
    sketch = Sketch()
    counts = sketch.stream.group_by_key().count().to_stream()
    counts.group_by(lambda key, count: "all", Grouped.with_(TEXT, LONG)).reduce(lambda one, other: other)

    assert "in no defined order" in str(next(iter(sketch.cut().refusals.values())))


def test_changes_that_meet_other_records_stay_in_python() -> None:
    sketch = Sketch()
    counts = sketch.stream.group_by_key().count().to_stream().map_values(str)
    counts.merge(sketch.stream).to("out", TO_TEXT)

    cut = sketch.cut()

    assert not cut.sections
    assert "merged with other records" in str(next(iter(cut.refusals.values())))


def test_a_store_that_a_processor_reads_stays_in_python() -> None:
    class Look:
        def process(self, record: object) -> None: ...

    sketch = Sketch()
    sketch.stream.group_by_key().count(Materialized.as_("counts"))
    sketch.builder.stream("other", TEXTS).process(Look, "counts")

    cut = sketch.cut()

    assert not cut.sections
    assert any("reads its store" in str(refusal) for refusal in cut.refusals.values())


def test_one_window_does_not_keep_other_counts_from_spark() -> None:
    sketch = Sketch()
    sketch.stream.group_by_key().count(Materialized.as_("all"))
    sketch.stream.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(1000)).count(Materialized.as_("windows"))

    cut = sketch.cut()

    assert [section.aggregate.table.store for section in cut.sections if section.aggregate] == ["all"]
    assert cut.hosted is not None
    assert list(cut.hosted.stores) == ["windows"]


def test_what_turned_out_to_need_python_is_cut_out() -> None:
    sketch = Sketch()
    sketch.stream.filter(value != "x").group_by_key().count().to_stream().to("out", TO_LONG)
    topology = sketch.builder.build()
    node = next(node for node in topology.nodes if isinstance(node, ir.Filter))

    (section,) = cut_topology(topology, TaskSettings(), {node.name: NativeRefusalError(node, "no")}).sections

    assert section.before is not None


def test_an_extractor_of_timestamps_for_all_sources_needs_python() -> None:
    sketch = Sketch()
    sketch.stream.to("out", TO_TEXT)

    cut = sketch.cut(default_timestamp_extractor="LogAndSkipOnInvalidTimestamp")

    assert not cut.sections
    assert "timestamp extractor" in str(next(iter(cut.refusals.values())))


def test_sums_of_what_a_function_gives_are_read_as_the_store_writes_them() -> None:
    sketch = Sketch()
    lengths = sketch.stream.map_values(len).group_by_key(Grouped.with_(TEXT, LONG))
    lengths.reduce(aggregate + value, Materialized.with_(TEXT, LONG)).to_stream().to("out", TO_LONG)

    (section,) = sketch.cut().sections

    assert section.aggregate is not None
    assert handover(section.aggregate).value_serde == LONG
