"""A source and a sink of one's own: the sizes of a folder's files to a topic, and totals by key from topics to a file.

Put this file into a folder of the worker's `plugin.path`; the names for `connector.class` are then
`folder_sizes.FolderSizesSource` and `folder_sizes.TotalsSink`. docs/connect-connectors.md explains each part.
"""

import json
from pathlib import Path

from moldau.connect.api import (
    INT64,
    STRING,
    ConfigDef,
    ConfigType,
    Setting,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    struct,
)

ROW = struct({"file": STRING, "bytes": INT64}, name="file_size")


class FolderSizesSource(SourceConnector):
    config_def = ConfigDef(
        Setting("folder", ConfigType.STRING, "The folder to watch."),
        Setting("topic", ConfigType.STRING, "The topic to write to."),
    )

    def task_class(self):
        return FolderSizesTask


class FolderSizesTask(SourceTask):
    def start(self, settings):
        self.folder, self.topic = self.context.limits.check_path(settings["folder"]), settings["topic"]
        self.sizes = {}

    def poll(self):
        self.context.wait(0.5)
        return [self.record(path.name, path.stat().st_size) for path in self.folder.iterdir() if self.is_new(path)]

    def is_new(self, path):
        known = self.sizes.get(path.name) or self.context.offset_reader.offset({"file": path.name})
        self.sizes[path.name] = {"bytes": path.stat().st_size}
        return self.sizes[path.name] != known

    def record(self, name, size):
        return SourceRecord(
            topic=self.topic,
            key=name,
            key_schema=STRING,
            value={"file": name, "bytes": size},
            value_schema=ROW,
            source_partition={"file": name},
            source_offset=self.sizes[name],
        )


class TotalsSink(SinkConnector):
    config_def = ConfigDef(Setting("file", ConfigType.STRING, "Where the totals go."))

    def task_class(self):
        return TotalsTask


class TotalsTask(SinkTask):
    def start(self, settings):
        self.path = self.context.limits.check_path(settings["file"])
        self.sizes = json.loads(self.path.read_text()) if self.path.exists() else {}

    def put(self, records):
        self.sizes.update({record.key: record.value["bytes"] for record in records})

    def flush(self, offsets):
        Path(self.path).write_text(json.dumps(self.sizes))
