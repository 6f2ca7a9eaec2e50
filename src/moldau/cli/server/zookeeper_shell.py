"""`zookeeper-shell`: the ZooKeeper paths that courses read, answered from the cluster itself. Read only.

There are no ZooKeeper nodes: `ls` and `get` of the paths that Kafka used are answered from the brokers' APIs.
Start at `children` and `content`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Protocol

from moldau.cli.tool import run_body, say
from moldau.client.admin import Admin, TopicDescription
from moldau.client.registration_point import brokers_behind
from moldau.core.errors import MoldauError

__all__ = ["Cluster", "children", "content", "main"]

_USAGE = "USAGE: zookeeper-shell zookeeper_host:port[/path] [ls /path | get /path]"
_COMMANDS = "there is ls <path>, get <path> and quit; nothing can be changed here"


class Cluster(Protocol):
    """The data behind the paths; each value is requested only when a path needs it."""

    @property
    def cluster_id(self) -> str: ...
    @property
    def brokers(self) -> Sequence[tuple[int, str, int]]: ...
    @property
    def topic_names(self) -> Sequence[str]: ...
    def topic(self, name: str) -> TopicDescription: ...


def children(path: str, cluster: Cluster) -> list[str] | None:
    """The names below a path, or `None` if there is no such path."""
    match _parts(path):
        case []:
            return ["brokers", "cluster", "controller"]
        case ["brokers"]:
            return ["ids", "topics"]
        case ["brokers", "ids"]:
            return [str(node_id) for node_id, _, _ in cluster.brokers]
        case ["brokers", "topics"]:
            return list(cluster.topic_names)
        case ["brokers", "topics", name] if name in cluster.topic_names:
            return ["partitions"]
        case ["brokers", "topics", name, "partitions"] if name in cluster.topic_names:
            return [str(one.partition) for one in cluster.topic(name).partitions]
        case ["brokers", "topics", _, "partitions", _] if content(f"{path.rstrip('/')}/state", cluster) is not None:
            return ["state"]
        case ["cluster"]:
            return ["id"]
    return None if content(path, cluster) is None else []


def content(path: str, cluster: Cluster) -> str | None:
    """The content of a path, JSON or empty; `None` if there is no such path."""
    match _parts(path):
        case [] | ["brokers"] | ["brokers", "ids" | "topics"] | ["cluster"]:
            return ""
        case ["cluster", "id"]:
            return _json({"version": "1", "id": cluster.cluster_id})
        case ["controller"] if cluster.brokers:
            return _json({"version": 1, "brokerid": cluster.brokers[0][0]})
        case ["brokers", "ids", node_id]:
            found = (one for one in cluster.brokers if str(one[0]) == node_id)
            return next((_broker(host, port) for _, host, port in found), None)
        case ["brokers", "topics", name, *rest] if name in cluster.topic_names:
            return _topic_content(cluster.topic(name), rest)
    return None


def _broker(host: str, port: int) -> str:
    protocols = {"PLAINTEXT": "PLAINTEXT"}
    endpoints = [f"PLAINTEXT://{host}:{port}"]
    entry = {"listener_security_protocol_map": protocols, "endpoints": endpoints, "jmx_port": -1}
    return _json({**entry, "host": host, "port": port, "version": 5})


def _topic_content(topic: TopicDescription, rest: Sequence[str]) -> str | None:
    by_number = {str(one.partition): one for one in topic.partitions}
    match rest:
        case []:
            replicas = {number: list(one.replicas) for number, one in by_number.items()}
            moves: dict[str, object] = {"adding_replicas": {}, "removing_replicas": {}}
            return _json({**moves, "partitions": replicas, "topic_id": topic.topic_id, "version": 3})
        case ["partitions"]:
            return ""
        case ["partitions", number, *state] if number in by_number and state in ([], ["state"]):
            one = by_number[number]
            leader = -1 if one.leader is None else one.leader
            return _json({"leader": leader, "isr": list(one.isr), "version": 1}) if state else ""
    return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _json(entry: object) -> str:
    return json.dumps(entry, separators=(",", ":"))


class _LiveCluster:
    def __init__(self, zookeeper: str) -> None:
        self._admin = Admin(brokers_behind(zookeeper))
        described = self._admin.describe_cluster()
        self.cluster_id = described.cluster_id
        self.brokers = [(node.id, node.host, node.port) for node in described.nodes]

    @property
    def topic_names(self) -> list[str]:
        return self._admin.topic_names()

    def topic(self, name: str) -> TopicDescription:
        return self._admin.describe_topics([name])[0]


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 1
    return run_body(lambda: _answer_all(words[0], [words[1:]] if words[1:] else _typed_commands()), _report)


def _report(error: MoldauError) -> None:
    print(error, file=sys.stderr)


def _typed_commands() -> Iterable[list[str]]:
    """Commands from standard input, until its end, `quit` or `close`."""
    for line in sys.stdin:
        words = line.split()
        if words[:1] in (["quit"], ["close"]):
            return
        if words:
            yield words


def _answer_all(zookeeper: str, commands: Iterable[Sequence[str]]) -> int:
    say(f"Connecting to {zookeeper}")
    cluster = _LiveCluster(zookeeper)
    status = 0
    for words in commands:
        try:
            say(_answer(words, cluster))
        except MoldauError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


class _NoAnswerError(MoldauError):
    """A command that cannot be answered; the message is the reason."""


def _answer(words: Sequence[str], cluster: Cluster) -> str:
    match words:
        case ["ls", path]:
            names = children(path, cluster)
            told = None if names is None else f"[{', '.join(names)}]"
        case ["get", path]:
            told = content(path, cluster)
        case _:
            raise _NoAnswerError(f"{' '.join(words)}: {_COMMANDS}")
    if told is None:
        raise _NoAnswerError(f"Node does not exist: {path}")
    return told


if __name__ == "__main__":
    sys.exit(main())
