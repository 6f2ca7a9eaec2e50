"""A quorum whose voters are in its log: it begins with one controller, grows, shrinks and survives restarts."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.integration.dynamic_cluster import CLUSTER_ID, DynamicCluster, dynamic_cluster, until

from moldau.controller.quorum.records import voters_in
from moldau.core.errors import ErrorCode, InvalidConfigError
from moldau.core.ids import random_uuid, render_uuid
from moldau.protocol.api import ApiKey
from moldau.protocol.metadata_records import ConfigRecord
from moldau.server.directories import FormatError, FormatPlan, format_directories


def setting(number: int) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="num.io.threads", value=str(number))


def test_a_quorum_grows_from_one_to_three_and_loses_its_first_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with dynamic_cluster(tmp_path) as cluster:
            cluster.format(1, is_standalone=True)
            cluster.format(2)
            cluster.format(3)
            for node_id in (1, 2, 3):
                await cluster.start(node_id)
            assert await cluster.leader() == 1
            await until(lambda: len(cluster.quorum(1).view().observers) == 2)
            for node_id in (2, 3):
                assert await cluster.ask(ApiKey.ADD_RAFT_VOTER, node_id) == ErrorCode.NONE
            await until(lambda: cluster.voters() == [[1, 2, 3]] * 3)
            assert await cluster.ask(ApiKey.ADD_RAFT_VOTER, 2) == ErrorCode.DUPLICATE_VOTER
            assert await cluster.ask(ApiKey.REMOVE_RAFT_VOTER, 1) == ErrorCode.NONE
            await until(lambda: any(cluster.quorum(one).is_active for one in (2, 3)))
            assert not cluster.quorum(1).is_active
            await cluster.quorum(await cluster.leader()).append([setting(5)])
            await until(lambda: cluster.quorum(1).image == cluster.quorum(2).image == cluster.quorum(3).image)
            assert cluster.voters() == [[2, 3]] * 3
            for node_id in (1, 2, 3):
                await cluster.stop(node_id)
            for node_id in (2, 3):
                await cluster.start(node_id)
            assert await cluster.leader() in (2, 3)
            assert cluster.voters() == [[2, 3]] * 2

    asyncio.run(scenario())


def test_three_controllers_begin_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with dynamic_cluster(tmp_path) as cluster:
            ids = {node_id: random_uuid() for node_id in (1, 2, 3)}
            text = ",".join(
                f"{one}@127.0.0.1:{cluster.ports[one]}:{render_uuid(directory)}" for one, directory in ids.items()
            )
            for node_id in ids:
                cluster.format(node_id, initial_controllers=text)
                await cluster.start(node_id)
            await cluster.leader()
            assert cluster.voters() == [[1, 2, 3]] * 3
            assert {cluster.quorum(one).me.key.directory_id for one in ids} == set(ids.values())
            assert cluster.quorum(1).kraft_version() == 1

    asyncio.run(scenario())


def test_snapshots_say_who_votes(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = {
            "metadata_log_max_record_bytes_between_snapshots": "3000",
            "metadata_log_segment_bytes": "1000",
            "metadata_max_retention_bytes": "1000",
        }
        async with dynamic_cluster(tmp_path, **settings) as cluster:
            cluster.format(1, is_standalone=True)
            cluster.format(2)
            for node_id in (1, 2):
                await cluster.start(node_id)
            assert await cluster.ask(ApiKey.ADD_RAFT_VOTER, 2) == ErrorCode.NONE
            leader = cluster.quorum(await cluster.leader())
            for number in range(150):
                await leader.append([setting(number)])
            await until(lambda: leader.log.partition.log_start_offset > 10)
            assert leader.log.last_snapshot is not None
            saved = voters_in(leader.log.read_snapshot(leader.log.last_snapshot) or b"")
            assert saved is not None
            assert (saved.kraft_version, sorted(saved.voters.by_id)) == (1, [1, 2])
            cluster.format(3)
            late = await cluster.start(3)
            await until(lambda: late.image.offset >= 150 and sorted(late.voters().by_id) == [1, 2])
            for node_id in (1, 2, 3):
                await cluster.stop(node_id)
            for node_id in (1, 2, 3):
                await cluster.start(node_id)
            await cluster.leader()
            assert cluster.voters() == [[1, 2]] * 3

    asyncio.run(scenario())


def test_a_voter_with_an_empty_disk_is_no_voter_any_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with dynamic_cluster(tmp_path) as cluster:
            cluster.format(1, is_standalone=True)
            cluster.format(2)
            for node_id in (1, 2):
                await cluster.start(node_id)
            assert await cluster.ask(ApiKey.ADD_RAFT_VOTER, 2) == ErrorCode.NONE
            old = cluster.quorum(2).me
            await cluster.stop(2)
            shutil.rmtree(tmp_path / "2")
            cluster.format(2)
            replaced = await cluster.start(2)
            assert replaced.me.key.directory_id != old.key.directory_id
            await asyncio.sleep(0)
            assert not cluster.quorum(1).voters().has(replaced.me.key)

    asyncio.run(scenario())


def test_bad_lists_of_controllers_are_refused(tmp_path: Path) -> None:
    cluster = DynamicCluster(tmp_path, {})
    with pytest.raises(InvalidConfigError, match="id@host:port:directory"):
        cluster.format(1, initial_controllers="1@localhost:9093")
    entry = f"2@localhost:9093:{render_uuid(random_uuid())}"
    with pytest.raises(FormatError, match="does not name node 1"):
        cluster.format(1, initial_controllers=entry)
    with pytest.raises(InvalidConfigError, match="twice"):
        cluster.format(1, initial_controllers=f"{entry},{entry}")
    fixed = cluster.config(1, **{"controller.quorum.voters": "1@localhost:9093"})
    with pytest.raises(FormatError, match="fixes the voters"):
        format_directories(fixed, FormatPlan(cluster_id=CLUSTER_ID, is_dynamic=True))
    assert not (tmp_path / "1").exists()
