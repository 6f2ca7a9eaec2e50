"""A stage as bytes for Spark's workers; where something in it cannot be copied, the function that holds it is named.

Start at `pickle_stage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from moldau.core.errors import MoldauError
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.origin import Origin

if TYPE_CHECKING:
    from moldau.pipeline.spark.work import StageWork

__all__ = ["UnsendableError", "pickle_stage"]


class UnsendableError(MoldauError):
    """A function or serde of the user's holds what cannot leave this process."""

    def __init__(self, what: str, origin: Origin, cause: Exception) -> None:
        super().__init__(
            f"{what} ({origin}) cannot be sent to Spark's workers: {cause}; make locks, connections, open files and "
            "the like where they are used: in the function, or in the init of a processor"
        )


def pickle_stage(work: StageWork) -> bytes:
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
