"""Statements about connectors, which a Connect worker answers: `ksql.connect.url`. Start at `Connectors.answer`."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from moldau.ksql.api.documents import Document, entity
from moldau.ksql.api.errors import ErrorKind, RequestError
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["Connectors"]

TIMEOUT_S = 60.0


class Connectors:
    """One request to the worker for each thing a statement needs."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def answer(self, statement: syntax.Statement) -> Document:
        """The answer to a statement; raises `RequestError` if no worker answers, or if it refuses."""
        match statement:
            case syntax.CreateConnector():
                return await asyncio.to_thread(self._create, statement)
            case syntax.DropConnector():
                return await asyncio.to_thread(self._drop, statement)
            case syntax.DescribeConnector():
                return await asyncio.to_thread(self._describe, statement)
            case syntax.Show(listing=syntax.Listing.CONNECTOR_PLUGINS):
                return await asyncio.to_thread(self._plugins, statement)
            case syntax.Show():
                return await asyncio.to_thread(self._list, statement)
            case _:
                raise RequestError(f"This is not a statement about connectors: {type(statement).__name__}")

    def _create(self, statement: syntax.CreateConnector) -> Document:
        config = {
            one.name.lower() if one.name.isupper() else one.name: _text(one.value) for one in statement.properties
        }
        body = {"name": statement.name, "config": config}
        status, document = self._ask("POST", "/connectors", body)
        if status == 409 and statement.if_not_exists:
            message = f"Connector {statement.name} already exists"
            return entity("warning_entity", statement.text, message=message)
        return entity("connector_info", statement.text, info=self._good(status, document))

    def _drop(self, statement: syntax.DropConnector) -> Document:
        status, document = self._ask("DELETE", f"/connectors/{quote(statement.name, safe='')}")
        if status == 404 and statement.if_exists:
            message = f"Connector '{statement.name}' does not exist."
            return entity("warning_entity", statement.text, message=message)
        self._good(status, document)
        return entity("drop_connector", statement.text, connectorName=statement.name)

    def _describe(self, statement: syntax.DescribeConnector) -> Document:
        path = f"/connectors/{quote(statement.name, safe='')}"
        info = self._good(*self._ask("GET", path))
        status = self._good(*self._ask("GET", f"{path}/status"))
        code, topics = self._ask("GET", f"{path}/topics")
        return entity(
            "connector_description",
            statement.text,
            connectorClass=info["config"].get("connector.class", ""),
            status=status,
            sources=[],
            topics=topics[statement.name]["topics"] if code == 200 else [],
        )

    def _list(self, statement: syntax.Show) -> Document:
        found = self._good(*self._ask("GET", "/connectors?expand=info&expand=status"))
        kind = statement.connector_kind.value.lower() if statement.connector_kind is not None else None
        listed = [
            {
                "name": name,
                "type": entry["info"]["type"],
                "className": entry["info"]["config"].get("connector.class", ""),
                "state": _state(entry.get("status")),
            }
            for name, entry in sorted(found.items())
            if kind in (None, entry["info"]["type"])
        ]
        return entity("connector_list", statement.text, connectors=listed)

    def _plugins(self, statement: syntax.Show) -> Document:
        found = self._good(*self._ask("GET", "/connector-plugins"))
        listed = [{"className": one["class"], "type": one["type"], "version": one["version"]} for one in found]
        return entity("connector_plugins_list", statement.text, connectorsPlugins=listed)

    def _good(self, status: int, document: Any) -> Any:
        if status < 300:
            return document
        message = document.get("message", document) if isinstance(document, dict) else document
        kind = ErrorKind.NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST
        raise RequestError(
            f"The Connect worker refused it: {message}", kind if status < 500 else ErrorKind.SERVER_ERROR
        )

    def _ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        address = urlsplit(self._url)
        connection = http.client.HTTPConnection(
            address.hostname or "localhost", address.port or 8083, timeout=TIMEOUT_S
        )
        try:
            content = None if body is None else json.dumps(body)
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request(method, target, content, headers)
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text.strip() else None
        except (OSError, http.client.HTTPException, ValueError):
            raise RequestError(
                f"Connectors are served by a Connect worker, and none answers at {self._url}; "
                "start one, or set ksql.connect.url",
                ErrorKind.SERVER_ERROR,
            ) from None
        finally:
            connection.close()


def _state(status: Mapping[str, Any] | None) -> str:
    """`RUNNING (1/1 tasks RUNNING)`; a connector that runs with tasks that do not is in WARNING."""
    if status is None:
        return "UNASSIGNED"
    state, tasks = status["connector"]["state"], status["tasks"]
    running = sum(one["state"] == "RUNNING" for one in tasks)
    if state == "RUNNING" and running < len(tasks):
        state = "WARNING" if running else "FAILED"
    return f"{state} ({running}/{len(tasks)} tasks RUNNING)"


def _text(value: Any) -> str:
    found = getattr(value, "value", value)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
