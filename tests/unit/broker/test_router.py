from __future__ import annotations

import importlib

import pytest

from moldau.broker.router import HANDLERS_PACKAGE, ROUTES, announced
from moldau.protocol.api import APIS, ApiKey


def test_produce_is_announced_from_0_so_that_old_librdkafka_compresses() -> None:
    assert next(announced()) == (ApiKey.PRODUCE, 0, 13)


@pytest.mark.parametrize("api_key", sorted(ROUTES))
def test_whatever_is_announced_has_a_handler_and_schemas(api_key: int) -> None:
    route = ROUTES[api_key]
    module = importlib.import_module(f"{HANDLERS_PACKAGE}.{route.module}")
    assert api_key in (ApiKey.PRODUCE, ApiKey.FETCH) or callable(module.handle)
    assert route.module.startswith(f"api_{api_key:02d}_")
    assert APIS[api_key].first <= route.first <= route.last <= APIS[api_key].last
