"""Functions of users: loaded with the server, shown by its statements, called by every kind of query."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.integration.ksql.talk import EARLIEST, filled_stream, name, query, refused, run

from moldau.core.errors import StartupError
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.user_functions import user_functions

MODULE = '''
from moldau.ksql.functions import udaf, udf, udtf

@udf(author="anna", version="1.2")
def shout(text: str, times: int = 1) -> str:
    """Upper case, with exclamation marks."""
    return text.upper() + "!" * times

@udf
def fragile(text: str) -> str:
    """Fails for one text."""
    if text == "a":
        raise ValueError("no a here")
    return text

@udtf
def twice(text: str) -> list[str]:
    """Two rows of one."""
    return [text, text]

@udaf
class Joined:
    """All texts, one after the other."""

    def initial(self) -> str:
        return ""

    def add(self, state: str, text: str) -> str:
        return state + text

    def merge(self, one: str, other: str) -> str:
        return one + other
'''


@pytest.fixture(scope="module")
def server_settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    extensions = tmp_path_factory.mktemp("ext")
    (extensions / "own.py").write_text(MODULE)
    return {"ksql_extension_dir": str(extensions)}


def rows(elements: list[dict[str, object]]) -> list[list[object]]:
    return [one["row"]["columns"] for one in elements if "row" in one]  # type: ignore[index]


def test_they_are_shown_like_the_built_in_ones(ksql: httpx.Client) -> None:
    [shown] = run(ksql, "SHOW FUNCTIONS;")
    found = {one["name"]: one["type"] for one in shown["functions"]}
    assert (found["SHOUT"], found["TWICE"], found["JOINED"]) == ("SCALAR", "TABLE", "AGGREGATE")
    [described] = run(ksql, "DESCRIBE FUNCTION shout;")
    assert (described["author"], described["version"]) == ("anna", "1.2")
    assert described["description"] == "Upper case, with exclamation marks."
    assert described["path"].endswith("own.py")
    assert [len(one["arguments"]) for one in described["functions"]] == [2, 1]


def test_push_and_pull_queries_call_them(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    assert rows(query(ksql, f"SELECT SHOUT(V, 2) AS X FROM {source} EMIT CHANGES LIMIT 2;")) == [["A!!"], ["B!!"]]
    assert rows(query(ksql, f"SELECT TWICE(V) AS X FROM {source} EMIT CHANGES LIMIT 3;")) == [["a"], ["a"], ["b"]]
    assert rows(query(ksql, f"SELECT V FROM {source} WHERE SHOUT(V) = 'B!';")) == [["b"]]


def test_persistent_queries_and_inserts_call_them(ksql: httpx.Client) -> None:
    source, made = filled_stream(ksql), name("J")
    run(ksql, f"INSERT INTO {source} VALUES (1, SHOUT('x'));")
    run(ksql, f"CREATE TABLE {made} AS SELECT ID, JOINED(V) AS ALL_OF_IT FROM {source} GROUP BY ID;", **PROPERTIES)
    changes = rows(query(ksql, f"SELECT ID, ALL_OF_IT FROM {made} EMIT CHANGES LIMIT 3;"))
    assert changes == [[1, "a"], [2, "b"], [1, "aX!"]]


def test_a_function_that_fails_costs_its_column_only(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    found = rows(query(ksql, f"SELECT ID, FRAGILE(V) AS X FROM {source} EMIT CHANGES LIMIT 2;"))
    assert found == [[1, None], [2, "b"]]


def test_arguments_are_checked(ksql: httpx.Client) -> None:
    source = filled_stream(ksql)
    status, error = refused(ksql, f"CREATE STREAM {name('X')} AS SELECT SHOUT(ID, V) AS X FROM {source};")
    assert status == 400
    assert "SHOUT" in error["message"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(:", "SyntaxError"),
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("from moldau.ksql.functions import udf\n@udf\ndef f(a) -> str: ...", "the parameter a has no annotation"),
        ("from moldau.ksql.functions import udf\n@udf\ndef abs(a: str) -> str: ...", "ABS is built in"),
    ],
)
def test_a_module_that_does_not_load_is_told_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(StartupError) as told:
        user_functions(KsqlSettings.of({"ksql.extension.dir": str(tmp_path)}))
    assert str(told.value).startswith(f"ksql.extension.dir={tmp_path}: the functions in bad.py cannot be loaded: ")
    assert reason in str(told.value)
    assert "\n" not in str(told.value)


PROPERTIES = {"streamsProperties": EARLIEST}
