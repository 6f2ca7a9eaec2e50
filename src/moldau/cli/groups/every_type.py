"""kafka-groups: groups of every type in one list. Start at `main`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run, say, warn_about_stray_words
from moldau.client.groups import GroupListing, Groups
from moldau.core.errors import MoldauError
from moldau.core.java_order import java_hash_order

__all__ = ["filter_listings", "main"]

TYPES = ("Classic", "Consumer", "Share", "Streams")
SHORTCUTS = ("consumer", "share", "streams")
NARROWEST = 20

PARSER = Parser(
    "List groups of all types.",
    [
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        Option("list", "List the groups."),
        Option("group-type", "Only groups of this type: classic, consumer, share or streams.", "type"),
        Option("protocol", "Only groups whose members speak this protocol, such as consumer or connect.", "protocol"),
        Option("consumer", "Only consumer groups, of either type."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
    ],
    epilog="Example: kafka-groups --bootstrap-server localhost:9092 --list --consumer",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _run, argv, report=_report)


def _report(error: MoldauError) -> None:
    say(f"Error while executing groups command : {error}")


def _run(parsed: Parsed) -> None:
    parsed.require("bootstrap-server")
    parsed.exactly_one(["list"], "Command must include exactly one action: --list.")
    for shortcut in SHORTCUTS:
        others = [name for name in SHORTCUTS if name != shortcut]
        parsed.forbid([*others, "group-type", "protocol"], because_of=shortcut)
    kind = _type(parsed.value("group-type"))
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    given = next((name for name in SHORTCUTS if parsed.has(name)), None)
    found = {listing.group_id: listing for listing in Groups(open_admin(parsed)).listings()}
    in_order = [found[group_id] for group_id in java_hash_order(found)]
    for line in _lines(filter_listings(in_order, kind=kind, protocol=parsed.value("protocol"), shortcut=given)):
        say(line)


def filter_listings(
    listings: Iterable[GroupListing], *, kind: str | None, protocol: str | None, shortcut: str | None
) -> list[GroupListing]:
    """The groups that match all given filters."""
    return [
        listing
        for listing in listings
        if (kind is None or listing.type == kind)
        and (protocol is None or listing.protocol == protocol)
        and (shortcut is None or _is_of(listing, shortcut))
    ]


def _is_of(listing: GroupListing, shortcut: str) -> bool:
    return listing.is_consumer_group if shortcut == "consumer" else listing.type.lower() == shortcut


def _type(text: str | None) -> str | None:
    if text is None:
        return None
    if text.capitalize() not in TYPES:
        raise UsageError("--group-type must be a valid group type.")
    return text.capitalize()


def _lines(listings: Sequence[GroupListing]) -> list[str]:
    """The table: three columns, each as wide as the longest cell of all."""
    rows = [(listing.group_id, listing.type, listing.protocol) for listing in listings]
    width = max([NARROWEST, *(len(cell) for row in rows for cell in row)])
    head = " ".join(name.ljust(width) for name in ("GROUP", "TYPE", "PROTOCOL"))
    return [head, *("".join(f"{cell:<{width}} " for cell in row) for row in rows)]


if __name__ == "__main__":
    sys.exit(main())
