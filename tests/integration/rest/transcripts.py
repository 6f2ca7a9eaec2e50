"""Transcripts of curl sessions: commands with the status and the JSON that answer them. Start at `play`.

A block is a line `$ curl …`, a line with the status, and one JSON document per line; an empty line ends it. `CLUSTER`,
`BROKER` and `CONSUMER` stand for ids that the answers have told. In an expected document `"…"` stands for anything; an
object that has it as a key may have more members, a list that ends with it more elements.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FOLDER", "Block", "Session", "load_blocks", "play"]

FOLDER = Path(__file__).parent / "transcripts"
ANYTHING = "…"
BASE = "localhost:8082"


class Block(NamedTuple):
    line: int
    command: str
    status: int
    documents: list[Any]


class Session:
    """What a transcript's placeholders stand for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.names: dict[str, str] = {}

    def run(self, command: str) -> tuple[int, list[Any]]:
        """Status and documents of a command, with the placeholders in the place of what they stand for."""
        for name, value in self.names.items():
            command = re.sub(rf"\b{name}\b", value, command)
        words = shlex.split(command.replace(BASE, self.url.removeprefix("http://")))
        ran = subprocess.run(
            [words[0], "-s", "-S", "-w", "\n%{http_code}", *words[1:]],
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
        content, _, status = ran.stdout.rpartition("\n")
        self._learn(content)
        return int(status), [json.loads(line) for line in self._general(content).splitlines() if line]

    def _learn(self, content: str) -> None:
        for name, kind in (("CLUSTER", "cluster_id"), ("BROKER", "broker_id"), ("CONSUMER", "consumer_id")):
            found = re.search(rf'"{kind}":"?([^",}}]+)', content)
            if found is not None and name not in self.names:
                self.names[name] = found[1]

    def _general(self, content: str) -> str:
        content = content.replace(self.url, f"http://{BASE}")
        for name in ("CLUSTER", "CONSUMER"):
            if name in self.names:
                content = content.replace(self.names[name], name)
        return content


def load_blocks(path: Path) -> Iterator[Block]:
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("$ "):
            answer = []
            for following in lines[number + 1 :]:
                if not following:
                    break
                answer.append(following)
            yield Block(number + 1, line[2:], int(answer[0]), [json.loads(text) for text in answer[1:]])


def play(path: Path, session: Session) -> None:
    """Run the commands of a transcript, and compare each answer."""
    for block in load_blocks(path):
        status, documents = session.run(block.command)
        about = f"{path.name}:{block.line}: {block.command}\nanswered {status} {json.dumps(documents, indent=1)}"
        assert status == block.status, about
        assert _fits(block.documents, documents), about


def _fits(expected: Any, found: Any) -> bool:
    if expected == ANYTHING:
        return True
    if isinstance(expected, dict) and isinstance(found, dict):
        wanted = {name: value for name, value in expected.items() if name != ANYTHING}
        has_all = wanted.keys() <= found.keys() if ANYTHING in expected else wanted.keys() == found.keys()
        return has_all and all(_fits(value, found[name]) for name, value in wanted.items())
    if isinstance(expected, list) and isinstance(found, list):
        if expected[-1:] == [ANYTHING]:
            return all(any(_fits(one, other) for other in found) for one in expected[:-1])
        return len(expected) == len(found) and all(map(_fits, expected, found))
    return bool(expected == found) and type(expected) is type(found)
