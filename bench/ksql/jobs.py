"""The jobs, as SQL; `apps` has the same ones for the Streams DSL and for PySpark. Start at `JOBS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.ksql.records import COLUMNS

__all__ = ["JOBS", "Job"]

ONE_TO_ONE: Callable[[int], int] = lambda count: count  # noqa: E731


@dataclass(frozen=True, slots=True)
class Job:
    """`{s}` is the source, `{o}` the result; `outputs` is how many results a number of orders has at the least."""

    name: str
    title: str
    sql: str
    outputs: Callable[[int], int] = ONE_TO_ONE
    tables: int = 0
    cached: bool = False

    def statements(self, source: str, output: str, tables: list[str]) -> str:
        """All statements of the job over these topics."""
        made = [f"CREATE STREAM S_{self.id} ({COLUMNS}) WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"]
        for number, table in enumerate(tables):
            made.append(
                f"CREATE TABLE C{number}_{self.id} (ID STRING PRIMARY KEY, NAME STRING, LEVEL INT) "
                f"WITH (KAFKA_TOPIC='{table}', VALUE_FORMAT='JSON');"
            )
        kind = "TABLE" if "GROUP BY" in self.sql else "STREAM"
        sql = self.sql.format(s=f"S_{self.id}", c0=f"C0_{self.id}", c1=f"C1_{self.id}")
        made.append(f"CREATE {kind} O_{self.id} WITH (KAFKA_TOPIC='{output}', PARTITIONS=4) AS {sql};")
        return "\n".join(made)

    @property
    def id(self) -> str:
        """The name as part of an identifier."""
        return self.name.replace("-", "_").upper()


JOBS = {
    job.name: job
    for job in (
        Job("filter", "filter", "SELECT * FROM {s} WHERE PRICE < 500", lambda count: count // 2),
        Job(
            "project",
            "project",
            "SELECT ID, UCASE(ITEM) AS ITEM, PRICE * QUANTITY AS TOTAL, CONCAT(ITEM, '!') AS LABEL FROM {s}",
        ),
        Job("count", "count by key, every change", "SELECT ID, COUNT(*) AS N FROM {s} GROUP BY ID"),
        Job("count-cached", "count by key, caching", "SELECT ID, COUNT(*) AS N FROM {s} GROUP BY ID",
            lambda count: 1, cached=True),
        Job("tumbling", "tumbling count, every change",
            "SELECT ID, COUNT(*) AS N FROM {s} WINDOW TUMBLING (SIZE 1 MINUTES) GROUP BY ID"),
        Job("join", "stream-table join",
            "SELECT O.ID, O.ITEM, O.PRICE, C.NAME FROM {s} O JOIN {c0} C ON O.ID = C.ID", tables=1),
        Job("n-way", "join with two tables",
            "SELECT O.ID, O.ITEM, C.NAME, D.LEVEL FROM {s} O JOIN {c0} C ON O.ID = C.ID JOIN {c1} D ON O.ID = D.ID",
            tables=2),
    )
}  # fmt: skip
