"""kafka-topics --list."""

from __future__ import annotations

from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.cli.topics.selection import matching
from moldau.client.admin import Admin

__all__ = ["list_topics"]


def list_topics(admin: Admin, parsed: Parsed) -> None:
    names = matching(admin.topic_names(), parsed.value("topic"), exclude_internal=parsed.has("exclude-internal"))
    for name in names:
        say(name)
