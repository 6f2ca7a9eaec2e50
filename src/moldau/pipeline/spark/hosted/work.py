"""What a Python worker must know to run the tasks of one stage; the driver pickles it, workers keep it.

Spark sends the function of a stage with every batch. To unpickle a topology and the user's functions each time would
take longer than a small batch, so the bytes are looked at only when a worker sees them for the first time. Where
something cannot be pickled, the function that holds it is named. Start at `StageWork`.
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
"""How many stages a worker remembers."""


@dataclass(frozen=True, slots=True)
class InputName:
    """An input as tasks know it."""

    node: str
    topic: str | None
    """None where each row says its topic."""
    is_global: bool
    is_repartition: bool


@dataclass(frozen=True)
class StageWork:
    """One stage, ready to run."""

    identity: str
    """Unique to the compiled query and its stage."""
    number: int
    pieces: Mapping[int, SubTopology]
    units: Mapping[int, tuple[Unit, ...]]
    cycles: frozenset[int]
    """The slots whose tasks feed each other."""
    inputs: Mapping[int, InputName]
    readers: Mapping[int, tuple[int, ...]]
    """Which sub-topologies of the stage read an input; several only for a global table."""
    outputs: Mapping[str, int]
    """Numbers of the ways out of the topology, by name."""
    dynamic_topics: frozenset[str]
    """Those whose rows say their topic themselves."""
    targets: Mapping[str, tuple[int, tuple[int, ...]]]
    """Of each repartitioning written here: its input number, and the slot of each partition."""
    counts: Mapping[str, int]
    settings: TaskSettings
    states: tuple[str, ...] = ()
    """Names of the maps in Spark's state, one for each store; the first holds the record of each group too."""
    commits_each_record: bool = False
    """Whether caches are forwarded after each record, as Kafka Streams' test driver does."""
    exports_state: bool = False
    """Whether all that is written to Spark's state leaves the topology too, for tests to look at."""
    feeds_aggregate: bool = False
    """Whether what comes out goes to an aggregation of Spark's own, and nothing else does."""
    store_output: int | None = None
    """The output that tells of the changes which come in, where they are those of a queryable store."""

    @cached_property
    def global_inputs(self) -> frozenset[int]:
        return frozenset(index for index, name in self.inputs.items() if name.is_global)

    def task(self, unit: Unit, backends: Backends, wall_clock_ms: int | None = None) -> Task:
        """A new task, going on from what its backends hold."""
        return Task(
            self.pieces[unit.piece],
            partition=unit.partition,
            partition_counts=self.counts,
            backends=backends,
            settings=self.settings,
            wall_clock_ms=wall_clock_ms,
        )


@dataclass(frozen=True)
class Parcel:
    """A stage on its way to workers."""

    identity: str
    data: bytes
    path: tuple[str, ...]
    """Where the driver finds modules: the user's are imported in workers too, if these are on its machine."""
    version: str
    """Of the driver's moldau."""

    @classmethod
    def of(cls, work: StageWork, *, shares_folders: bool) -> Parcel:
        """The work of a stage, packed. Raises `UnsendableError` where a user's function cannot be copied."""
        path = tuple(entry for entry in sys.path if entry) if shares_folders else ()
        return cls(work.identity, pickled_work(work), path, __version__)

    def opened(self) -> StageWork:
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
        """Classes of another version may unpickle, and mean something else."""
        if self.version != __version__:
            raise WorkerVersionError(
                f"a Spark worker has moldau {__version__} in {sys.executable}, and the driver has {self.version}; "
                "install the same on both"
            )


class WorkerVersionError(MoldauError):
    """A worker's moldau is not the driver's."""


_known: OrderedDict[str, StageWork] = OrderedDict()


# --- pickling --------------------------------------------------------------------------------------------------


class UnsendableError(MoldauError):
    """A function or serde of the user's holds what cannot leave this process."""

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
        for node in (node for piece in work.pieces.values() for node in piece.nodes):
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
    """The user's functions and serdes within a value, and the plain values between them; not the nodes before it."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)
    elif isinstance(value, PythonFunction) or hasattr(value, "serialize") or not is_dataclass(value):
        yield value
    elif not isinstance(value, Node):
        yield from _parts([getattr(value, field.name) for field in fields(value)])
