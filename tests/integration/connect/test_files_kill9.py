"""The file-system sink, killed again and again while records come: in the files each is there once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.server_process import ServerProcess, wait_until

from moldau.client.admin import Admin
from moldau.testing import Broker

TOPIC = "numbers-to-files"
KILLS = 3
PER_S = 2_000


class Numbers:
    """A producer of 0, 1, 2 … until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    @contextmanager
    def coming(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()
            assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            for _ in range(PER_S // 20):
                self._producer.produce(TOPIC, json.dumps({"n": self.sent, "rest": self.sent % 3}), key=str(self.sent))
                self.sent += 1
            self._producer.poll(0)


def found_in(folder: Path) -> Counter[int]:
    files = [path for path in folder.glob(f"topics/{TOPIC}/**/*.json") if path.is_file()]
    return Counter(json.loads(line)["n"] for path in files for line in path.read_text().splitlines())


@pytest.mark.slow
def test_each_record_is_in_one_file_after_kills(moldau_broker: Broker, tmp_path: Path) -> None:
    Admin(moldau_broker.bootstrap_servers).create_topic(TOPIC, partitions=3, replication_factor=1)
    worker, sink, store = tmp_path / "worker.properties", tmp_path / "sink.properties", tmp_path / "store"
    worker.write_text(
        f"bootstrap.servers={moldau_broker.bootstrap_servers}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "value.converter.schemas.enable=false\n"
        f"offset.storage.file.filename={tmp_path / 'offsets'}\n"
        "offset.flush.interval.ms=300\n"
        "listeners=http://127.0.0.1:0\n"
        "moldau.connect.engine=threads\n"
    )
    sink.write_text(
        f"name=numbers\nconnector.class=HdfsSink\ntasks.max=2\ntopics={TOPIC}\nstore.url={store}\n"
        "format.class=JsonFormat\nflush.size=130\nrotate.interval.ms=500\n"
        # Three folders for each partition: a commit is several renames.
        "partitioner.class=FieldPartitioner\npartition.field.name=rest\n"
        "consumer.override.session.timeout.ms=6000\n"
    )
    numbers = Numbers(moldau_broker.bootstrap_servers)
    program = ("-m", "moldau.cli.connect.standalone")
    with numbers.coming():
        for _ in range(KILLS):
            before = len(found_in(store))
            with ServerProcess([str(worker), str(sink)], program=program) as process:
                wait_until(lambda before=before: len(found_in(store)) > before + 300, what="more records in files")
                assert process.process is not None
                process.process.kill()
    with ServerProcess([str(worker), str(sink)], program=program) as process:
        wait_until(lambda: len(found_in(store)) >= numbers.sent, what="all records in files")
        assert process.terminate() == 0
    assert found_in(store) == Counter(range(numbers.sent))
