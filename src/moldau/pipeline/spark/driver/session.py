"""The Spark session that pipelines share: settings tuned for small micro-batches, and the user's own.

One session is one Java process and may host many pipelines; `pipeline.runtime.engine` keeps it. Under `spark-submit` or
in a notebook the session exists already, and only settings that can still be changed are set. Start at `open_session`.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.core.errors import InvalidConfigError, MoldauError
from moldau.pipeline.spark.driver.class_archive import options_for_use
from moldau.pipeline.spark.driver.hadoop_settings import leave_defaults_out
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.pipeline.spark.driver.java import find_java
from moldau.pipeline.spark.driver.launch_output import LaunchOutput
from moldau.pipeline.spark.driver.masters import LOCAL_MASTER, check_master, cluster_settings, is_local_master
from moldau.pipeline.spark.driver.scratch import Scratch, has_room_for_sockets, open_scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DEFAULTS",
    "DRIVER_OPTIONS",
    "QUERY_DEFAULTS",
    "SparkUnavailableError",
    "close_session",
    "default_threads",
    "is_alive",
    "is_local",
    "is_submitted",
    "new_pipeline_session",
    "open_session",
    "session_settings",
    "spark_session",
    "with_connector",
]

QUERY_DEFAULTS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The default manager starts several processes for each file of a local checkpoint: 60 ms per batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.pollingDelay": "100",
    # Otherwise Spark cleans each operator's closure for every batch, and serializes it once more than needed.
    "spark.sql.execution.usePartitionEvaluator": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    # With large records the default of 10,000 would be gigabytes at once, and Java runs out of memory.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4000",
    # With a limit in bytes Spark sums the size of all columns after every row: 55 us per row instead of 1.5.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}
"""Settings that a running session still accepts; each pipeline sets them in its own session."""

TRUSTED_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Turns off Arrow's bounds checks, which take a tenth of all time; only Spark's own code accesses Arrow memory."""

SHORT_END = "-Dspark.shutdown.timeout=5s"
"""Limits Java's shutdown: it closes each Kafka consumer, for half a minute if a broker accepts but does not answer.

Nothing depends on this, nor on anything else that Java does after Spark is stopped.
"""

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
LOCAL_DIRS = "SPARK_LOCAL_DIRS"
SHORT_FOLDER = "/tmp"
"""A folder for sockets where the user's temporary folder has too long a path for them."""

DEFAULTS: Mapping[str, str] = {
    **QUERY_DEFAULTS,
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "0",
    # Only the fast compiler (C1): half the time to the first batch, a third of the memory.
    DRIVER_OPTIONS: f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {TRUSTED_ARROW}",
    "spark.executor.extraJavaOptions": TRUSTED_ARROW,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    # Fair pools starve all but the first query: small queries nearly always tie, and ties are decided by name.
    "spark.scheduler.mode": "FIFO",
    "spark.sql.catalogImplementation": "in-memory",
    # In real-time mode a record waits so long for others on its way to the task with its state; by default for 20 ms.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    "spark.python.worker.reuse": "true",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Settings of a new session; the user's `spark.*` settings replace them."""

LOCAL_ONLY: Mapping[str, str] = {
    # On a cluster the driver must be reachable from outside.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Larger results would go through the block manager and a socket to get from one thread to another.
    "spark.task.maxDirectResultSize": "100m",
}
"""Settings for a driver that runs its tasks in the same process."""


class SparkUnavailableError(MoldauError):
    """Spark cannot be started; the message says what is missing."""


def session_settings(given: Mapping[str, str], *, threads: int | None = None) -> dict[str, str]:
    """The settings of a new session: ours, then the user's `spark.*` among `given`.

    `threads` is the number of concurrent tasks, if no `spark.master` sets it.
    """
    own = {key: value for key, value in given.items() if key.startswith("spark.")}
    master = own.get("spark.master") or os.environ.get("SPARK_MASTER") or f"local[{threads or default_threads()}]"
    placed = LOCAL_ONLY if is_local_master(master) else cluster_settings(own, threads)
    shuffle = {"spark.sql.shuffle.partitions": str(_slots(master))}
    settings = {**DEFAULTS, **shuffle, **placed, **own, "spark.master": master}
    if "spark.shutdown.timeout" not in settings[DRIVER_OPTIONS]:
        settings[DRIVER_OPTIONS] += f" {SHORT_END}"
    return settings


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether everything runs on this machine."""
    return is_local_master(settings.get("spark.master", "local"))


def open_session(settings: Mapping[str, str]) -> SparkSession:
    """The process's Spark session, started if there is none.

    Raises `SparkUnavailableError`, `JavaMissingError` or `JarsMissingError` with what is missing and how to get it.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SparkUnavailableError(
            f"PySpark is not installed for {sys.executable}; it comes with moldau: pip install moldau"
        ) from None
    if (active := SparkSession.getActiveSession()) is not None and is_alive(active):
        _check_connector(active)
        return active
    find_java()
    if not is_submitted():
        check_master(settings.get("spark.master", "local"))
    spark = _start_session(settings)
    _write_no_checksum_files(spark)
    if not is_submitted():
        # After the first use of a file system, which loads the defaults of all file systems.
        leave_defaults_out(spark, settings)
    _check_connector(spark)
    return spark


def _start_session(settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if (python := settings.get("spark.pyspark.python")) is not None:
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if (address := settings.get("spark.driver.bindAddress")) is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", address)
    # PySpark logs every failed query as a page of JSON; the code that runs the query reports failures.
    for name in ("SQLQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    wanted = dict(settings) if is_submitted() else with_connector(settings)
    output = LaunchOutput()
    try:
        with output.capture(), _temporary_files(wanted) as wanted:
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(wanted.items())))
        if is_submitted():
            wanted = _with_submitted_settings(wanted, dict(SparkConf().getAll()))
        builder: Any = SparkSession.builder.appName("moldau")
        for key, value in wanted.items():
            builder = builder.config(key, value)
        spark: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(f"Spark did not start: {_cause(error, output.last_words())}") from error
    finally:
        output.release()
    return spark


_scratch: Scratch | None = None
"""The temporary files of this process's Java process."""


@contextmanager
def _temporary_files(settings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yields the settings for a Java process that is started in the block and keeps its files in its own folder.

    The user's settings have priority: `spark.local.dir`, SPARK_LOCAL_DIRS, `-Djava.io.tmpdir`. The environment variable
    is set, not `spark.local.dir`, because the setting would also be sent to the machines of a cluster.
    """
    global _scratch
    from pyspark import SparkContext

    if is_submitted() or SparkContext._gateway is not None:
        yield dict(settings)
        return
    _scratch = scratch = open_scratch()
    if scratch is None:
        yield dict(settings)
        return
    wanted, folder = dict(settings), str(scratch.folder)
    options = wanted.get(DRIVER_OPTIONS, "")
    if "java.io.tmpdir" not in options and not set(folder) & set(" \t\"'"):
        wanted[DRIVER_OPTIONS] = f"{options} -Djava.io.tmpdir={folder}".strip()
        if not scratch.has_room_for_sockets:
            _keep_sockets_elsewhere(wanted)
    sets_variable = LOCAL_DIRS not in os.environ and "spark.local.dir" not in settings
    if sets_variable:
        os.environ[LOCAL_DIRS] = folder
    try:
        yield wanted
        process = getattr(SparkContext._gateway, "proc", None)
        if process is not None:
            scratch.note_java(process.pid)
    finally:
        if sets_variable:
            os.environ.pop(LOCAL_DIRS, None)


def _keep_sockets_elsewhere(settings: dict[str, str]) -> None:
    """Choose a folder whose path is short enough for sockets; without one, Spark uses ports instead."""
    for folder in (tempfile.gettempdir(), SHORT_FOLDER):
        if has_room_for_sockets(folder) and os.access(folder, os.W_OK | os.X_OK):
            settings.setdefault("spark.python.unix.domain.socket.dir", folder)
            return
    settings["spark.python.unix.domain.socket.enabled"] = "false"


def _remove_temporary_files() -> None:
    global _scratch
    scratch, _scratch = _scratch, None
    if scratch is not None:
        scratch.close()


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with the connector's jars: sent to a cluster's executors, or on the class path of a local Java.

    On the class path, because only its classes can be loaded from a class archive.
    """
    jars = [str(path) for path in fetch_jars()]
    if not is_local(settings):
        return {**settings, "spark.jars": ",".join([*jars, *filter(None, [settings.get("spark.jars")])])}
    theirs = settings.get("spark.driver.extraClassPath")
    options = settings.get(DRIVER_OPTIONS, "")
    if "ArchiveClassesAtExit" not in options and "SharedArchiveFile" not in options:
        options = f"{options} {options_for_use()}".strip()
    return {
        **settings,
        "spark.driver.extraClassPath": os.pathsep.join([*jars, *filter(None, [theirs])]),
        DRIVER_OPTIONS: options,
    }


def is_submitted() -> bool:
    """Whether `spark-submit` started this program: its Java process runs already, with the jars it was given."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _with_submitted_settings(wanted: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The settings of spark-submit's command line have priority; its master may be a cluster."""
    is_here = is_local_master(told.get("spark.master", "local"))
    return {key: value for key, value in wanted.items() if is_here or key not in LOCAL_ONLY} | dict(told)


def new_pipeline_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A pipeline's own session on the same Java process, with separate SQL settings and views."""
    own = spark.newSession()
    wanted = {key: value for key, value in settings.items() if key.startswith("spark.sql.")}
    for key, value in {**QUERY_DEFAULTS, **wanted}.items():
        if own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


def close_session(spark: SparkSession) -> None:
    """Stop Spark and its Java process; also works if that process has already ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        spark.stop()
    except Exception:
        # The Java process has ended: drop the references, so that a new one can be started.
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        try:
            gateway.shutdown()
        except Exception:
            gateway.proc.kill()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    _remove_temporary_files()


def is_alive(spark: SparkSession) -> bool:
    """Whether the Java side of a session still answers."""
    try:
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


@contextmanager
def spark_session(given: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A tuned session for the duration of the block."""
    spark = open_session(session_settings(given or {}))
    try:
        yield spark
    finally:
        close_session(spark)


def default_threads() -> int:
    """How many tasks run at the same time where nothing else is said: one for each core."""
    return max(2, len(os.sched_getaffinity(0)))


def _slots(master: str) -> int:
    match = LOCAL_MASTER.match(master)
    if match is None:
        return default_threads()
    count = match.group(1)
    if count == "*":
        return default_threads()
    slots = int(count or 1)
    if slots < 1:
        raise InvalidConfigError(f"spark.master={master}: at least one thread is needed")
    return slots


def _write_no_checksum_files(spark: SparkSession) -> None:
    """Turn off checksum files, which halves the files of local checkpoints; other file systems are unchanged."""
    jvm: Any = spark.sparkContext._jvm
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(hadoop).setWriteChecksum(False)


def _check_connector(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    try:
        loader.loadClass("org.apache.spark.sql.kafka010.KafkaSourceProvider")
    except Exception:
        raise SparkUnavailableError(
            "this Spark session was started without the Kafka connector; give spark-submit its jars: "
            'spark-submit --jars "$(moldau streams jars)" …'
        ) from None


def _cause(error: BaseException, output: str) -> str:
    """The most informative line: the innermost Java exception, or the Java process's last output."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    caused = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    said = [line for line in output.splitlines() if line.startswith(("Error", "Exception", "Invalid"))]
    return ([*caused[-1:], *thrown, *said, *lines] or [type(error).__name__])[0][:500]
