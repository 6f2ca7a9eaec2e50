"""kafka-consumer-groups --list. Start at `show_groups`."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.cli.groups.tables import listing_lines
from moldau.cli.options import Parsed, UsageError
from moldau.cli.tool import say
from moldau.client.groups import GroupListing, Groups
from moldau.core.java_order import java_hash_order

__all__ = ["consumer_groups", "filter_listings", "parse_states", "parse_types", "show_groups"]

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")


def show_groups(parsed: Parsed, groups: Groups) -> None:
    states, types = parse_states(parsed.value("state")), parse_types(parsed.value("type"))
    found = filter_listings(consumer_groups(groups), states=states, types=types)
    if parsed.has("state") or parsed.has("type"):
        for line in listing_lines(found, shows_type=parsed.has("type"), shows_state=parsed.has("state")):
            say(line)
    else:
        for listing in found:
            say(listing.group_id)


def consumer_groups(groups: Groups) -> list[GroupListing]:
    """Every consumer group, in the order in which Kafka's tool shows them."""
    found = {listing.group_id: listing for listing in groups.listings() if listing.is_consumer_group}
    return [found[group_id] for group_id in java_hash_order(found)]


def filter_listings(listings: Iterable[GroupListing], *, states: set[str], types: set[str]) -> list[GroupListing]:
    """The groups in one of the states and of one of the types; an empty set matches all."""
    return [
        listing
        for listing in listings
        if (not states or listing.state in states) and (not types or listing.type in types)
    ]


def parse_states(text: str | None) -> set[str]:
    return _words(text, STATES, "Invalid state list '{}'. Valid states are: {}")


def parse_types(text: str | None) -> set[str]:
    return _words(text, TYPES, "Invalid types list '{}'. Valid types are: {}")


def _words(text: str | None, valid: tuple[str, ...], complaint: str) -> set[str]:
    by_name = {name.lower(): name for name in valid}
    words = {word.strip().lower() for word in (text or "").split(",")} if text else set()
    if not words <= set(by_name):
        raise UsageError(complaint.format(text, ", ".join(valid)))
    return {by_name[word] for word in words}
