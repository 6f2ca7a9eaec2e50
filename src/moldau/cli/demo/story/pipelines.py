"""What the demo asks of the platform: connectors, SQL and questions, as the JSON that anyone could send with curl.

Start at `Pipelines`.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Final

from sqlalchemy.engine import URL

from moldau.cli.demo.story.platform import Platform
from moldau.cli.demo.story.program import ORDERS, SALES
from moldau.cli.demo.story.shop import TABLE
from moldau.cli.tool import ToolError

__all__ = [
    "ETL_STATEMENTS",
    "FILES_FOLDER",
    "SOURCE",
    "STORY_STATEMENTS",
    "TABLE_QUESTION",
    "Pipelines",
    "ServiceAwayError",
]

TIMEOUT_S: Final = 60.0
FILES_FOLDER: Final = "files"
SOURCE, SINK = "shop-orders", "shop-files"

_STREAM = f"CREATE STREAM orders WITH (KAFKA_TOPIC = '{ORDERS}', VALUE_FORMAT = 'AVRO');"
STORY_STATEMENTS: Final = f"""{_STREAM}
CREATE TABLE orders_per_country AS
  SELECT country, COUNT(*) AS orders, SUM(cents) AS cents, MAX(placed_ms) AS newest_ms
  FROM orders GROUP BY country;"""
ETL_STATEMENTS: Final = f"""{_STREAM}
CREATE TABLE sales WITH (KAFKA_TOPIC = '{SALES}') AS
  SELECT product AS id, AS_VALUE(product) AS product, WINDOWSTART AS window_start_ms,
         COUNT(*) AS orders, SUM(cents) AS cents, MAX(placed_ms) AS newest_ms
  FROM orders WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY product;"""

TABLE_QUESTION: Final = "SELECT country, orders, cents, newest_ms FROM orders_per_country;"


class ServiceAwayError(ToolError):
    """A service did not answer."""


class Pipelines:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._converters = {
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": platform.url("registry"),
        }

    def read_orders(self, database: URL) -> None:
        """From the table into the topic: a row becomes an Avro record, the registry gets its schema."""
        secret = {} if database.password is None else {"connection.password": str(database.password)}
        self._create(
            SOURCE,
            {
                "connector.class": "JdbcSource",
                "connection.url": database._replace(password=None).render_as_string(),
                **secret,
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "table.whitelist": TABLE,
                "topic.prefix": ORDERS.removesuffix(TABLE),
                "poll.interval.ms": "100",
                "batch.max.rows": "5000",
            },
        )

    def write_files(self) -> None:
        """From the topic of results into Parquet files, a new one every second."""
        self._create(
            SINK,
            {
                "connector.class": "HdfsSink",
                "topics": SALES,
                "store.url": str(self._platform.folder / FILES_FOLDER),
                "format.class": "io.confluent.connect.hdfs.parquet.ParquetFormat",
                "flush.size": "100000",
                "rotate.interval.ms": "1000",
            },
        )

    def has_schema(self) -> bool:
        """Whether the first row has arrived, so that SQL knows the columns."""
        try:
            return f"{ORDERS}-value" in self._ask("registry", "/subjects")
        except ServiceAwayError:
            return False

    def run_sql(self, statements: str) -> None:
        self._ask("ksql", "/ksql", {"ksql": statements, "streamsProperties": {"auto.offset.reset": "earliest"}})

    def select(self, statement: str) -> list[list[Any]]:
        """The rows of a table, asked over HTTP."""
        return [part["row"]["columns"] for part in self._ask("ksql", "/query", {"ksql": statement}) if "row" in part]

    def failure(self) -> str | None:
        """Why a connector does not run, if so."""
        try:
            connectors = self._ask("connect", "/connectors?expand=status")
        except ServiceAwayError:
            return None
        for name, known in connectors.items():
            status = known.get("status")  # a connector has none until a worker has taken it
            for part in () if status is None else (status["connector"], *status["tasks"]):
                if part["state"] == "FAILED":
                    return f"the connector {name} has failed: {_last_words(part.get('trace', ''))}"
        return None

    def _create(self, name: str, config: dict[str, str]) -> None:
        self._ask("connect", "/connectors", {"name": name, "config": config | self._converters})

    def _ask(self, service: str, path: str, document: object = None) -> Any:
        request = urllib.request.Request(
            f"{self._platform.url(service)}{path}",
            data=None if document is None else json.dumps(document).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise ToolError(f"{service} refuses: {_message(refusal.read())}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ServiceAwayError(f"{service} does not answer at {request.full_url}: {error}") from None


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:300]


def _last_words(trace: str) -> str:
    lines = [line for line in trace.splitlines() if line.strip()]
    return lines[-1] if lines else "it does not say why"
