"""kafka-topics --delete."""

from __future__ import annotations

from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.cli.topics.selection import matching, must_exist
from moldau.client.admin import Admin

__all__ = ["delete"]


def delete(admin: Admin, parsed: Parsed) -> None:
    wanted = parsed.value("topic")
    names = matching(admin.topic_names(), wanted, exclude_internal=parsed.has("exclude-internal"))
    must_exist(names, wanted, is_optional=parsed.has("if-exists"))
    for name in names:
        admin.delete_topics([name])
        if parsed.has("zookeeper"):
            say(f"Topic {name} is marked for deletion.")
            say("Note: This will have no impact if delete.topic.enable is not set to true.")
