"""Keys with a schema, as people write them in a URL and as the store has them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.unit.pipeline.runtime.stores.test_stores import rows

from moldau.client import prepared_serde
from moldau.pipeline.ir.nodes import Materialization
from moldau.pipeline.runtime.metrics import PipelineMetrics
from moldau.pipeline.runtime.states import State
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.runtime.stores.query_app import Application, build_app
from moldau.pipeline.runtime.stores.queryable import QueryableStore, Shape
from moldau.pipeline.runtime.stores.views import StoreViews
from moldau.serdes.schema_serde import SchemaSerde
from moldau.streams import AvroSerde, JsonSchemaSerde, ProtobufSerde

PERSON = {"type": "record", "name": "Person", "fields": [{"name": "id", "type": "long"}]}
PROTO = 'syntax = "proto3"; message Person { int64 id = 1; }'
CHANGELOG = "app-people-changelog"


@pytest.mark.parametrize(
    ("name", "serde", "key", "written"),
    [
        ("text", AvroSerde('"string"'), "ann", "ann"),
        ("quoted", AvroSerde('"string"'), "ann", '"ann"'),
        ("digits", AvroSerde('"string"'), "007", "007"),
        ("number", AvroSerde('"long"'), 7, "7"),
        ("guessed", AvroSerde(), "7", "7"),
        ("record", AvroSerde(PERSON), {"id": 7}, '{"id": 7}'),
        ("json", JsonSchemaSerde({"type": "object"}), {"id": 7}, '{"id":7}'),
        ("protobuf", ProtobufSerde(PROTO), {"id": 7}, '{"id":7}'),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_key_is_found_as_json_or_as_it_is(
    name: str, serde: SchemaSerde, key: Any, written: str, tmp_path: Path
) -> None:
    ours = prepared_serde(serde, {"schema.registry.url": f"mock://query-keys-{name}"}, "key")
    found = asked(ours, key, f"/stores/people/{quote(written, safe='')}", tmp_path)
    assert (found.status_code, found.json()) == (200, {"key": key, "value": {"id": 1}, "timestamp": 5})


def test_a_key_that_fits_no_schema_is_refused(tmp_path: Path) -> None:
    serde = prepared_serde(AvroSerde(PERSON), {"schema.registry.url": "mock://query-keys-refused"}, "key")
    found = asked(serde, {"id": 7}, "/stores/people/ann", tmp_path)
    assert found.status_code == 400
    assert f"'ann' does not fit the schema of subject {CHANGELOG}-key" in found.json()["error"]


def asked(serde: SchemaSerde, key: Any, path: str, folder: Path) -> httpx.Response:
    """What a store with one entry answers."""
    values = prepared_serde(AvroSerde(PERSON), {"schema.registry.url": serde.options.registry_url}, "value")
    table = Materialization(store="people", key_serde=serde, value_serde=values, is_queryable=True)
    stores = {"people": QueryableStore("people", Shape.KEY_VALUE, table)}
    file = folder / "stores.sqlite"
    database, views = StoreDatabase(file, stores), StoreViews(file, stores, "app")
    database.open()
    try:
        entry = serde.serialize(CHANGELOG, key), values.serialize(CHANGELOG, {"id": 1})
        database.apply("checkpoint", 0, rows(("people", *entry, 5, None, 0)))
        return asyncio.run(_get(views, path))
    finally:
        views.close()
        database.close()


async def _get(views: StoreViews, path: str) -> httpx.Response:
    application = Application("app", views, lambda: State.RUNNING, lambda: PipelineMetrics().snapshot({}))
    app: Any = build_app(application)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://stores") as client:
        return await client.get(path)
