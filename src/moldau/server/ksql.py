"""A ksql server wired together: its settings, and the command that starts its engine process."""

from __future__ import annotations

import sys

from moldau.ksql.instance import KsqlInstance
from moldau.ksql.settings import KsqlSettings
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.pipeline.runtime.hosting.engine_link import EngineLink

__all__ = ["ksql_instance"]


def ksql_instance(settings: KsqlSettings) -> KsqlInstance:
    """A server whose queries run in an engine process of its own."""
    folder = settings.server_folder / "engine"
    command = (sys.executable, "-m", "moldau.server.engine", str(folder))
    return KsqlInstance(settings, EngineLink(EngineFiles(folder), command, prefix=settings.query_prefix))
