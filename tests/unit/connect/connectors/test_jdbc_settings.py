"""Settings of the JDBC connectors: every bad one is named at once."""

from __future__ import annotations

import pytest

from moldau.connect.connectors.jdbc.sink import JdbcSinkConnector
from moldau.connect.connectors.jdbc.source import JdbcSourceConnector

SOURCE = {"mode": "bulk", "topic.prefix": "t-"}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("jdbc:oracle:thin:@host", "oracle are not known"),
        ("jdbc:postgresql://host:port/db", "port is not a number"),
        ("somewhere", "neither a JDBC URL"),
        ("", "must not be empty"),
    ],
)
def test_a_url_that_names_no_database_is_found_by_validation(url: str, words: str) -> None:
    values = {value.name: value.errors for value in JdbcSourceConnector().validate({**SOURCE, "connection.url": url})}
    assert words in "".join(values["connection.url"])
    sink = {value.name: value.errors for value in JdbcSinkConnector().validate({"connection.url": url})}
    assert words in "".join(sink["connection.url"])


def test_all_that_is_wrong_is_named_at_once() -> None:
    wrong = {**SOURCE, "connection.url": "jdbc:x:y", "mode": "sideways", "batch.max.rows": "many"}
    found = {value.name for value in JdbcSourceConnector().validate(wrong) if value.errors}
    assert found == {"connection.url", "mode", "batch.max.rows"}
    (problem,) = (value.errors for value in JdbcSourceConnector().validate(wrong) if value.name == "mode")
    assert "must be one of bulk, incrementing, timestamp, timestamp+incrementing" in "".join(problem)


def test_a_reference_is_not_taken_for_a_url() -> None:
    given = {**SOURCE, "connection.url": "${file:/nowhere:url}"}
    assert not any(value.errors for value in JdbcSourceConnector().validate(given))
