"""The channel between carriers, which are Spark tasks in other processes, and the board in the engine process.

HTTP with a token: a carrier posts its reports and gets its orders. It listens where Spark's driver does, since that is
what executors can reach. Start at `CarrierChannel`; the other end is `carry`.
"""

from __future__ import annotations

import asyncio
import hmac
import http.client
import json
import logging
import secrets
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from moldau.connect.runtime.board import Order, TaskBoard
from moldau.connect.runtime.carrier import Carrier
from moldau.http import service
from moldau.http.app import HttpApp
from moldau.http.auth import BearerCredentials, Credentials, Principal, UnauthenticatedError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.serving import HttpServer

__all__ = ["CarrierChannel", "carry"]

ANSWER_S = 10.0
CHECK_S = 0.05
DRAIN_S = 1
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class CarrierChannel:
    """A service of the engine process."""

    def __init__(self, board: TaskBoard, host: str = "127.0.0.1") -> None:
        self._board = board
        self._host = host
        self._token = secrets.token_urlsafe(32)
        self._server = HttpServer(host=host, port=0, drain_s=DRAIN_S)
        self.is_ending = False
        """Whether carriers are told to end."""

    async def start(self) -> None:
        await self._server.start(self._app())

    async def stop(self) -> None:
        await self._server.stop()

    def body(self, number: int) -> partial[None]:
        """What a carrier runs on an executor; pickled by name."""
        return partial(carry, self._host, self._server.port, self._token, number)

    def _app(self) -> HttpApp:
        async def authenticate(credentials: Credentials) -> Principal:
            if isinstance(credentials, BearerCredentials) and hmac.compare_digest(credentials.token, self._token):
                return Principal("carrier")
            raise UnauthenticatedError("The request must carry the token of this engine")

        row = Endpoint(
            method="POST",
            path="/carriers/{number}",
            handle=self._sync,
            summary="A carrier's reports for its orders.",
            body={"type": "object"},
            reply={"type": "object"},
        )
        return service.build_app([row], title="moldau connect carriers", authenticate=authenticate)

    async def _sync(self, call: Call) -> Answer:
        document = await call.document()
        if not isinstance(document, dict):
            raise HttpError(400, "A report must be a JSON object")
        number, version = call.number_in_path("number"), self._board.version
        orders = self._board.sync(number, document["life"], document["reports"])
        if document["runs"] == [order.run for order in orders]:
            deadline = time.monotonic() + float(document["waitS"])
            while version == self._board.version and not self.is_ending and time.monotonic() < deadline:
                await asyncio.sleep(CHECK_S)
            orders = self._board.sync(number, document["life"], document["reports"])
        return Answer({"end": self.is_ending, "orders": [order.document() for order in orders]})


def carry(host: str, port: int, token: str, number: int, _rows: Iterable[Any]) -> None:
    """The body of a carrier: runs on an executor until the engine tells it to end."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    asking = _Asking(host, port, token, number)
    Carrier(asking).run()


class _Asking:
    """The carrier's side of the channel; raises `OSError` while the engine does not answer."""

    def __init__(self, host: str, port: int, token: str, number: int) -> None:
        self._address = (host, port)
        self._number = number
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: http.client.HTTPConnection | None = None
        self._runs: list[str] = []

    def __call__(self, life: str, reports: Mapping[str, Any], wait_s: float) -> list[Order] | None:
        body = json.dumps({"life": life, "reports": reports, "waitS": 5 * wait_s, "runs": self._runs})
        answer = self._post(body)
        if answer["end"]:
            return None
        orders = [Order(one["key"], one["run"], one["definition"]) for one in answer["orders"]]
        self._runs = [order.run for order in orders]
        return orders

    def _post(self, body: str) -> Any:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._address, timeout=ANSWER_S)
        try:
            self._connection.request("POST", f"/carriers/{self._number}", body=body, headers=self._headers)
            response = self._connection.getresponse()
            content = response.read()
        except http.client.HTTPException as error:
            self._close()
            raise ConnectionError(str(error)) from None
        except OSError:
            self._close()
            raise
        if response.status != 200:
            self._close()
            raise ConnectionError(f"the engine answered with status {response.status}")
        return json.loads(content)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
