"""What a killed driver leaves in the temporary folder is in one place, and the next start removes it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from moldau.core.errors import MoldauError
from moldau.pipeline.spark.driver.jars import fetch_jars
from moldau.pipeline.spark.driver.scratch import open_scratch

PATIENCE_S = 120
DRIVER = """
import threading
from pyspark import SparkContext
from moldau.pipeline.spark.driver.session import open_session, session_settings

spark = open_session(session_settings({"spark.master": "local[2]"}))
spark.range(10).selectExpr("sum(id)").collect()
# What a query with state unpacks, 15 MB of it.
spark.sparkContext._jvm.org.rocksdb.RocksDB.loadLibrary()
print(SparkContext._gateway.proc.pid, flush=True)
threading.Event().wait()
"""


def test_what_a_killed_driver_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except MoldauError as error:
        pytest.skip(f"Spark cannot run here: {error}")
    # A socket's path must be short, and pytest's folders have long names.
    with tempfile.TemporaryDirectory(prefix="mt-") as temporary:
        environment = {**os.environ, "TMPDIR": temporary, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert driver.stdout is not None
            java = int(driver.stdout.readline())
        finally:
            driver.kill()
            driver.wait()
        driver.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(java, signal.SIGKILL)
        wait_until_gone(java)

        (base,) = Path(temporary).iterdir()
        assert base.name == f"moldau-spark-{os.getuid()}"
        (folder,) = (path for path in base.iterdir() if path.is_dir())
        left = [path for path in folder.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in left) > 5_000_000
        assert any(path.name.startswith("librocksdbjni") for path in left)
        assert any(path.name.startswith("blockmgr-") for path in folder.iterdir())

        following = open_scratch(base)
        assert following is not None
        assert not folder.exists()
        following.close()
        assert list(base.iterdir()) == []


def wait_until_gone(pid: int) -> None:
    """Nobody's child is waited for by the system."""
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
