"""The plug-in API: what connectors, converters and transforms are written with. Start at `connector`.

```python
from moldau.connect.api import ConfigDef, Setting, SourceConnector, SourceRecord, SourceTask
```
"""

from __future__ import annotations

from moldau.connect.api.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Setting,
    Width,
    at_least,
    between,
    each_of,
    not_empty,
    one_of,
)
from moldau.connect.api.connector import (
    Connector,
    ExactlyOnceSupport,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
)
from moldau.connect.api.contexts import (
    ConnectorContext,
    ErrantRecordReporter,
    OffsetReader,
    SinkTaskContext,
    SourceTaskContext,
    TransactionContext,
)
from moldau.connect.api.errors import ConfigError, ConnectError, DataError, NotAllowedError, RetriableError
from moldau.connect.api.limits import Limits
from moldau.connect.api.plugin_kinds import Converter, HeaderConverter, Predicate, SchemaAndValue, Transformation
from moldau.connect.api.plugins import Plugin, PluginNotFoundError, Plugins
from moldau.connect.api.records import ConnectRecord, Header, SinkRecord, SourceRecord
from moldau.connect.api.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataField,
    DataSchema,
    Kind,
    array,
    decimal,
    map_of,
    optional,
    struct,
    with_default,
)
from moldau.core.ids import TopicPartition

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DATE",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "ConfigDef",
    "ConfigError",
    "ConfigType",
    "ConfigValue",
    "ConnectError",
    "ConnectRecord",
    "Connector",
    "ConnectorContext",
    "Converter",
    "DataError",
    "DataField",
    "DataSchema",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "Header",
    "HeaderConverter",
    "Importance",
    "Kind",
    "Limits",
    "NotAllowedError",
    "OffsetReader",
    "Plugin",
    "PluginNotFoundError",
    "Plugins",
    "Predicate",
    "RetriableError",
    "SchemaAndValue",
    "Setting",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "TopicPartition",
    "TransactionContext",
    "Transformation",
    "Width",
    "array",
    "at_least",
    "between",
    "decimal",
    "each_of",
    "map_of",
    "not_empty",
    "one_of",
    "optional",
    "struct",
    "with_default",
]
