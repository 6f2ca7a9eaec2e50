"""Running connectors in tests, without Spark, a broker or a worker. Start at `SourceRunner` and `SinkRunner`."""

from __future__ import annotations

from moldau.connect.testing.runners import SinkRunner, SourceRunner

__all__ = ["SinkRunner", "SourceRunner"]
