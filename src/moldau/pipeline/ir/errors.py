"""Errors in the definition of a pipeline, raised before it runs."""

from __future__ import annotations

from moldau.core.errors import MoldauError
from moldau.pipeline.ir.origin import UNKNOWN, Origin

__all__ = ["CopartitioningError", "TopologyError"]


class TopologyError(MoldauError):
    """A pipeline is defined in a way that cannot run; the message ends with the user's source line where known."""

    def __init__(self, message: str, origin: Origin = UNKNOWN) -> None:
        super().__init__(f"{message} ({origin})" if origin.line else message)
        self.origin = origin


class CopartitioningError(TopologyError):
    """Inputs of one join have different partition counts, so records with equal keys would be in different tasks."""
