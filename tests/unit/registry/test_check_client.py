"""Comparisons with many versions are done by another process, and reads go on meanwhile."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.registry.sites import PERSON, PERSON_WITH_NAME, Site
from tests.unit.schemas.shared_types import SHARED

from moldau.registry.errors import TooBusyError
from moldau.registry.leadership import SoleLeadership
from moldau.registry.parsing.check_client import CheckClient
from moldau.registry.parsing.check_process import serve
from moldau.registry.parsing.parser import MAX_COMPARED_HERE
from moldau.registry.parsing.sources import ParsedSources, Source
from moldau.registry.registry import MAX_WAITING, Registry
from moldau.registry.settings import RegistrySettings
from moldau.registry.store import MemoryStore
from moldau.schemas.compatibility import CompatibilityLevel, CompatibilityPolicy, check
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.schema import parse

TRANSITIVE, STRICT = CompatibilityLevel.FULL_TRANSITIVE, CompatibilityPolicy.STRICT


@pytest.fixture
def check_client() -> Iterator[CheckClient]:
    check_client = CheckClient()
    yield check_client
    check_client.close()


@pytest.mark.parametrize("schema_type", SHARED)
def test_another_process_finds_what_this_one_does(check_client: CheckClient, schema_type: str) -> None:
    old, new = SHARED[schema_type]
    here = check(TRANSITIVE, parse(schema_type, new), [parse(schema_type, new), parse(schema_type, old)])
    sources = [Source(schema_type, text, is_new=False) for text in (new, old)]
    assert check_client.check(TRANSITIVE, STRICT, sources[0], sources) == here
    assert {finding.against for finding in here} == {1}
    assert check_client.check(TRANSITIVE, STRICT, sources[0], [sources[0]] * 3) == []


def test_references_are_sent_along_and_refusals_come_back(check_client: CheckClient) -> None:
    inner, outer = '{"type":"enum","name":"E","symbols":["A"]}', '{"type":"array","items":"E"}'
    source = Source("AVRO", outer, (("E", inner),))
    assert check_client.check(TRANSITIVE, STRICT, source, [source]) == []
    with pytest.raises(InvalidSchemaError, match="unknown type 'E'"):
        check_client.check(TRANSITIVE, STRICT, source, [Source("AVRO", outer)])
    assert check_client.check(TRANSITIVE, STRICT, source, [source]) == [], "and the process lives on"


def test_a_process_that_died_is_a_refusal_once_and_then_replaced(check_client: CheckClient) -> None:
    source = Source("AVRO", '"string"')
    assert check_client.check(TRANSITIVE, STRICT, source, [source]) == []

    def killing() -> Iterator[Source]:
        yield source
        assert check_client._process is not None
        check_client._process.kill()
        check_client._process.stdout.read()  # type: ignore[union-attr]
        check_client._process.poll = lambda: None  # type: ignore[method-assign]
        yield source

    with pytest.raises(InvalidSchemaError, match="could not be compared"):
        check_client.check(TRANSITIVE, STRICT, source, killing())
    assert check_client.check(TRANSITIVE, STRICT, source, [source]) == []


def test_closing_ends_a_comparison_under_way(check_client: CheckClient) -> None:
    source, asked = Source("AVRO", '"string"'), threading.Event()
    refusals: list[Exception] = []

    def endless() -> Iterator[Source]:
        while True:
            yield source
            asked.set()

    def compare() -> None:
        try:
            check_client.check(TRANSITIVE, STRICT, source, endless())
        except InvalidSchemaError as error:
            refusals.append(error)

    thread = threading.Thread(target=compare)
    thread.start()
    assert asked.wait(60)
    check_client.close()
    thread.join(60)
    assert len(refusals) == 1


def test_the_process_answers_every_line() -> None:
    def asked(*questions: Any) -> list[Any]:
        output = io.StringIO()
        serve([json.dumps(question) for question in questions], output)
        return [json.loads(line) for line in output.getvalue().splitlines()]

    string, broken = ["AVRO", '"string"', [], False], ["AVRO", "{", [], False]
    answers = asked({"begin": ["FULL", "STRICT", string]}, {"against": string}, {"against": broken})
    assert answers[:2] == [{}, {"found": []}]
    assert "not JSON" in answers[2]["refused"]


def test_many_versions_are_compared_elsewhere_and_few_here(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    check_far = CheckClient.check

    def counted(check_client: CheckClient, level: Any, policy: Any, new: Source, previous: Any) -> Any:
        versions = list(previous)
        compared.append(len(versions))
        return check_far(check_client, level, policy, new, versions)

    monkeypatch.setattr(CheckClient, "check", counted)
    site.put("/config", {"compatibility": "FULL_TRANSITIVE"})
    fields = [{"name": f"f{number}", "type": "int", "default": 0} for number in range(MAX_COMPARED_HERE + 2)]
    for number in range(len(fields)):
        site.register("s", {**PERSON, "fields": [*PERSON["fields"], *fields[:number]]})
    assert compared == [MAX_COMPARED_HERE + 1]
    assert site.post("/subjects/s/versions", PERSON_WITH_NAME) == (409, 40901)
    status, answer = site.post("/compatibility/subjects/s/versions?verbose=true", PERSON_WITH_NAME)
    assert (status, answer["is_compatible"]) == (200, False)
    assert f"{{oldSchemaVersion: {len(fields)}}}" in answer["messages"]


def test_where_no_process_can_be_started_the_comparison_is_done_here(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("subprocess.Popen", fail)
    site.put("/config", {"compatibility": "FULL_TRANSITIVE"})
    fields = [{"name": f"f{number}", "type": "int", "default": 0} for number in range(8)]
    for number in range(len(fields)):
        site.register("s", {**PERSON, "fields": [*PERSON["fields"], *fields[:number]]})
    assert site.post("/subjects/s/versions", PERSON_WITH_NAME) == (409, 40901)


def test_more_than_so_many_questions_do_not_wait() -> None:
    async def run() -> None:
        registry = Registry(RegistrySettings.of({}), MemoryStore(), SoleLeadership())
        let_go = threading.Event()
        waiting = [asyncio.ensure_future(registry.examine(lambda _: let_go.wait(60))) for _ in range(MAX_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(TooBusyError, match="try again"):
            await registry.examine(lambda _: True)
        let_go.set()
        await asyncio.gather(*waiting)
        assert await registry.examine(lambda _: True)
        registry.close()

    asyncio.run(run())


def test_parsed_schemas_are_kept_by_their_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.registry.parsing.sources.MAX_CHARACTERS", 1_000)
    sources = ParsedSources(capacity=100)
    texts = [
        Source("AVRO", f'{{"type":"fixed","name":"F{number}","size":1,"doc":"{"x" * 300}"}}') for number in range(9)
    ]
    for source in texts:
        assert sources.parse(source) is sources.parse(source)
    assert [source in sources for source in texts] == [False] * 7 + [True] * 2


def test_formats_are_made_where_nobody_else_waits(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    parse_version = site.registry.parser.parse_version

    def observed(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return parse_version(*arguments)

    site.register("s", PERSON)
    monkeypatch.setattr(site.registry.parser, "parse_version", observed)
    for path in ("/schemas/ids/1", "/schemas/ids/1/schema", "/subjects/s/versions/1", "/subjects/s/versions/1/schema"):
        assert site.get(f"{path}?format=resolved")[0] == 200
    assert len(threads) == 4
    assert all(name.startswith("registry-decisions") for name in threads)
