"""The connectors of examples/connect on a worker, by the names that their file's description gives."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from tests.integration.connect.conftest import cluster_settings
from tests.integration.server_process import wait_until

from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker

EXAMPLES = Path(__file__).parents[3] / "examples" / "connect"


def test_source_and_sink_of_the_example_run_from_a_plug_in_path(moldau_broker: Broker, tmp_path: Path) -> None:
    folder, totals = tmp_path / "watched", tmp_path / "totals.json"
    folder.mkdir()
    (folder / "a").write_text("12345")
    json_converters = {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}
    settings = {
        **cluster_settings(),
        **json_converters,
        "plugin.path": str(EXAMPLES),
        "offset.flush.interval.ms": "200",
    }
    source = {"connector.class": "folder_sizes.FolderSizesSource", "folder": str(folder), "topic": "example-sizes"}
    sink = {"connector.class": "folder_sizes.TotalsSink", "file": str(totals), "topics": "example-sizes"}

    def sizes() -> dict[str, int]:
        found: dict[str, int] = json.loads(totals.read_text() or "{}") if totals.exists() else {}
        return found

    with (
        ConnectWorker(moldau_broker.bootstrap_servers, settings) as worker,
        httpx.Client(base_url=worker.url, timeout=60) as connect,
    ):
        assert connect.put("/connectors/sizes/config", json=source).status_code == 201
        assert connect.put("/connectors/totals/config", json=sink).status_code == 201
        wait_until(lambda: sizes() == {"a": 5}, what="the first size")
        (folder / "a").write_text("123456")
        (folder / "b").write_text("1")
        wait_until(lambda: sizes() == {"a": 6, "b": 1}, what="a change and a new file")
        refused = connect.put("/connectors/wrong/config", json={"connector.class": "folder_sizes.FolderSizesSource"})
        assert refused.status_code == 400
        assert '"folder"' in refused.json()["message"]
        assert '"topic"' in refused.json()["message"]
