from __future__ import annotations

import schemathesis
from starlette.testclient import TestClient
from tests.fuzz.registry_fuzz import fuzz

from moldau.registry.app import build_app
from moldau.registry.leadership import SoleLeadership
from moldau.registry.registry import Registry
from moldau.registry.settings import RegistrySettings
from moldau.registry.store import MemoryStore

EXAMPLES = 5


def test_no_request_made_up_from_the_description_is_a_server_error() -> None:
    registry = Registry(RegistrySettings.of({}), MemoryStore(), SoleLeadership())
    app = build_app(registry)
    try:
        schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        assert fuzz(schema, TestClient(app), examples=EXAMPLES, first_seed=1) > 300
    finally:
        registry.close()
