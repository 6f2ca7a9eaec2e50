"""The description of a stage for Python workers; pickled by the driver, cached by workers.

Spark sends the function of a stage with every batch. Unpickling a topology and the user's functions each time would
take longer than a small batch, so a worker unpickles the bytes only once. If something cannot be pickled, the error
names the function that holds it. Start at `StageWork`.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from moldau import __version__
from moldau.core.errors import MoldauError
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.stores.backends import Backends
from moldau.pipeline.cores.task import Task
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.origin import Origin
from moldau.pipeline.ir.subtopologies import SubTopology
from moldau.pipeline.spark.plan import Unit

__all__ = ["InputName", "Parcel", "StageWork", "UnsendableError", "pickled_work"]


KEPT = 64
"""How many stages a worker caches."""


@dataclass(frozen=True, slots=True)
class InputName:
    """An input of tasks, by name."""

    node: str
    topic: str | None
    """None if each row carries its topic."""
    is_global: bool
    is_repartition: bool


@dataclass(frozen=True)
class StageWork:
    """One stage, ready to run."""

    identity: str
    """Unique to the compiled query and its stage."""
    number: int
    sub_topologies: Mapping[int, SubTopology]
    units: Mapping[int, tuple[Unit, ...]]
    cycles: frozenset[int]
    """The slots whose tasks feed each other."""
    inputs: Mapping[int, InputName]
    readers: Mapping[int, tuple[int, ...]]
    """Which sub-topologies of the stage read an input; several only for a global table."""
    outputs: Mapping[str, int]
    """The numbers of the topology's outputs, by name."""
    dynamic_topics: frozenset[str]
    """The outputs whose rows carry their own topic."""
    targets: Mapping[str, tuple[int, tuple[int, ...]]]
    """For each repartitioning that this stage writes: its input number, and the slot of each partition."""
    counts: Mapping[str, int]
    settings: TaskSettings
    states: tuple[str, ...] = ()
    """Names of the maps in Spark's state, one per store; the first also holds the record of each group."""
    commits_each_record: bool = False
    """Whether caches are forwarded after each record, as Kafka Streams' test driver does."""
    exports_state: bool = False
    """Whether everything written to Spark's state is also an output, for tests to inspect."""
    public_only: bool = False
    """Whether state is accessed through PySpark's public classes alone, as a test of that way."""
    feeds_aggregate: bool = False
    """Whether all outputs go to a native aggregation."""
    feeds_count: bool = False
    """Whether that aggregation only counts records, so that rows may stand for several of them."""
    store_output: int | None = None
    """The output for the incoming changes, if they are those of a queryable store."""

    @cached_property
    def global_inputs(self) -> frozenset[int]:
        return frozenset(index for index, name in self.inputs.items() if name.is_global)

    def task(self, unit: Unit, backends: Backends, wall_clock_ms: int | None = None) -> Task:
        """A new task, with the state in its backends."""
        return Task(
            self.sub_topologies[unit.sub_topology],
            partition=unit.partition,
            partition_counts=self.counts,
            backends=backends,
            settings=self.settings,
            wall_clock_ms=wall_clock_ms,
        )


@dataclass(frozen=True)
class Parcel:
    """A pickled stage to send to workers."""

    identity: str
    data: bytes
    path: tuple[str, ...]
    """The driver's `sys.path`, so that workers on its machine can import the user's modules."""
    version: str
    """The version of the driver's moldau."""

    @classmethod
    def of(cls, work: StageWork, *, shares_folders: bool) -> Parcel:
        """The pickled stage. Raises `UnsendableError` if a user's function cannot be pickled."""
        path = tuple(entry for entry in sys.path if entry) if shares_folders else ()
        return cls(work.identity, pickled_work(work), path, __version__)

    def stage_work(self) -> StageWork:
        """The stage, unpickled once in each worker."""
        if self.identity not in _known:
            from pyspark.cloudpickle import loads

            self._check_version()
            sys.path.extend(entry for entry in self.path if entry not in sys.path)
            _known[self.identity] = loads(self.data)
            while len(_known) > KEPT:
                _known.popitem(last=False)
        _known.move_to_end(self.identity)
        return _known[self.identity]

    def _check_version(self) -> None:
        """Raise if the versions differ: classes of another version may unpickle with another meaning."""
        if self.version != __version__:
            raise WorkerVersionError(
                f"a Spark worker has moldau {__version__} in {sys.executable}, and the driver has {self.version}; "
                "install the same on both"
            )


class WorkerVersionError(MoldauError):
    """A worker has another version of moldau than the driver."""


_known: OrderedDict[str, StageWork] = OrderedDict()


# --- pickling --------------------------------------------------------------------------------------------------


class UnsendableError(MoldauError):
    """A function or serde of the user's holds an object that cannot be pickled."""

    def __init__(self, what: str, origin: Origin, cause: Exception) -> None:
        super().__init__(
            f"{what} ({origin}) cannot be sent to Spark's workers: {cause}; make locks, connections, open files and "
            "the like where they are used: in the function, or in the init of a processor"
        )


def pickled_work(work: StageWork) -> bytes:
    """The stage, pickled with the user's functions. Raises `UnsendableError`."""
    from pyspark import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    try:
        return dumps(work)
    except Exception as error:
        for node in (node for sub_topology in work.sub_topologies.values() for node in sub_topology.nodes):
            _check(node, dumps)
        raise error from None


def _check(node: Node, dumps: Callable[[object], bytes]) -> None:
    for part in _parts([getattr(node, field.name) for field in fields(node)]):
        try:
            dumps(part)
        except Exception as error:
            is_function = isinstance(part, PythonFunction)
            what = getattr(part.call, "__name__", "a function") if is_function else type(part).__name__
            raise UnsendableError(what, part.origin if is_function else node.origin, error) from None


def _parts(value: Any) -> Iterator[Any]:
    """The user's functions and serdes within a value, and its plain values, without its input nodes."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)
    elif isinstance(value, PythonFunction) or hasattr(value, "serialize") or not is_dataclass(value):
        yield value
    elif not isinstance(value, Node):
        yield from _parts([getattr(value, field.name) for field in fields(value)])
