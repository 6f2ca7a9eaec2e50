"""Errors that keep a pipeline from starting or continuing, with messages for its operator."""

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
    """A pipeline cannot start or cannot continue."""


class ClusterUnreachableError(StreamsError):
    """No broker answers: a configuration error at the first start, a temporary failure later."""


class MissingTopicError(StreamsError):
    """A topic that the pipeline reads does not exist."""


class CheckpointMismatchError(StreamsError):
    """The checkpoint belongs to another topology, or does not match the committed progress."""


class StateLostError(StreamsError):
    """The pipeline has committed results, but the state they were computed from is lost."""


class AlreadyRunningError(StreamsError):
    """Another process is using this pipeline's folder."""


class TakenOverError(StreamsError):
    """Another instance of the pipeline was started, so this one must stop."""
