"""The example connectors, found on a plug-in path, and the discovery of plug-ins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.connect.api import ConfigError, Plugins, SinkRecord
from moldau.connect.api.plugins import PluginNotFoundError
from moldau.connect.testing import SinkRunner, SourceRunner

EXAMPLES = Path(__file__).parents[3] / "examples" / "connect"


def test_the_example_source_and_sink(tmp_path: Path) -> None:
    plugins = Plugins([str(EXAMPLES)])
    (tmp_path / "a").write_text("12345")
    source = plugins.find("FolderSizesSource", "source").load()
    with SourceRunner(source, {"folder": str(tmp_path), "topic": "sizes"}) as runner:
        (record,) = runner.poll_until(1)
        assert record.value == {"file": "a", "bytes": 5}
        runner.commit()
        assert runner.poll() == []
        (tmp_path / "a").write_text("123456")
        assert runner.poll_until(1)[0].value["bytes"] == 6
    with pytest.raises(ConfigError, match='"folder"'):
        SourceRunner(source, {"topic": "sizes"}).start()
    target = tmp_path / "totals.json"
    with SinkRunner(plugins.find("folder_sizes.TotalsSink", "sink").load(), {"file": str(target)}) as sink:
        sink.put([SinkRecord(topic="sizes", partition=0, offset=0, key="a", value={"file": "a", "bytes": 6})])
        sink.commit()
    assert json.loads(target.read_text()) == {"a": 6}


def test_every_built_in_plug_in_can_be_loaded_and_described() -> None:
    plugins = Plugins()
    for plugin in plugins.all():
        cls = plugin.load()
        assert plugin.as_json()["type"] == plugin.kind
        for described in cls.config_def.as_json():
            assert described["documentation"]
        assert plugins.find(plugin.name, plugin.kind) is plugin


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("FileStreamSource", "org.apache.kafka.connect.file.FileStreamSourceConnector"),
        ("FileStreamSink", "org.apache.kafka.connect.file.FileStreamSinkConnector"),
        (
            "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "org.apache.kafka.connect.file.FileStreamSinkConnector",
        ),
        ("JdbcSourceConnector", "io.confluent.connect.jdbc.JdbcSourceConnector"),
        ("io.confluent.connect.hdfs3.Hdfs3SinkConnector", "io.confluent.connect.hdfs.HdfsSinkConnector"),
        ("moldau.connect.connectors.jdbc.sink:JdbcSinkConnector", "io.confluent.connect.jdbc.JdbcSinkConnector"),
    ],
)
def test_names_of_connectors(name: str, found: str) -> None:
    assert Plugins().find(name, "source", "sink").name == found


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(PluginNotFoundError, match="FileStreamSourceConnector") as caught:
        Plugins().find("com.example.NoSuch", "source", "sink")
    assert "plugin.path" in str(caught.value)


def test_a_broken_file_on_the_plug_in_path_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken_plugin_file.py").write_text("import nothing_of_that_name")
    assert len(Plugins([str(tmp_path), str(tmp_path / "missing")]).all()) == len(Plugins().all())
    assert "broken_plugin_file" in caplog.text
