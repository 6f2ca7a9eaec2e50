"""`kafka-metadata-quorum` changes the voters of a quorum that keeps them in its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.integration.cli_commands import run_line
from tests.integration.dynamic_cluster import DynamicCluster, dynamic_cluster, until

from moldau.core.ids import render_uuid


async def line(text: str) -> tuple[int, str]:
    done = await asyncio.to_thread(run_line, text)
    return done.returncode, done.stdout + done.stderr


def settings_file(cluster: DynamicCluster, folder: Path, node_id: int) -> Path:
    file = folder / f"controller{node_id}.properties"
    endpoint = f"CONTROLLER://127.0.0.1:{cluster.ports[node_id]}"
    file.write_text(
        f"process.roles=controller\nnode.id={node_id}\nlog.dirs={cluster.folder / str(node_id)}\n"
        f"listeners={endpoint}\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{cluster.ports[1]}\n"
    )
    return file


def test_a_controller_is_added_and_removed_with_the_tool(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with dynamic_cluster(tmp_path) as cluster:
            cluster.format(1, is_standalone=True)
            cluster.format(2)
            for node_id in (1, 2):
                await cluster.start(node_id)
            await cluster.leader()
            await until(lambda: len(cluster.quorum(1).view().observers) == 1)
            at = f"127.0.0.1:{cluster.ports[1]}"
            tool = f"kafka-metadata-quorum --bootstrap-controller {at}"
            add = f"{tool} --command-config {settings_file(cluster, tmp_path, 2)} add-controller"
            directory_id = cluster.quorum(2).me.key.directory_id
            assert directory_id is not None
            directory = render_uuid(directory_id)

            code, said = await line(f"{add} --dry-run")
            assert code == 0, said
            assert cluster.voters() == [[1], [1]]
            code, said = await line(add)
            assert (code, said) == (
                0,
                f"Added controller 2 with directory id {directory} and endpoints: "
                f"CONTROLLER://127.0.0.1:{cluster.ports[2]}\n",
            )
            await until(lambda: cluster.voters() == [[1, 2], [1, 2]])
            code, said = await line(add)
            assert code == 1
            assert "already" in said

            code, said = await line(f"{tool} describe --replication")
            assert directory in said
            remove = f"{tool} remove-controller -i 2 -d"
            code, said = await line(f"{remove} {directory[::-1]}")
            assert code == 1
            code, said = await line(f"{remove} {directory}")
            # Two spaces, as in Apache Kafka's tool.
            assert (code, said) == (0, f"Removed  KRaft controller 2 with directory id {directory}\n")
            await until(lambda: cluster.voters() == [[1], [1]])

            # A controller's tools ask the controller itself.
            asked = "upgrade --feature kraft.version=1"
            code, said = await line(f"kafka-features --bootstrap-controller {at} {asked}")
            assert (code, said) == (0, "kraft.version was upgraded to 1.\n")

    asyncio.run(scenario())
