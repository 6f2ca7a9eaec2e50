"""curl sessions: every call of versions 1, 2 and 3 and the scenarios of the contract, with what answers them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.integration.rest.talk import Talk
from tests.integration.rest.transcripts import FOLDER, Session, play

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy

TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))
REFUSED_HERE = ("/acls", "/acls:batch", "/reassignment")
"""A cluster without an authorizer has no ACLs, and one broker no reassignments; test_v3 has more of both."""
ELSEWHERE = ("records:tail", "/openapi.json")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A proxy of its own: the transcripts name their topics, and offsets begin at 0."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    with ExitStack() as stack:
        broker = stack.enter_context(Broker({"group.initial.rebalance.delay.ms": "0", "num.partitions": "1"}))
        registry = stack.enter_context(SchemaRegistry(broker.bootstrap_servers))
        settings = {"schema.registry.url": registry.url, "consumer.request.timeout.ms": "2000"}
        rest = stack.enter_context(RestProxy(broker.bootstrap_servers, settings))
        with Talk(rest.url) as talk:
            talk.produce(talk.new_topic(), 1)  # the proxy's own clients are made when they are needed
        yield rest.url


@pytest.mark.parametrize("name", [path.stem for path in TRANSCRIPTS])
def test_a_session_goes_as_written(url: str, name: str) -> None:
    session = Session(url)
    for path in ("/v3/clusters", "/v3/clusters/CLUSTER/brokers"):
        session.run(f"curl localhost:8082{path}")
    play(FOLDER / f"{name}.txt", session)


def test_every_call_of_the_description_is_in_a_session(url: str) -> None:
    """Runs last: the proxy itself counts what it has answered."""
    described = httpx.get(f"{url}/openapi.json").json()["paths"]
    series = r'moldau_rest_http_requests_total\{method="(\w+)",path="([^"]+)",status="2\d\d"\}'
    answered = set(re.findall(series, httpx.get(f"{url}/metrics").text))
    missing = {
        (method.upper(), path)
        for path, methods in described.items()
        for method in methods
        if (method.upper(), path) not in answered
        and not path.endswith((*REFUSED_HERE, *ELSEWHERE, "/healthz", "/readyz", "/metrics"))
    }
    assert not missing
