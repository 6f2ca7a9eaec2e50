"""A system call fails somewhere between a transaction's first request and its markers: it ends as decided, once.

One broker, and for every transaction the next call but so many fails. Clients send again what was refused with an
error that may pass. What the broker's files then hold is what a kill would leave, so a second broker is started on a
copy of them.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.integration.server_process import wait_until
from tests.integration.test_transactions_recovery import committed
from tests.integration.transaction_client import TransactionClient

from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message
from moldau.protocol.records import split_batches
from moldau.testing import Broker
from moldau.testing.failing_files import FailingFiles

PASSING: Final = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
SETTINGS = {
    "offsets.topic.segment.bytes": "300",
    "transaction.state.log.segment.bytes": "300",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "log.segment.bytes": "300",
    "log.index.interval.bytes": "50",
}


CALLS: Final = {
    errno.EMFILE: {"open", "create"},
    errno.ENOSPC: {"create", "write", "replace"},
    errno.EIO: {"pread"},
}
"""Calls that may fail so without ending the process, which an I/O error of a sync rightly does."""


class NextCallFails(FailingFiles):
    """Fails one call from now on, counting those that can fail with the given error."""

    def __init__(self) -> None:
        super().__init__(is_counting=False)
        self._left = 0
        self._error = 0

    def arm(self, after: int, error: int) -> None:
        self._left, self._error, self.has_failed = after, error, False

    def before(self, call: str, target: Any) -> int:
        if call not in CALLS.get(self._error, ()):
            return 0
        self._left -= 1
        if self._left:
            return 0
        self.has_failed = True
        return self._error


def done(step: Callable[[], ErrorCode]) -> None:
    deadline = time.monotonic() + 20
    while (code := step()) is not ErrorCode.NONE:
        assert code in PASSING, code.name
        assert time.monotonic() < deadline, code.name
        time.sleep(0.01)


def run_transaction(client: TransactionClient, topic: str, group: str, *, is_commit: bool) -> None:
    done(lambda: client.add(topic, 0)[0])
    for number in range(3):
        done(lambda number=number: client.write(topic, f"{number}", sequence=number))  # type: ignore[misc]
    done(lambda: client.add_offsets(group))
    done(lambda: client.commit_offset(group, topic, 3))
    done(lambda: client.end(is_commit=is_commit))
    wait_until(lambda: client.state() == ("CompleteCommit" if is_commit else "CompleteAbort"), what="the markers")


def check(client: TransactionClient, topic: str, group: str, *, is_commit: bool) -> None:
    """Three batches and one marker, of which a reader of committed data hears the right thing."""
    offset, kinds, aborted = 0, [], []
    while True:
        fetched = client.fetch(topic, offset, isolation_level=1, max_wait_ms=0)
        assert fetched.error_code == 0
        batches = [header for header, _ in split_batches(fetched.records or b"")]
        if not batches:
            break
        kinds += [(header.is_control, header.base_sequence) for header in batches]
        aborted += [one.first_offset for one in fetched.aborted_transactions or []]
        offset = batches[-1].last_offset + 1
    assert kinds == [(False, 0), (False, 1), (False, 2), (True, -1)], topic
    assert set(aborted) == (set() if is_commit else {0}), topic
    wait_until(lambda: committed(client, group, topic) != -2, what="the offsets")
    assert committed(client, group, topic) == (3 if is_commit else -1)


def test_a_transaction_ends_once_whichever_call_fails(tmp_path: Path) -> None:
    files = NextCallFails()
    ended: list[tuple[str, str, bool]] = []
    with Broker(SETTINGS, data=tmp_path / "data", files=files) as broker:
        for error in CALLS:
            for after in range(1, 1000):
                name = f"{errno.errorcode[error]}-{after}"
                is_commit = after % 2 == 0
                with TransactionClient(broker.port, name) as client:
                    client.ask(10, 4, Message(key_type=0, coordinator_keys=[name]))
                    client.create_topic(name)
                    done(client.init)
                    files.arm(after, error)
                    run_transaction(client, name, name, is_commit=is_commit)
                    has_failed, _ = files.has_failed, files.arm(0, 0)
                    check(client, name, name, is_commit=is_commit)
                ended.append((name, name, is_commit))
                if not has_failed:
                    break
        assert broker.fatal_error is None
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    with Broker(SETTINGS, data=tmp_path / "killed") as broker, TransactionClient(broker.port, "reader") as client:
        for topic, group, is_commit in ended:
            check(client, topic, group, is_commit=is_commit)
    assert len(ended) > 30
