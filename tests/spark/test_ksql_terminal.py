"""The first session of a new user in the ksql terminal, from CREATE to DROP, over a real server with Spark."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from tests.integration.ksql_terminal import KsqlTerminal, ksql_server

from moldau.testing import Broker

SPARK_STARTS_S = 240.0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_session_of_a_new_user(tmp_path: Path) -> None:
    with (
        Broker() as broker,
        ksql_server(broker.bootstrap_servers, tmp_path) as (url, _),
        KsqlTerminal([url], tmp_path) as terminal,
    ):
        terminal.expect("ksql> ")
        terminal.run("CREATE STREAM orders (id INT KEY, customer STRING, amount INT)", until=">")
        created = terminal.run("WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);")
        assert " Stream created \n" in created
        for number, (customer, amount) in enumerate([("anna", 10), ("bob", 20), ("anna", 5)]):
            terminal.run(f"INSERT INTO orders VALUES ({number}, '{customer}', {amount});")
        terminal.run("SET 'auto.offset.reset'='earliest';")
        rows = terminal.run("SELECT customer, amount FROM orders EMIT CHANGES LIMIT 3;")
        assert [*re.findall(r"^\|(\w+) +\|(\w+) +\|$", rows, re.MULTILINE)] == [
            ("CUSTOMER", "AMOUNT"),
            ("anna", "10"),
            ("bob", "20"),
            ("anna", "5"),
        ]

        made = terminal.run(
            "CREATE TABLE totals AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;",
            timeout_s=SPARK_STARTS_S,
        )
        assert " Created query with ID CTAS_TOTALS_" in made
        query_id = re.search(r"CTAS_TOTALS_\d+", made).group()  # type: ignore[union-attr]

        assert wait_for_total(terminal, "anna") == "15"
        described = terminal.run("DESCRIBE totals;")
        assert " CUSTOMER | VARCHAR(STRING)  (primary key) \n" in described
        extended = terminal.run("DESCRIBE totals EXTENDED;")
        assert re.search(rf"{query_id} +records-in-total: 3 ", extended), extended
        assert f"Consumer Group       : _confluent-ksql-default_query_{query_id}" in extended
        assert re.search(r" 0 +\| 0 +\| 3 +\| 3 +\| 0 ", extended), extended
        explained = terminal.run(f"EXPLAIN {query_id};")
        assert "Sinks that this query writes to:" in explained
        assert "Execution plan\n" in explained
        assert f" {query_id} | PERSISTENT | RUNNING:1 | TOTALS " in terminal.run("SHOW QUERIES;").replace("\n", "")

        assert " Query terminated. \n" in terminal.run(f"TERMINATE {query_id};", timeout_s=120)
        assert " was dropped." in terminal.run("DROP TABLE totals DELETE TOPIC;")
        assert " was dropped." in terminal.run("DROP STREAM orders DELETE TOPIC;")
        assert "TOTALS" not in terminal.run("SHOW TABLES;").replace("SHOW TABLES;", "")
        terminal.run("exit", until="Exiting ksqlDB.")
        assert terminal.wait() == 0


def wait_for_total(terminal: KsqlTerminal, customer: str) -> str:
    """Ask the table until Spark has counted the three orders."""
    deadline = time.monotonic() + SPARK_STARTS_S
    while True:
        shown = terminal.run(f"SELECT total FROM totals WHERE customer = '{customer}';")
        found = re.search(r"^\|(\d+) +\|$", shown, re.MULTILINE)
        if found is not None and found.group(1) != "10":
            return found.group(1)
        assert time.monotonic() < deadline, shown
