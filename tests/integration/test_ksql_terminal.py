"""`ksql` in a terminal and in scripts, over a real server, with what needs no Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.ksql_terminal import KsqlTerminal, ksql_server

from moldau.testing import Broker

READINGS = """
CREATE STREAM readings (id INT KEY, place STRING, degrees DECIMAL(4, 1))
  WITH (KAFKA_TOPIC = 'readings', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO readings VALUES (1, 'Praha', 21.5);
INSERT INTO readings VALUES (2, 'Budweis', 19.0);
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker() as broker, ksql_server(broker.bootstrap_servers, tmp_path_factory.mktemp("ksql")) as (url, _):
        made = ksql(url, "-e", READINGS)
        assert made.returncode == 0, made.stderr
        yield url


def ksql(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "40"}
    return subprocess.run(
        [sys.executable, "-m", "moldau.cli.ksql.command", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )


def test_a_session_in_the_terminal(server: str, tmp_path: Path) -> None:
    with KsqlTerminal([server], tmp_path) as terminal:
        greeting = terminal.expect("ksql> ")
        assert f"located at {server}" in greeting
        assert "Server Status: RUNNING" in greeting

        # A statement over two lines; the last line has no `;`, and an empty line runs it.
        terminal.run("SHOW", until=">")
        terminal.run("STREAMS", until=">")
        listed = terminal.run("")
        assert re.search(r" READINGS +\| readings +\| KAFKA +\| JSON +\| false +\n", listed)
        assert re.search(
            r" KSQL_PROCESSING_LOG +\| default_ksql_processing_log +\| KAFKA +\| JSON +\| false +\n", listed
        )

        # Completion by the server's names.
        terminal.type("descr\tread\t")
        terminal.expect("describe readings ")
        assert " DEGREES | DECIMAL(4, 1)          \n" in terminal.run(";")

        assert "Successfully changed local property" in terminal.run("SET 'auto.offset.reset'='earliest';")
        rows = terminal.run("SELECT id, place FROM readings EMIT CHANGES LIMIT 2;")
        cell = 38
        assert f"|{'1':<{cell}}|{'Praha':<{cell}}|\n|{'2':<{cell}}|{'Budweis':<{cell}}|\n" in rows
        assert "Limit Reached\nQuery terminated\n" in rows


def test_ctrl_c_ends_a_query_and_clears_the_line(server: str, tmp_path: Path) -> None:
    with KsqlTerminal([server], tmp_path) as terminal:
        terminal.expect("ksql> ")
        terminal.run("SELECT * FROM readings EMIT CHANGES;", until="Press CTRL-C to interrupt")
        terminal.type("\x03")
        terminal.expect("Query terminated\nksql> ")
        terminal.type("SELECT nonsense")
        terminal.expect("nonsense")
        terminal.interrupt(until="ksql> ")
        assert "Version: " in terminal.run("version")
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert terminal.screen.endswith("Exiting ksqlDB.\n")


def test_history_is_kept_between_sessions(server: str, tmp_path: Path) -> None:
    with KsqlTerminal([server], tmp_path) as terminal:
        terminal.expect("ksql> ")
        terminal.run("SHOW", until=">")
        terminal.run("TYPES;")
        terminal.run("exit", until="Exiting ksqlDB.")
        terminal.wait()
    with KsqlTerminal([server], tmp_path) as terminal:
        terminal.expect("ksql> ")
        assert "   1: SHOW TYPES;\n   2: exit\n" in terminal.run("history")


def test_a_spool_has_input_and_output(server: str, tmp_path: Path) -> None:
    with KsqlTerminal([server], tmp_path) as terminal:
        terminal.expect("ksql> ")
        terminal.run(f"spool '{tmp_path / 'spool.txt'}'")
        terminal.run("SHOW TABLES;")
        terminal.run("spool off")
        terminal.run("SHOW TYPES;")

    spooled = (tmp_path / "spool.txt").read_text()
    assert "ksql> SHOW TABLES;\n\n Table Name |" in spooled
    assert "SHOW TYPES" not in spooled


def test_a_server_that_is_away_and_comes_is_told_in_one_line(server: str, tmp_path: Path) -> None:
    with KsqlTerminal(["http://127.0.0.1:1"], tmp_path) as terminal:
        assert "cannot be reached: connection refused" in terminal.expect("ksql> ")
        assert "Traceback" not in terminal.run("SHOW STREAMS;")
        assert f"Server now: {server}" in terminal.run(f"server {server}")
        assert "READINGS" in terminal.run("SHOW STREAMS;")


def test_a_server_that_dies_ends_a_query_in_one_line(tmp_path: Path) -> None:
    with (
        Broker() as broker,
        ksql_server(broker.bootstrap_servers, tmp_path) as (url, process),
        KsqlTerminal([url], tmp_path) as terminal,
    ):
        terminal.expect("ksql> ")
        terminal.run("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);")
        terminal.run("SELECT * FROM s EMIT CHANGES;", until="Press CTRL-C to interrupt")
        assert process.process is not None
        process.process.kill()
        shown = terminal.expect("ksql> ")

        assert f"The server at {url} closed the connection\n" in shown
        assert "Traceback" not in shown


def test_a_script_file_with_variables_prints_tables(server: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "-- what is cold\n"
        "SET 'auto.offset.reset' = 'earliest';\n"
        "DEFINE limit = '20';\n"
        "SELECT place, degrees\n  FROM ${source} WHERE degrees < ${limit} EMIT CHANGES LIMIT 1;\n"
        "output json\n"
        "SHOW VARIABLES"
    )

    ran = ksql(server, "-f", str(script), "-d", "source=readings")

    assert ran.returncode == 0, ran.stderr
    tables, _, variables = ran.stdout.partition("Output format set to JSON\n")
    assert tables.splitlines()[1:] == [
        "+------------------+------------------+",
        "|PLACE             |DEGREES           |",
        "+------------------+------------------+",
        "|Budweis           |19.0              |",
        "Limit Reached",
        "Query terminated",
    ]
    assert json.loads(variables)[0]["variables"] == [
        {"name": "LIMIT", "value": "20"},
        {"name": "SOURCE", "value": "readings"},
    ]


def test_json_output_has_the_objects_as_the_server_sent_them(server: str) -> None:
    statement = "SET 'auto.offset.reset'='earliest'; SELECT degrees FROM readings EMIT CHANGES;"

    ran = ksql(server, "--output", "json", "--query-row-limit", "1", "-e", statement)

    header, row = ran.stdout.splitlines()[1:]
    assert json.loads(header)["header"]["schema"] == "`DEGREES` DECIMAL(4, 1)"
    assert row == '{"row":{"columns":[21.5]}}'


def test_a_query_ends_after_its_time(server: str) -> None:
    ran = ksql(server, "--query-timeout", "300", "-e", "SELECT * FROM readings EMIT CHANGES")

    assert ran.returncode == 0
    assert ran.stdout.endswith("Query terminated\n")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT FROM x;", "Syntax error at or near 'FROM'"),
        ("SELECT * FROM nothing EMIT CHANGES;", "`NOTHING` does not exist"),
        ("DESCRIBE nothing;", "NOTHING"),
        ("SET 'no.such.property' = '1';", "no.such.property"),
        ("UNSET 'auto.offset.reset';", "Cannot unset local property 'auto.offset.reset'"),
        ("DESCRIBE ${unknown};", "unknown"),
        ("run script '/no/such/file'", "Cannot read script /no/such/file"),
        ("PRINT 'nothing';", "Could not find topic 'nothing'"),
    ],
)
def test_a_failure_is_told_and_ends_with_1(server: str, statement: str, message: str) -> None:
    ran = ksql(server, "-e", statement)

    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_run_script_sends_a_file_as_one_request(server: str, tmp_path: Path) -> None:
    script = tmp_path / "types.sql"
    script.write_text("DEFINE t = 'place';\nCREATE TYPE ${t} AS STRUCT<town STRING>;\nSHOW TYPES;\n")

    ran = ksql(server, given=f"run script '{script}';\nDROP TYPE place")

    assert ran.returncode == 0, ran.stderr
    assert " PLACE     | STRUCT<TOWN VARCHAR(STRING)> \n" in ran.stdout
    assert "Dropped type 'PLACE'" in ran.stdout


def test_print_shows_records_and_ends_at_its_limit(server: str) -> None:
    ran = ksql(server, "-e", "PRINT readings FROM BEGINNING LIMIT 1;")

    assert ran.stdout.count("rowtime: ") == 1
    assert ran.stdout.endswith("Topic printing ceased\n")


def test_a_reader_that_leaves_ends_a_query_without_a_word(server: str) -> None:
    program = [sys.executable, "-m", "moldau.cli.ksql.command", server, "--output", "json", "-e"]
    statement = "SET 'auto.offset.reset'='earliest'; SELECT * FROM readings EMIT CHANGES LIMIT 2;"
    with subprocess.Popen([*program, statement], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == b""
