"""Requests as curl would send them: headers and bodies are written out, answers are status and document."""

from __future__ import annotations

import base64
import itertools
import json
import time
import uuid
from typing import Any, NamedTuple

import httpx

__all__ = ["V1", "V2", "Reply", "Talk", "b64", "embedded"]

V1, V2 = "application/vnd.kafka.v1+json", "application/vnd.kafka.v2+json"
PATIENCE_S = 60.0
_numbers = itertools.count()


def embedded(name: str, version: int = 2) -> str:
    return f"application/vnd.kafka.{name}.v{version}+json"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Reply(NamedTuple):
    status: int
    document: Any
    headers: httpx.Headers

    @property
    def code(self) -> int:
        """The error's code."""
        return int(self.document["error_code"])


class Talk:
    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=PATIENCE_S)
        self._instances: list[str] = []

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_error: object) -> None:
        for uri in self._instances:
            self.http.delete(uri)
        self.http.close()

    def __call__(
        self, method: str, path: str, body: Any = None, *, content: str | None = None, accept: str | None = None
    ) -> Reply:
        """Send a request; a body that is not text or bytes becomes JSON."""
        headers = {}
        if content is not None:
            headers["content-type"] = content
        if accept is not None:
            headers["accept"] = accept
        sent = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        answer = self.http.request(method, path, content=sent, headers=headers)
        document = answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None
        return Reply(answer.status_code, document, answer.headers)

    @property
    def cluster(self) -> str:
        """The path of the cluster in version 3."""
        return f"/v3/clusters/{self('GET', '/v3/clusters').document['data'][0]['cluster_id']}"

    def new_name(self, kind: str = "topic") -> str:
        return f"{kind}-{next(_numbers)}-{uuid.uuid4().hex[:6]}"

    def new_topic(self, partitions: int = 1, **configs: str) -> str:
        name = self.new_name()
        body = {
            "topic_name": name,
            "partitions_count": partitions,
            "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
        }
        created = self("POST", f"{self.cluster}/topics", body, content="application/json")
        assert created.status == 201, created
        return name

    def produce(self, topic: str, *values: Any, kind: str = "json", **more: Any) -> Reply:
        body = {"records": [{"value": value} for value in values], **more}
        return self("POST", f"/topics/{topic}", body, content=embedded(kind))

    def instance(self, *, version: int = 2, group: str | None = None, **config: Any) -> str:
        """A new consumer instance's base_uri; it is deleted at the end."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        settings = {"auto.offset.reset": "earliest", **settings}
        path = f"/consumers/{group or self.new_name('group')}"
        created = self("POST", path, settings, content=V1 if version == 1 else V2)
        assert created.status == 200, created
        self._instances.append(created.document["base_uri"])
        return str(created.document["base_uri"])

    def read(self, uri: str, count: int, path: str = "/records", accept: str | None = None) -> list[dict[str, Any]]:
        """Read until `count` records have come."""
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count:
            assert time.monotonic() < deadline, found
            answer = self("GET", f"{uri}{path}", accept=accept)
            assert answer.status == 200, answer
            found += answer.document
        return found
