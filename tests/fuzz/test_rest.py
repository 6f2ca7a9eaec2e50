"""A short round of `scripts/rest-fuzz`: requests made up from the proxy's description never end in a 500."""

from __future__ import annotations

from tests.fuzz.rest_fuzz import BROKER, PROXY, fuzz

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy


def test_no_request_is_a_server_error() -> None:
    with (
        Broker(BROKER) as broker,
        SchemaRegistry(broker.bootstrap_servers) as registry,
        RestProxy(broker.bootstrap_servers, {**PROXY, "schema.registry.url": registry.url}) as rest,
    ):
        assert fuzz(rest.url, examples=2, first_seed=1) > 50
