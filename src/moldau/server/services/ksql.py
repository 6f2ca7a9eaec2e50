"""A ksql server wired together: its settings, and its engine process."""

from __future__ import annotations

from moldau.ksql.instance import KsqlInstance
from moldau.ksql.settings import KsqlSettings
from moldau.server.services.engine_links import engine_link

__all__ = ["ksql_instance"]


def ksql_instance(settings: KsqlSettings) -> KsqlInstance:
    """A server whose queries run in an engine process of its own, or in one that it shares."""
    link = engine_link(settings.server_folder / "engine", settings["moldau.engine.dir"], prefix=settings.query_prefix)
    return KsqlInstance(settings, link)
