from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.integration.ksql.talk import filled_stream
from tests.ksql_cases.rest_runner import RestServer, RestWorld

from moldau.testing import Broker

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def world(moldau_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorld]:
    """Writes records of any time."""
    world = RestWorld(moldau_broker.bootstrap_servers, tmp_path_factory.mktemp("world"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def server_settings() -> dict[str, str]:
    """Further settings of the module's server, by names with `_` for `.`."""
    return {}


@pytest.fixture(scope="module")
def server(
    moldau_broker: Broker,
    world: RestWorld,
    server_settings: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RestServer]:
    """A server of the module's own; its persistent queries run in memory."""
    folder = tmp_path_factory.mktemp("ksql")
    server = RestServer(moldau_broker.bootstrap_servers, folder, world.send, **server_settings)
    with httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:
        filled_stream(client)  # the server's own clients are opened when they are needed
    assert server.drop_all()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test begins without sources and queries."""
    yield
    if "server" in request.fixturenames:
        assert request.getfixturevalue("server").drop_all()


@pytest.fixture(scope="module")
def ksql(server: RestServer) -> Iterator[httpx.Client]:
    """A client of that server."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:
        yield client
