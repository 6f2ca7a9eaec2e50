"""Where Spark runs: on this machine, or on a cluster whose master assigns executors. Start at `check_master`."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL_MASTER", "Executors", "MasterUnreachableError", "check_master", "cluster_settings", "is_local_master"]

LOCAL_MASTER = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?$")
_STANDALONE = "spark://"
ANSWER_S = 5.0


class MasterUnreachableError(MoldauError):
    """No master of a Spark cluster answers."""


def is_local_master(master: str | None) -> bool:
    """Whether everything runs on this machine, and shares its folders."""
    return LOCAL_MASTER.match(master or "local") is not None


def check_master(master: str) -> None:
    """Raise `MasterUnreachableError` if nothing listens at a standalone master's address.

    Spark itself tries three times, and gives up after a minute. Other cluster managers are not checked.
    """
    if not master.startswith(_STANDALONE):
        return
    reasons = [_reason(address) for address in master.removeprefix(_STANDALONE).split(",")]
    if None not in reasons:
        raise MasterUnreachableError(
            f"no Spark master answers at {master}: {reasons[0]}. Start one, or correct spark.master"
        )


def _reason(address: str) -> str | None:
    """Why the address cannot be reached; None if it can."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return f"{address!r} is not host:port"
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
    except OSError as error:
        return (error.strerror or str(error) or type(error).__name__).lower()
    return None


def cluster_settings(settings: Mapping[str, str], threads: int | None) -> dict[str, str]:
    """Settings for a cluster: `threads` is how many of its cores one driver takes; if None, Spark takes all."""
    cores = settings.get("spark.cores.max") or (None if threads is None else str(threads))
    return {} if cores is None else {"spark.cores.max": cores, "spark.sql.shuffle.partitions": cores}


class Executors:
    """The processes that a cluster has assigned to this driver."""

    def __init__(self, spark: SparkSession) -> None:
        self.master = str(spark.sparkContext.master)
        self._context: Any = spark.sparkContext._jsc.sc()

    def count(self) -> int:
        """The current number of executors, without the driver, which Spark counts too."""
        return int(self._context.getExecutorMemoryStatus().size()) - 1
