"""The application whose checkpoints are kept here: state of Python's and state of Spark's own, in one query.

A checkpoint is made with the PySpark of its name: `python -m tests.spark.old_checkpoints.application FOLDER` runs the
application on `RECORDS`, and leaves the folder's content in `FOLDER/checkpoint.tar.gz`.
"""

from __future__ import annotations

import sys
import tarfile
import time
from pathlib import Path

from confluent_kafka import Producer

from moldau.client.admin import Admin
from moldau.streams import (
    Consumed,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
)
from moldau.streams.kafka_streams import KafkaStreams
from moldau.testing import Broker

__all__ = ["APPLICATION", "PARTITIONS", "PLACE", "RECORDS", "config", "prepare", "rename_folder", "topology"]

APPLICATION, PARTITIONS, RECORDS = "kept", 2, 24
PLACE = "/state"
"""The folder in which an archived checkpoint says it is."""
TEXT, NUMBER = StringSerde(), LongSerde()


def topology() -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("in", Consumed.with_(TEXT, TEXT)).group_by_key()
    grouped.count(Materialized.as_("native").with_value_serde(NUMBER)).to_stream().to(
        "native-counts", Produced.with_(TEXT, NUMBER)
    )
    windows = TimeWindows.of_size_with_no_grace(3_600_000)
    hours = grouped.windowed_by(windows).count(Materialized.with_(TEXT, NUMBER))
    hours.to_stream(lambda windowed, count: windowed.key).to("python-counts", Produced.with_(TEXT, NUMBER))
    return builder.build()


def config(broker: Broker, folder: Path) -> dict[str, str]:
    return {
        "application.id": APPLICATION,
        "bootstrap.servers": broker.bootstrap_servers,
        "state.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
    }


def prepare(broker: Broker, first: int, end: int) -> None:
    """Make the topics if need be, and send the records from `first` to before `end`, always to the same partitions."""
    admin = Admin(broker.bootstrap_servers)
    for topic in ("in", "native-counts", "python-counts"):
        if topic not in admin.partition_counts():
            admin.create_topic(topic, partitions=PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(first, end):
        which = number % 3
        producer.produce(
            "in", b"x", b"key-%d" % which, partition=which % PARTITIONS, timestamp=1_767_225_600_000 + number
        )
    assert producer.flush(30) == 0


def rename_folder(folder: Path, old: str, new: str) -> None:
    """Let the files of Python's state, which Spark names with their whole path, be in another folder."""
    for file in folder.glob(f"{APPLICATION}/checkpoint/state/*/_metadata/v2/*"):
        file.write_text(file.read_text().replace(f"file:{old}/", f"file:{new}/"))


def main() -> None:
    folder = Path(sys.argv[1])
    with Broker({"num.partitions": str(PARTITIONS)}) as broker:
        prepare(broker, 0, RECORDS)
        streams = KafkaStreams(topology(), config(broker, folder))
        streams.start()
        while streams.metrics().records_in < RECORDS:
            time.sleep(0.1)
        streams.close()
    rename_folder(folder, str(folder), PLACE)
    with tarfile.open(folder / "checkpoint.tar.gz", "w:gz") as archive:
        archive.add(folder / APPLICATION, APPLICATION)


if __name__ == "__main__":
    main()
