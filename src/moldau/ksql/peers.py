"""What servers with one service id tell each other: that they are alive, what runs on them, how late their tables are.

Each server posts to the others (`/heartbeat`, `/lag`) once a second. Start at `Peers`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from moldau.ksql.api.access import PeerAccess
from moldau.ksql.api.documents import Document

__all__ = ["Peers"]

SEND_S = 1.0
LAGS_EVERY = 5
"""Lags are sent with every fifth heartbeat."""
ALIVE_S = 5.0
"""A server that was not heard of for this long is shown as not alive."""
TIMEOUT_S = 2.0

_logger = logging.getLogger("moldau.ksql")


@dataclass(slots=True)
class _Heard:
    at_ms: int = 0
    states: Mapping[str, str] = field(default_factory=dict)
    lags: Document = field(default_factory=dict)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Peers:
    """Tells the other servers about this one, and remembers what they tell."""

    def __init__(
        self,
        others: Callable[[], Sequence[str]],
        own_host: Callable[[], str],
        states: Callable[[], Mapping[str, str]],
        lags: Callable[[], Document],
        access: PeerAccess,
    ) -> None:
        """`states` are those of this server's queries; `lags` blocks."""
        self._others, self._own_host = others, own_host
        self._states, self._lags = states, lags
        self._access = access
        self._heard: dict[str, _Heard] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_telling())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # What others told

    def note_heartbeat(self, document: Mapping[str, Any]) -> None:
        """Take a heartbeat of another server; raises `KeyError`, `TypeError` or `ValueError` for one that is none."""
        heard = self._heard.setdefault(_host_in(document["hostInfo"]), _Heard())
        states = document.get("queries", {})
        heard.at_ms, heard.states = _now_ms(), {str(name): str(state) for name, state in states.items()}

    def note_lags(self, document: Mapping[str, Any]) -> None:
        """Take the lags of another server; raises as `note_heartbeat` does."""
        lags = document["hostStoreLags"]
        self._heard.setdefault(_host_in(document["ksqlHost"]), _Heard()).lags = dict(lags)

    def is_alive(self, url: str) -> bool:
        """Whether another server was heard of lately."""
        heard = self._heard.get(urlsplit(url).netloc)
        return heard is not None and _now_ms() - heard.at_ms < ALIVE_S * 1000

    def heard_at_ms(self, url: str) -> int:
        heard = self._heard.get(urlsplit(url).netloc)
        return 0 if heard is None else heard.at_ms

    def lags_of(self, url: str) -> Document:
        heard = self._heard.get(urlsplit(url).netloc)
        return {} if heard is None else heard.lags

    def state_of(self, url: str, query_id: str) -> str | None:
        """The state of a query on another server, as it was last told."""
        heard = self._heard.get(urlsplit(url).netloc)
        return None if heard is None else heard.states.get(query_id)

    # Telling others

    async def _keep_telling(self) -> None:
        beats = 0
        while True:
            others = self._others()
            if others:
                await self._tell(others, with_lags=beats % LAGS_EVERY == 0)
                beats += 1
            await asyncio.sleep(SEND_S)

    async def _tell(self, others: Sequence[str], *, with_lags: bool) -> None:
        host, _, port = self._own_host().rpartition(":")
        own = {"host": host, "port": int(port)}
        beat = {"hostInfo": own, "timestamp": _now_ms(), "queries": dict(self._states())}
        posts = [asyncio.to_thread(self._post, url, "/heartbeat", beat) for url in others]
        if with_lags:
            lags = {"ksqlHost": own, "hostStoreLags": await asyncio.to_thread(self._lags)}
            posts += [asyncio.to_thread(self._post, url, "/lag", lags) for url in others]
        await asyncio.gather(*posts)

    def _post(self, url: str, path: str, document: Document) -> None:
        """Send a document; a server that is away is told by not hearing of it."""
        connection = self._access.connect(url, TIMEOUT_S)
        try:
            headers = {"Content-Type": "application/json", **self._access.headers}
            connection.request("POST", path, json.dumps(document), headers)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            _logger.debug("%s%s: %s", url, path, error)
        finally:
            connection.close()


def _host_in(document: Mapping[str, Any]) -> str:
    return f"{document['host']}:{int(document['port'])}"
