"""The engine process: one Spark driver for the pipelines of ksql, and the tasks of Connect. Start at `main`.

`python -m moldau.server.services.engine FOLDER [--threads N] [spark.key=value …]`; services start it, and tell it over
its control channel what to run.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.connect.runtime.board import TaskBoard
from moldau.connect.runtime.channel import CarrierChannel
from moldau.connect.runtime.hosted_task import KIND as CONNECT
from moldau.connect.runtime.hosted_task import ConnectBuilder
from moldau.connect.runtime.spark_carriers import SparkCarriers
from moldau.core.errors import MoldauError
from moldau.ksql.pipelines import KIND as KSQL
from moldau.ksql.pipelines import KsqlBuilder
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.hosting.engine_service import EngineService
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.pipeline.spark.driver.session import default_threads
from moldau.server.services.run import Service, run_services

__all__ = ["main"]

logger = logging.getLogger("moldau.engine")


class _ConnectService:
    """The carriers' channel; when it stops, the carriers end first."""

    def __init__(self, channel: CarrierChannel, carriers: SparkCarriers) -> None:
        self._channel = channel
        self._carriers = carriers

    async def start(self) -> None:
        await self._channel.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self._carriers.close)
        await self._channel.stop()


class _SparkStart:
    """Stops first: an engine that is asked to end while Spark is starting does not wait until it has started.

    No pipeline runs by then. Spark's Java process ends with this one; the next start removes its temporary files.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self) -> None: ...

    async def stop(self) -> None:
        if self._engine.is_starting:
            logger.info("engine stopped while Spark was starting")
            logging.shutdown()
            os._exit(0)


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM; returns the exit status."""
    options = options_of(arguments)
    # Tasks of connectors mostly wait, so there may be many more than cores; the state of queries is split by cores.
    cores = {"spark.sql.shuffle.partitions": str(default_threads())}
    settings = cores | dict(one.partition("=")[::2] for one in options.settings)
    engine = Engine(settings, threads=options.threads, can_grow=options.threads is None)

    def services() -> list[Service]:
        board = TaskBoard(options.tasks_per_carrier)
        channel = CarrierChannel(board, engine.settings.get("spark.driver.host", "127.0.0.1"))
        carriers = SparkCarriers(engine, board, channel)
        host = PipelineHost({KSQL: KsqlBuilder(engine), CONNECT: ConnectBuilder(board, carriers)})
        return [_ConnectService(channel, carriers), EngineService(options.folder, host), _SparkStart(engine)]

    try:
        return run_services(services, roles=("engine",))
    except MoldauError as error:
        sys.stderr.write(f"moldau: {error}\n")
        return 1
    finally:
        engine.close()


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line. Options may stand between the folder and Spark's settings, which plain parsing refuses."""
    parser = argparse.ArgumentParser(prog="moldau.server.services.engine")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, help="how many Spark tasks may run at the same time")
    parser.add_argument("--tasks-per-carrier", type=int, default=8, help="connector tasks that share a Spark task")
    parser.add_argument("settings", nargs="*", help="settings of Spark: spark.key=value")
    return parser.parse_intermixed_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
