"""Type variables for keys and values, with Kafka Streams' letters, so that type checkers can check a pipeline.

Each defaults to `Any`: `KStream` alone is `KStream[Any, Any]`. Type checkers support such defaults (PEP 696), Python
itself only from 3.13 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    KR = TypeVar("KR", default=Any)
    VR = TypeVar("VR", default=Any)
    KO = TypeVar("KO", default=Any)
    VO = TypeVar("VO", default=Any)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")
    KR, VR = TypeVar("KR"), TypeVar("VR")
    """Of the result of an operator."""
    KO, VO = TypeVar("KO"), TypeVar("VO")
    """Of the other side of a join."""

__all__ = ["KO", "KR", "VO", "VR", "K", "V"]
