"""Records that are no longer in the page cache are read in threads, and read right."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.raw_client import RawClient, batch_of

from moldau.broker.data.cold_reads import is_page_resident
from moldau.protocol.records import decode_records, split_batches
from moldau.testing.broker import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def evict(folder: Path) -> bool:
    """Ask the kernel to forget the log files; says whether it did with all of them."""
    is_evicted = True
    for path in folder.glob("*.log"):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            is_evicted &= not is_page_resident(fd, os.fstat(fd).st_size // 2)
        finally:
            os.close(fd)
    return is_evicted


def test_cold_records_are_read_in_a_thread(broker: Broker) -> None:
    assert broker.node is not None
    assert broker.node.broker is not None
    cold_reads = broker.node.broker.data_plane.cold_reads
    with RawClient(broker.port) as client:
        client.create_topic("old", **{"segment.bytes": "4000000"})
        for number in range(30):
            client.produce("old", batch_of(b"%d" % number, os.urandom(700_000)))
        deadline = time.monotonic() + 20
        while not evict(broker.data / "old-0"):
            if time.monotonic() > deadline:
                pytest.skip("this file system keeps its pages or cannot tell")
        offset, numbers = 0, []
        while offset < 60:
            found = client.fetch("old", offset, partition_max_bytes=3_000_000)
            for header, batch in split_batches(found.records):
                numbers.append(next(decode_records(batch, header)).value)
                offset = header.last_offset + 1
        assert numbers == [b"%d" % number for number in range(30)]
        assert cold_reads.count > 0
