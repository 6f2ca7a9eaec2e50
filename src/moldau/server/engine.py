"""The engine process: one Spark driver for the pipelines of ksql, and of Connect. Start at `main`.

`python -m moldau.server.engine FOLDER`; services start it, and tell it over its control channel what to run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from moldau.core.errors import MoldauError
from moldau.ksql.pipelines import KIND as KSQL
from moldau.ksql.pipelines import KsqlBuilder
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.hosting.engine_service import EngineService
from moldau.pipeline.runtime.hosting.host import PipelineHost
from moldau.server.services import run_services

__all__ = ["main"]


def main(folder: str) -> int:
    """Run until SIGTERM; returns the exit status."""
    engine = Engine(can_grow=True)
    try:
        host = PipelineHost({KSQL: KsqlBuilder(engine)})
        return run_services(lambda: [EngineService(Path(folder), host)], roles=("engine",))
    except MoldauError as error:
        sys.stderr.write(f"moldau: {error}\n")
        return 1
    finally:
        engine.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
