"""What keeps a pipeline from starting or going on, in words for the person who runs it."""

from __future__ import annotations

from moldau.core.errors import MoldauError

__all__ = [
    "AlreadyRunningError",
    "CheckpointMismatchError",
    "ClusterUnreachableError",
    "MissingTopicError",
    "StateLostError",
    "StreamsError",
    "TakenOverError",
]


class StreamsError(MoldauError):
    """A pipeline cannot start, or cannot go on."""


class ClusterUnreachableError(StreamsError):
    """No broker answers: a mistake at the first start, a trouble that passes later."""


class MissingTopicError(StreamsError):
    """A topic that the pipeline reads does not exist."""


class CheckpointMismatchError(StreamsError):
    """The checkpoint belongs to another topology, or to another time of this one."""


class StateLostError(StreamsError):
    """The pipeline has committed results, and the state behind them is gone."""


class AlreadyRunningError(StreamsError):
    """Another process works in this pipeline's folder."""


class TakenOverError(StreamsError):
    """Another instance of the pipeline was started, and this one must end."""
