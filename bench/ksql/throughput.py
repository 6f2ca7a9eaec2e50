"""Records a second of each job, as SQL, in the Streams DSL and by hand in PySpark. Start at `measured`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.brokers import end
from bench.ksql.jobs import Job
from bench.ksql.records import Orders, finished_at, make_topic
from bench.ksql.server import KsqlProcess, Session

__all__ = ["WAYS", "measured"]

WAYS = {"ksql": "SQL", "dsl": "Streams DSL", "pyspark": "PySpark by hand"}
APPS = Path(__file__).parent / "apps"
START_TIMEOUT_S, RUN_TIMEOUT_S = 240.0, 900.0


def measured(job: Job, way: str, bootstrap: str, folder: Path, *, records: int, keys: int) -> float:
    """Records a second, from the moment at which all of them can be read to the last result."""
    source, output = f"in-{job.name}-{way}", f"out-{job.name}-{way}"
    tables = [f"table{number}-{job.name}-{way}" for number in range(job.tables)]
    make_topic(bootstrap, source)
    make_topic(bootstrap, output, is_output=True)
    orders = Orders(bootstrap, source, keys)
    for table in tables:
        make_topic(bootstrap, table)
        orders.write_table(table)
    warm_up = max(2_000, records // 10)
    orders.write(warm_up)
    counts_all = not job.cached and not (way == "pyspark" and job.name in ("count", "tumbling"))
    with _running(job, way, bootstrap, folder, [source, output, *tables]) as process:

        def is_alive() -> bool:
            return process is None or process.poll() is None

        finished_at(bootstrap, output, job.outputs(warm_up) if counts_all else 1, START_TIMEOUT_S, is_alive)
        began = orders.write(records)
        least = job.outputs(warm_up + records) if counts_all else 1
        return records / (finished_at(bootstrap, output, least, RUN_TIMEOUT_S, is_alive) - began)


@contextmanager
def _running(
    job: Job, way: str, bootstrap: str, folder: Path, topics: list[str]
) -> Iterator[subprocess.Popen[bytes] | None]:
    if way == "ksql":
        with KsqlProcess(bootstrap, folder) as server:
            session = Session(server.url)
            cache = {"ksql.streams.statestore.cache.max.bytes": "10000000"} if job.cached else {}
            session.statements(job.statements(topics[0], topics[1], topics[2:]), cache)
            yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(APPS / f"{way}_app.py"), job.name, bootstrap, str(folder), *topics]
    with (folder / "output.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=Path.cwd())
    try:
        yield process
    except RuntimeError as error:
        raise RuntimeError(f"{error}: {(folder / 'output.log').read_text(errors='replace')[-1500:]}") from None
    finally:
        end(process)
