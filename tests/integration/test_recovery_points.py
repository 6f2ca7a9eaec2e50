"""What a crash leaves to be checked: at most the segments of the last moments, not those of the last minute."""

from __future__ import annotations

import time
from pathlib import Path

from tests.integration.raw_client import RawClient, batch_of

from moldau.log.directories.checkpoints import RECOVERY_POINTS
from moldau.testing.broker import Broker


def saved_recovery_point(data: Path, topic: str) -> int:
    path = next(iter(data.rglob(RECOVERY_POINTS)), None)
    lines = [] if path is None else path.read_text().splitlines()
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def test_a_roll_is_followed_by_its_recovery_point(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, RawClient(broker.port) as client:
        client.create_topic("t", **{"segment.bytes": "10000"})
        for _ in range(20):
            client.produce("t", batch_of(bytes(2000)))
        newest = max(int(path.stem) for path in tmp_path.rglob("t-0/*.log"))
        assert newest > 10
        deadline = time.monotonic() + 20
        while saved_recovery_point(tmp_path, "t") < newest:
            assert time.monotonic() < deadline, "the checkpoint of the minute was not to be waited for"
            time.sleep(0.01)
