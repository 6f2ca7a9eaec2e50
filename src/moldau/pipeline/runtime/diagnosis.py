"""Why a query ended: a one-sentence error message, and whether the failure is temporary.

Spark reports failures as pages of nested traces. Failures of a user's function include its source line; cluster
failures end when the cluster is back. Start at `diagnose`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from moldau.client.errors import ClientError, UnreachableError
from moldau.core.errors import MoldauError
from moldau.pipeline.cores.failures import failing_line
from moldau.pipeline.ir.origin import UNKNOWN
from moldau.pipeline.runtime.errors import ClusterUnreachableError, StreamsError
from moldau.pipeline.spark.driver.hadoop_files import StateUnreachableError
from moldau.pipeline.spark.failures import cause_of, worker_trouble

__all__ = ["Diagnosis", "diagnose"]

_PASSING = re.compile(
    r"kafka\.common\.errors\.(Timeout|Disconnect|Network|NotLeaderOrFollower|LeaderNotAvailable|"
    r"CoordinatorNotAvailable|BrokerNotAvailable|Retriable)\w*Exception"
    r"|Timeout of \d+ms expired before"
    r"|Timed out waiting for a node assignment"
    r"|Call\(callName=\w+.*timed out"
    # Spark gives a Python worker ten seconds to start, which a machine under load may exceed.
    r"|Python worker failed to connect back"
)
_SPARK_GONE = re.compile(
    r"Answer from Java side is empty|An error occurred while trying to connect to the Java server|"
    r"Error while sending or receiving|Connection refused|Broken pipe|Connection reset|"
    r"stopped SparkContext|RpcEnv already stopped|SparkContext was shut down"
)
_STATE_GONE = re.compile(r"Call From \S+ to \S+ failed on[^;\n]*")
"""The start of the Hadoop client's message when a name node does not answer."""
_DATA_LOSS = re.compile(r"KAFKA_DATA_LOSS|Some data may have been lost")
_CAUSE = re.compile(r"^(?:Caused by: )?((?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b.*)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception): .*)$", re.MULTILINE)
_LONGEST = 1000


class Diagnosis(NamedTuple):
    """The error to report, and whether a restart can succeed after the failure has passed."""

    error: MoldauError
    is_passing: bool
    is_spark_gone: bool = False


def diagnose(error: BaseException | str) -> Diagnosis:
    """The cause of a failure, and whether it is temporary."""
    if isinstance(error, ClientError):
        passes = isinstance(error, UnreachableError) or error.is_retriable or error.requires_abort
        return Diagnosis(error, passes)
    if isinstance(error, MoldauError):
        return Diagnosis(error, is_passing=isinstance(error, ClusterUnreachableError | StateUnreachableError))
    text = str(error)
    if (told := cause_of(text)) is not None:
        return Diagnosis(told, is_passing=False)
    if (lacking := worker_trouble(text)) is not None:
        return Diagnosis(lacking, is_passing=False)
    if _DATA_LOSS.search(text):
        return Diagnosis(_data_loss(text), is_passing=False)
    if (state_gone := _STATE_GONE.search(text)) is not None:
        return Diagnosis(StateUnreachableError(f"state.dir cannot be used: {state_gone.group()}"), is_passing=True)
    if isinstance(error, OSError) or type(error).__module__.startswith("py4j") or _SPARK_GONE.search(text):
        return Diagnosis(StreamsError(f"Spark's process has ended: {_shorten(text)}"), True, is_spark_gone=True)
    sentence = _sentence(text) if _is_sparks(error) else _text_with_class(error)
    return Diagnosis(StreamsError(sentence), is_passing=_PASSING.search(text) is not None)


def _data_loss(text: str) -> StreamsError:
    place = re.search(r"[Pp]artition\s+([\w.-]+-\d+)", text)
    where = f" of {place.group(1)}" if place else ""
    return StreamsError(
        f"records{where} were deleted before the pipeline had read them; to continue with the remaining records, set "
        "moldau.fail.on.data.loss=false"
    )


def _is_sparks(error: BaseException | str) -> bool:
    return isinstance(error, str) or type(error).__module__.partition(".")[0] == "pyspark"


def _text_with_class(error: BaseException | str) -> str:
    """An exception raised by Python itself, with its class name: the text alone, as of a KeyError, says too little."""
    line = UNKNOWN if isinstance(error, str) else failing_line(error.__traceback__, UNKNOWN)
    return f"{type(error).__name__}: {_shorten(str(error))}" + (f" ({line})" if line.line else "")


def _sentence(text: str) -> str:
    """The innermost cause: the Python worker's if there is one, else Java's."""
    if "PythonException" in text and (found := _PYTHON.findall(text)):
        return _shorten(found[-1])
    causes = _CAUSE.findall(text)
    return _shorten(causes[-1] if causes else text)


def _shorten(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    return line[:_LONGEST]
