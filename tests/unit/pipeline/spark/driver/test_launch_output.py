"""What Spark's processes say reaches the user, but for what they say about themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipeline.spark.driver.launch_output import LaunchOutput, without_chatter

STATEFUL = [b"Starting Streaming TransformWithStateInPandas Python worker.\n", b"\n"]
IDLE = [
    b"Traceback (most recent call last):\n",
    b'  File "/x/pyspark.zip/pyspark/daemon.py", line 262, in manager\n',
    b'  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker\n',
    b"BrokenPipeError: [Errno 32] Broken pipe\n",
]
OTHER = [b"Traceback (most recent call last):\n", b'  File "/x/mine.py", line 1\n', b"ValueError: oh\n", b"\n"]


FLUSHING = [
    b"PySpark daemon failed to flush the output to the worker process:\n",
    b"Traceback (most recent call last):\n",
    b'  File "/x/pyspark.zip/pyspark/daemon.py", line 90, in worker\n',
    b"    outfile.flush()\n",
    b"BrokenPipeError: [Errno 32] Broken pipe\n",
    b"\n",
]
STANDARD_LIBRARY = [
    b"Traceback (most recent call last):\n",
    b'  File "<frozen runpy>", line 198, in _run_module_as_main\n',
    b'  File "/x/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker_util.py", line 211, in main\n',
    b'  File "/x/lib/python3.11/socket.py", line 724, in write\n',
    b"    return self._sock.send(b)\n",
    b"           ^^^^^^^^^^^^^^^^^^\n",
    b"BrokenPipeError: [Errno 32] Broken pipe\n",
]
USERS_PIPE = [
    b"Traceback (most recent call last):\n",
    b'  File "/x/pyspark.zip/pyspark/worker.py", line 9, in main\n',
    b'  File "/x/mine.py", line 1, in send\n',
    b"    pipe.write(data)\n",
    b"BrokenPipeError: [Errno 32] Broken pipe\n",
]


def test_workers_whose_task_was_ended_are_not_heard() -> None:
    assert list(without_chatter(iter([b"a\n", *FLUSHING, b"b\n"]))) == [b"a\n", b"b\n"]


def test_a_pipe_of_the_users_that_breaks_is_heard() -> None:
    assert list(without_chatter(iter(USERS_PIPE))) == USERS_PIPE


def test_workers_that_talk_of_themselves_are_not_heard() -> None:
    assert list(without_chatter(iter([b"a\n", *STATEFUL, b"b\n", *IDLE, b"c\n"]))) == [b"a\n", b"b\n", b"c\n"]


@given(st.lists(st.sampled_from([0, 1, 2])))
def test_workers_that_complain_at_the_same_time_are_not_heard(turns: list[int]) -> None:
    complaints = [[*IDLE], [*IDLE], [*IDLE]]
    said = [complaints[turn].pop(0) for turn in turns if complaints[turn]]
    rest = [line for complaint in complaints for line in complaint]
    assert list(without_chatter(iter([*said, *rest, b"a\n"]))) == [b"a\n"]


@pytest.mark.parametrize("before", [[], [b"a\n"], [*IDLE]])
def test_a_worker_that_is_killed_while_it_complains_leaves_no_heading(before: list[bytes]) -> None:
    assert list(without_chatter(iter([*before, IDLE[0]]))) == [line for line in before if line == b"a\n"]


def test_a_chain_of_complaints_about_one_pipe_is_not_heard() -> None:
    link = [b"\n", b"During handling of the above exception, another exception occurred:\n", b"\n"]
    assert list(without_chatter(iter([*IDLE, *link, *STANDARD_LIBRARY, *link, *IDLE, b"a\n"]))) == [b"a\n"]


def test_a_query_that_outlives_spark_is_not_heard() -> None:
    query = [
        b'Exception in thread "stream execution thread for totals [id = 1]" org.apache.spark.SparkException:\n',
        b"\tat org.apache.spark.rpc.RpcEndpointRef.askSync(RpcEndpointRef.scala:85)\n",
        b"Caused by: org.apache.spark.rpc.RpcEnvStoppedException: RpcEnv already stopped.\n",
        b"\tat org.apache.spark.rpc.netty.Dispatcher.postMessage(Dispatcher.scala:179)\n",
        b"\t... 8 more\n",
    ]
    other = [b'Exception in thread "mine" java.lang.Error: oh\n', b"\tat Mine.run(Mine.java:1)\n"]

    assert list(without_chatter(iter([b"a\n", *query, *other, b"b\n"]))) == [b"a\n", *other, b"b\n"]


def test_other_tracebacks_are_passed_on_whole() -> None:
    assert list(without_chatter(iter([*OTHER, *IDLE[:2]]))) == [*OTHER, *IDLE[:2]]


def test_a_child_is_heard_only_after_its_start(capfd: pytest.CaptureFixture[str]) -> None:
    output = LaunchOutput()
    script = "import sys; print('early', file=sys.stderr, flush=True); input(); print('late', file=sys.stderr)"
    with output.capture():
        child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not output._lines:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    output.release()
    child.communicate(b"\n")

    assert output.last_words() == "early\n"
    assert "late" in capfd.readouterr().err
    assert os.isatty(2) in (True, False)
