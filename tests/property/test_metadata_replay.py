"""Whatever is done to topics and settings, a restart finds it again: replay equals live, with snapshots in between."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.controller.controller import Controller
from moldau.controller.decisions.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.decisions.configs import ConfigOp, ResourceChange
from moldau.controller.decisions.topics import MorePartitions, NewTopic, TopicRef
from moldau.controller.image import ConfigResource, Endpoint
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.quorum.quorum import QuorumOfOne
from moldau.core.clock import SystemClock
from moldau.core.config import BrokerConfig
from moldau.log.config import LogConfig
from moldau.log.recovery.loading import create_log, open_log

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "no good"])
SETTINGS = st.sampled_from(
    [("segment.ms", "5"), ("retention.ms", "7"), ("cleanup.policy", "compact"), ("no.such", "1")]
)

ACTIONS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.integers(-2, 4), SETTINGS),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("grow"), NAMES, st.integers(0, 8)),
    st.tuples(st.just("set"), NAMES, SETTINGS, st.integers(0, 3)),
    st.tuples(
        st.just("set-broker"), st.sampled_from(["", "1", "9"]), st.sampled_from(["message.max.bytes", "node.id"])
    ),
    st.just(("producer-ids",)),
    st.just(("snapshot",)),
    st.just(("restart",)),
)


class Cluster:
    """A node of one on a folder, without any broker around it."""

    def __init__(self, folder: str) -> None:
        self._directory = f"{folder}/{METADATA_PARTITION}"
        self._start(create_log)

    def _start(self, opened: Any) -> None:
        partition = opened(self._directory, METADATA_PARTITION, LogConfig(segment_bytes=2000))
        self.log = MetadataLog(partition, SystemClock(), snapshot_after_bytes=1 << 30, keep_bytes=0)
        image, quorum = self.log.load(), QuorumOfOne(self.log, node_id=1)
        quorum.claim()
        me = BrokerRegistration(node_id=1, incarnation_id=uuid.uuid4(), endpoints=[Endpoint("PLAINTEXT", "h", 9092)])
        epoch = quorum.next_offset
        records = [registration(me, epoch), *unfencing(image, 1, epoch)]
        self.controller = Controller(quorum, image, BrokerConfig, random=Random(7))
        self.controller.apply_committed(records, quorum.append_now(records))

    def do(self, action: tuple[Any, ...]) -> None:
        if action[0] == "snapshot":
            self.log.save_snapshot(self.controller.image)
            self.log.trim()
        elif action[0] == "restart":
            self._start(open_log)
        else:
            asyncio.run(self._change(*action))

    async def _change(self, what: str, *details: Any) -> None:
        controller = self.controller
        if what == "create":
            name, partitions, (key, value) = details
            await controller.create_topics([NewTopic(name=name, partitions=partitions, configs={key: value})])
        elif what == "delete":
            await controller.delete_topics([TopicRef(details[0])])
        elif what == "grow":
            await controller.create_partitions([MorePartitions(name=details[0], total=details[1])])
        elif what == "producer-ids":
            await controller.allocate_producer_ids(1)
        elif what == "set":
            name, (key, value), op = details
            change = ResourceChange(ConfigResource(2, name), (ConfigOp(key, op, value),))
            await controller.alter_configs(lambda image: [change])
        else:
            change = ResourceChange(ConfigResource(4, details[0]), (ConfigOp(details[1], 0, "1000"),))
            await controller.alter_configs(lambda image: [change])

    def reloaded(self) -> object:
        partition = open_log(self._directory, METADATA_PARTITION, LogConfig(segment_bytes=2000))
        return MetadataLog(partition, SystemClock(), snapshot_after_bytes=1 << 30, keep_bytes=0).load()


@settings(max_examples=40, deadline=None)
@given(st.lists(ACTIONS, max_size=15))
def test_a_reloaded_image_equals_the_live_one(actions: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(folder)
        for action in actions:
            cluster.do(action)
        assert cluster.reloaded() == cluster.controller.image
