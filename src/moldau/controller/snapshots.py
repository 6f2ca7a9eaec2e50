"""Snapshots of the metadata: the whole image as a file of record batches.

    00000000000000001234-0000000005.checkpoint     everything below offset 1234, last epoch 5

The records are between a header and a footer; a file without a footer is incomplete and is
skipped. Start at `encode_snapshot` and `decode_snapshot`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from moldau.controller.features import METADATA_VERSION
from moldau.controller.image import MetadataImage, PartitionImage, TopicImage
from moldau.log.files import Files
from moldau.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    MalformedRecordError,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.protocol.records import (
    ControlType,
    Record,
    control_batch,
    control_type,
    crc_of,
    decode_records,
    encode_batch,
    split_batches,
)

__all__ = [
    "SnapshotId",
    "decode_snapshot",
    "encode_snapshot",
    "image_records",
    "newest_first",
    "save_snapshot",
    "snapshot_name",
]

SUFFIX = ".checkpoint"
RECORDS_PER_BATCH = 1000
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_VERSION_0 = b"\0\0"


class SnapshotId(NamedTuple):
    end_offset: int
    """The first offset after the snapshot."""
    epoch: int


def snapshot_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}{SUFFIX}"


def newest_first(names: Iterable[str]) -> list[SnapshotId]:
    """The snapshots among the files of a folder, newest first."""
    found = [_NAME.fullmatch(name) for name in names]
    return sorted((SnapshotId(int(one[1]), int(one[2])) for one in found if one), reverse=True)


# --- the image as records ---------------------------------------------------------------------------


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Records that, replayed onto an empty image, give this image. metadata.version comes first, as Kafka expects."""
    for name in sorted(image.features, key=lambda one: (one != METADATA_VERSION, one)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from _broker_records(image)
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for number, partition in topic.partitions.items():
            yield _partition_record(topic, number, partition)
    for resource, settings in image.configs.items():
        for name, value in settings.items():
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.kept.values()


def _broker_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    for broker in image.brokers.values():
        yield RegisterBrokerRecord(
            broker_id=broker.node_id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=tuple(
                BrokerEndpoint(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for one in broker.endpoints.values()
            ),
            features=tuple(
                BrokerFeature(name=name, min_supported_version=least, max_supported_version=most)
                for name, (least, most) in broker.features.items()
            ),
            rack=broker.rack,
            fenced=broker.is_fenced,
            in_controlled_shutdown=broker.is_in_controlled_shutdown,
            log_dirs=broker.log_dirs,
        )


def _partition_record(topic: TopicImage, number: int, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.eligible_leader_replicas or None,
        last_known_elr=partition.last_known_elr or None,
    )


# --- files ------------------------------------------------------------------------------------------


def encode_snapshot(
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    last_timestamp_ms: int,
    now_ms: int,
    quorum: Iterable[tuple[ControlType, bytes]] = (),
) -> Iterator[bytes]:
    """Yield the batches of a snapshot file in order; their offsets start at 0.

    `quorum` are control records about the voters, which come first.
    """
    header = _VERSION_0 + last_timestamp_ms.to_bytes(8, "big", signed=True) + b"\0"
    offset = 0
    for kind, value in ((ControlType.SNAPSHOT_HEADER, header), *quorum):
        yield control_batch(kind, value, timestamp=now_ms, base_offset=offset, partition_leader_epoch=epoch)
        offset += 1
    remaining = iter(records)
    while group := list(islice(remaining, RECORDS_PER_BATCH)):
        values = (Record(delta, 0, None, encode_metadata_record(record)) for delta, record in enumerate(group))
        yield encode_batch(values, base_timestamp=now_ms, base_offset=offset, partition_leader_epoch=epoch)
        offset += len(group)
    footer = _VERSION_0 + b"\0"
    yield control_batch(
        ControlType.SNAPSHOT_FOOTER, footer, timestamp=now_ms, base_offset=offset, partition_leader_epoch=epoch
    )


def decode_snapshot(data: bytes) -> list[MetadataRecord]:
    """Read a snapshot file; raises `MalformedRecordError` if it is incomplete or damaged."""
    records: list[MetadataRecord] = []
    kinds: list[int] = []
    for header, batch in split_batches(data):
        if crc_of(batch) != header.crc:
            raise MalformedRecordError(f"the batch of offset {header.base_offset} fails its checksum")
        if header.is_control:
            kinds += [control_type(record.key) for record in decode_records(batch, header)]
            continue
        records += [decode_metadata_record(record.value or b"") for record in decode_records(batch, header)]
    if not kinds or kinds[0] != ControlType.SNAPSHOT_HEADER or kinds[-1] != ControlType.SNAPSHOT_FOOTER:
        raise MalformedRecordError("a snapshot without its header or footer was never finished")
    return records


def save_snapshot(files: Files, directory: str, snapshot: SnapshotId, batches: Iterable[bytes]) -> int:
    """Write under a `.part` name, sync, rename, sync the folder; returns the size."""
    path = os.path.join(directory, snapshot_name(snapshot))
    data = b"".join(batches)
    files.write_file(path + ".part", data)
    files.sync_file(path + ".part")
    files.rename(path + ".part", path)
    files.sync_directory(directory)
    return len(data)
