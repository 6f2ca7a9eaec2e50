from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from moldau.client.schema_registry import RegistryClient, RegistryRefusalError
from moldau.registry.mock import mock_registry

NUMBER = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})


def client(name: str) -> RegistryClient:
    return RegistryClient({"schema.registry.url": f"mock://{name}"})


def test_a_name_is_one_registry_for_the_whole_process() -> None:
    registered = client("shared").register("s-value", "AVRO", NUMBER)
    assert (
        client("shared").schema(registered.id).parsed.canonical == client("shared").latest("s-value").parsed.canonical
    )
    with pytest.raises(RegistryRefusalError) as refused:
        client("another").latest("s-value")
    assert (refused.value.status, refused.value.registry_code) == (404, 40401)


def test_it_checks_compatibility_by_the_level_that_was_set() -> None:
    asking = client("levels")
    asking.register("s-value", "AVRO", NUMBER)
    with pytest.raises(RegistryRefusalError) as refused:
        asking.register("s-value", "AVRO", TEXT)
    assert (refused.value.status, refused.value.registry_code) == (409, 40901)
    mock_registry("mock://levels").ask("PUT", "/config/s-value", {"compatibility": "NONE"})
    assert asking.register("s-value", "AVRO", TEXT).id == 2


def test_it_may_be_asked_inside_an_event_loop_and_by_many_threads() -> None:
    async def inside() -> int:
        return client("crowd").register("s", "AVRO", NUMBER).id

    assert asyncio.run(inside()) == 1

    def register(number: int) -> int:
        schema = json.dumps({"type": "enum", "name": f"E{number}", "symbols": ["A"]})
        return client("crowd").register(f"s{number}", "AVRO", schema).id

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(register, range(40))) == list(range(2, 42))


def test_a_forked_process_has_a_copy_that_works() -> None:
    client("forked").register("s", "AVRO", NUMBER)
    child = os.fork()
    if child == 0:
        is_there = client("forked").latest("s").id == 1
        os._exit(0 if is_there and client("forked").register("t", "AVRO", TEXT).id == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_clients_of_real_registries_do_not_load_it() -> None:
    program = (
        "import sys; from moldau.client.schema_registry import RegistryClient; RegistryClient({}); "
        "print([name for name in sys.modules if name.startswith(('moldau.registry', 'moldau.http', 'starlette'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
