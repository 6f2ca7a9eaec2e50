"""kafka-broker-api-versions: which requests each broker supports."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, open_admin
from moldau.cli.options import Parsed, Parser
from moldau.cli.tool import run, say
from moldau.client.admin import Node
from moldau.protocol.api import APIS, ApiKey

__all__ = ["api_lines", "main"]

PARSER = Parser("Show the versions of each request that each broker understands.", [BOOTSTRAP_SERVER, COMMAND_CONFIG])

BETWEEN_NODES = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""APIs used only between brokers and controllers; clients do not need them."""


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _api_versions, argv)


def _api_versions(parsed: Parsed) -> None:
    admin = open_admin(parsed)
    for node in admin.describe_cluster().nodes:
        with admin.wire(node.id) as client:
            say("\n".join(api_lines(node, client.api_versions())))


def api_lines(node: Node, offered: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    """The broker's line, a line per API by key, and the closing bracket."""
    rack = node.rack or "null"
    yield f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: false) -> ("
    keys = sorted({*offered, *APIS} - (BETWEEN_NODES - {*offered}))
    for key in keys:
        comma = "," if key != keys[-1] else ""
        yield f"\t{_api(key, offered.get(key))}{comma}"
    yield ")"


def _api(key: int, versions: tuple[int, int] | None) -> str:
    name = ApiKey(key).display_name if key in APIS else "UNKNOWN"
    if versions is None:
        return f"{name}({key}): UNSUPPORTED"
    low, high = versions
    span = str(low) if low == high else f"{low} to {high}"
    if key not in APIS:
        return f"{name}({key}): {span}"
    usable = min(high, APIS[key].last)
    is_usable = usable >= max(low, APIS[key].first)
    return f"{name}({key}): {span} [usable: {usable if is_usable else 'none'}]"


if __name__ == "__main__":
    sys.exit(main())
