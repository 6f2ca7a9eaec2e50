"""A task's input and everything behind it as one loop over columns, where all processors behind it can be fused.

A record then costs no `Record` and no call per processor, and what is the same for all records is done once per batch:
columns are deserialized as a whole, a column that nobody looks at is not even converted, and unchanged keys keep their
bytes. Each record is still processed completely before the next one, by the same functions in the same order. Records
that need more (a serde that fails or uses headers, an exception handler, schedules, caches) take the record-by-record
way of `inputs`. Start at `Fused.process`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.core.errors import ServiceError
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import FUSED, failing_step
from moldau.pipeline.cores.fusing.columns import ColumnPart, Counted, InputColumns, OutputColumns
from moldau.pipeline.cores.fusing.emitter import Emitter, Flow, NotFusedError, Part, is_exact, is_text
from moldau.pipeline.cores.fusing.steps import Loop
from moldau.pipeline.cores.outputs import RepartitionOutput, SinkProcessor
from moldau.pipeline.cores.processor import Link, Processor
from moldau.pipeline.cores.records import Record
from moldau.pipeline.cores.serialization import decoder
from moldau.pipeline.ir import nodes as ir
from moldau.serdes.plain import BytesSerde
from moldau.serdes.serde import Serde, wants_headers

__all__ = ["Fused", "Outputs", "fused_input"]

Outputs = list[OutputColumns | Counted]

_Variant = tuple[bool, bool, bool, bool, bool, bool]


def fused_input(
    node: ir.Source | ir.Repartition,
    processor: Processor,
    context: TaskContext,
    children: Mapping[Processor, Sequence[Link]],
) -> Fused | None:
    """The fused loop of an input; None if a processor behind it cannot be fused."""
    serdes = (node.key_serde, node.value_serde)
    if any(map(wants_headers, serdes)) or isinstance(node, ir.GlobalTableSource):
        return None
    if isinstance(node, ir.Repartition) and node.carries_changes:
        return None
    fused = Fused(node, processor, context, children)
    try:
        fused.compile((True, True, True, True, False, False))
    except NotFusedError:
        return None
    return fused


class Fused:
    """The loop of one input, compiled for what is known about a batch: nulls, headers, order."""

    def __init__(
        self,
        node: ir.Source | ir.Repartition,
        processor: Processor,
        context: TaskContext,
        children: Mapping[Processor, Sequence[Link]],
    ) -> None:
        self._node = node
        self._processor = processor
        self._context = context
        self._children = children
        self._compiled: dict[_Variant, _Compiled] = {}
        self._decoders: dict[tuple[str, str], Callable[[bytes], Any]] = {}

    def process(
        self, columns: InputColumns, topic: str, *, notes_causes: bool = False, counts: bool = False
    ) -> Outputs | None:
        """Process records of one topic; None, and nothing is done, if they must be taken one by one.

        With `notes_causes` outputs tell which record caused them; with `counts` repartitioned records are only counted.
        """
        earliest, latest = columns.time_range()
        if earliest < 0:
            return None
        timestamps, headers = columns.timestamps(), columns.headers()
        compiled = self.compile(
            (
                columns.has_nulls("key"),
                columns.has_nulls("value"),
                headers is not None,
                notes_causes,
                counts,
                counts and all(map(int.__le__, timestamps, timestamps[1:])),
            )
        )
        if notes_causes and compiled.repartitions > 1:
            return None
        try:
            given = [self._column(name, columns, topic, timestamps, headers) for name in compiled.columns]
            for part in compiled.unread:
                self._check(part, columns, topic)
        except ServiceError:
            raise
        except Exception:
            # Some record cannot be read: only record by record it is known which, and what becomes of it.
            return None
        outputs = self._run(compiled, columns, given)
        stream_time = self._context.stream_time_cell
        stream_time.value = max(stream_time.value, latest)
        self._context.current = None
        return outputs

    def compile(self, variant: _Variant) -> _Compiled:
        """The loop for a variant."""
        compiled = self._compiled.get(variant)
        if compiled is None:
            compiled = self._compiled[variant] = _compile(self._node, self._processor, self._children, variant)
        return compiled

    def _run(self, compiled: _Compiled, columns: InputColumns, given: list[Any]) -> Outputs:
        indexes = iter(range(columns.count))
        log = self._context.processing_log

        def index() -> int:
            """The record that is being processed: the loop has taken its index, and no later one."""
            left: int = indexes.__length_hint__()  # type: ignore[attr-defined]
            return columns.count - left - 1

        try:
            with log.of_columns(lambda: columns.row(index()), index) as logged:
                outputs = compiled.run(indexes, *given)
        except (Exception, SystemExit) as error:
            self._context.current = columns.row(index())
            _explain_output(error)
            raise
        return [*outputs, logged] if logged.keys else outputs

    def _column(
        self, name: str, columns: InputColumns, topic: str, timestamps: list[int], headers: list[Any] | None
    ) -> Any:
        match name:
            case "timestamp":
                return timestamps
            case "headers":
                return headers
            case "partition":
                return columns.partitions()
            case "offset":
                return columns.offsets()
            case "key" | "value":
                return self._objects(name, columns, topic)
            case _:
                return columns.data("key" if name == "key_data" else "value")

    def _objects(self, part: ColumnPart, columns: InputColumns, topic: str) -> list[Any]:
        serde = self._serde(part)
        if is_text(serde):
            return columns.text(part)
        data = columns.data(part)
        if type(serde) is BytesSerde:
            return data
        decode = self._decoder(part, topic)
        return [None if one is None else decode(one) for one in data]

    def _check(self, part: ColumnPart, columns: InputColumns, topic: str) -> None:
        """Raise if a key or value cannot be read, although nobody looks at it."""
        serde = self._serde(part)
        if is_text(serde):
            columns.check_text(part)
        elif type(serde) is not BytesSerde:
            self._objects(part, columns, topic)

    def _serde(self, part: ColumnPart) -> Serde:
        return self._node.key_serde if part == "key" else self._node.value_serde

    def _decoder(self, part: ColumnPart, topic: str) -> Callable[[bytes], Any]:
        if (part, topic) not in self._decoders:
            self._decoders[part, topic] = decoder(self._serde(part), topic)
        return self._decoders[part, topic]


class _Compiled:
    """A compiled loop."""

    def __init__(self, run: Callable[..., Outputs], columns: tuple[str, ...], repartitions: int) -> None:
        self.run = run
        self.columns = columns
        self.unread: list[ColumnPart] = [part for part in ("key", "value") if part not in columns]
        self.repartitions = repartitions


def _compile(
    node: ir.Source | ir.Repartition,
    processor: Processor,
    children: Mapping[Processor, Sequence[Link]],
    variant: _Variant,
) -> _Compiled:
    key_nulls, value_nulls, has_headers, notes_causes, counts, is_sorted = variant
    emitter = Emitter({"key": key_nulls, "value": value_nulls}, has_headers, notes_causes, counts, is_sorted)
    flow = Flow(
        _source_part(emitter, "key", node.key_serde),
        _source_part(emitter, "value", node.value_serde),
        emitter.column("timestamp"),
    )
    Loop(emitter, children, processor.context.processing_log).step(processor, flow)
    repartitions = sum(isinstance(output, RepartitionOutput) for output, _ in emitter.outputs)
    if counts and repartitions != 1:
        raise NotFusedError("not all records go to the aggregation")
    return _load_compiled(emitter, processor, repartitions)


def _source_part(emitter: Emitter, part: ColumnPart, serde: Serde) -> Part:
    data = f"{part}_data"
    is_known = is_exact(serde)
    return Part(
        part,
        lambda: emitter.column(part),
        ((serde, lambda: emitter.column(data)),) if is_known else (),
        # Of rows and JSON, bytes can say that there is nothing.
        may_be_null=emitter.has_nulls[part] or not is_known,
    )


def _load_compiled(emitter: Emitter, processor: Processor, repartitions: int) -> _Compiled:
    columns = tuple(sorted(emitter.columns - {"index"}))
    names = ", ".join(("index", *columns))
    given = ", ".join(("indexes", *(f"{name}_column" for name in columns)))
    head = [
        f"def build({', '.join(emitter.bound)}):",
        f"  def run({given}):",
        *(f"    {line}" for line in emitter.before),
        f"    for {names} in zip({given}):",
    ]
    results = ", ".join(_result(emitter, output, prefix) for output, prefix in emitter.outputs)
    tail = [*(f"    {line}" for line in emitter.after), f"    return [{results}]", "  return run"]
    body = emitter.lines or ["        pass"]
    emitter.bound.update(OutputColumns=OutputColumns, Counted=Counted)
    owners = {number + len(head) + 1: owner for number, owner in emitter.owners.items()}
    # The name makes failures look like those of other processors to `failures`.
    module = {"__name__": __name__, "owners": owners, "OutputColumns": OutputColumns, "Counted": Counted}
    source = "\n".join([*head, *body, *tail])
    exec(compile(source, f"{FUSED}{processor.node.name}>", "exec"), module)
    build: Any = module["build"]
    bound = {name: value for name, value in emitter.bound.items() if name not in ("OutputColumns", "Counted")}
    return _Compiled(build(**bound), columns, repartitions)


def _result(emitter: Emitter, processor: Any, prefix: str) -> str:
    if prefix == "counted":
        return "Counted(counts, latest)"
    parts = [repr(processor.node.name), repr(processor.topic), f"{prefix}_keys", f"{prefix}_values", f"{prefix}_times"]
    parts.append(f"{prefix}_headers" if emitter.has_headers else "None")
    has_partitions = any(line.startswith(f"{prefix}_partitions ") for line in emitter.before)
    parts.append(f"{prefix}_partitions" if has_partitions else "None")
    parts.append(f"{prefix}_causes" if emitter.notes_causes else "None")
    return f"OutputColumns({', '.join(parts)})"


def _explain_output(error: BaseException) -> None:
    """Raise the error of an output that could not serialize a record; returns for other failures."""
    processor, record = failing_step(error.__traceback__)
    if isinstance(processor, SinkProcessor | RepartitionOutput) and isinstance(record, Record):
        processor.explain(record)
