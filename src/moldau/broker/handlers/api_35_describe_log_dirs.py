"""DescribeLogDirs (35), versions 1-4: data folders, and the size of each partition in them.

v3 a top-level error, v4 size and free space of the file system. Start at `handle`.
"""

from __future__ import annotations

import os
from collections import defaultdict

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.partition_log import PartitionLog
from moldau.protocol.messages import Message

__all__ = ["handle"]

UNKNOWN_BYTES = -1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    asked = None
    if request.topics is not None:
        asked = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
    by_folder: dict[str, list[PartitionLog]] = defaultdict(list)
    for log in broker.logs:
        if asked is None or log.topic_partition in asked:
            by_folder[os.path.dirname(log.directory)].append(log)
    return Message(
        error_code=ErrorCode.NONE,
        results=[_folder(directory, by_folder[directory.path], broker) for directory in broker.logs.directories],
    )


def _folder(directory: LogDirectory, logs: list[PartitionLog], broker: Broker) -> Message:
    total, usable = _space(directory.path, broker)
    if directory.error is not None:
        return Message(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            log_dir=directory.path,
            topics=[],
            total_bytes=total,
            usable_bytes=usable,
        )
    by_topic: dict[str, list[PartitionLog]] = defaultdict(list)
    for log in logs:
        by_topic[log.topic_partition.topic].append(log)
    return Message(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=[
            Message(name=topic, partitions=[_partition(log) for log in in_topic])
            for topic, in_topic in by_topic.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )


def _partition(log: PartitionLog) -> Message:
    return Message(
        partition_index=log.topic_partition.partition,
        partition_size=log.size_in_bytes,
        offset_lag=max(0, log.high_watermark - log.log_end_offset),
        is_future_key=False,
    )


def _space(path: str, broker: Broker) -> tuple[int, int]:
    try:
        return broker.logs.files.space(path)
    except OSError:
        return UNKNOWN_BYTES, UNKNOWN_BYTES
