"""A broker's life with the active controller: it registers, sends heartbeats, is unfenced, and asks before it stops.

It is fenced, and led nowhere, until it has applied the metadata up to its own registration and asks to be unfenced.
While no controller answers it goes on serving; if it was registered anew meanwhile by another process of the same id,
it cannot be part of the cluster any more. Start at `BrokerLifecycle.register`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from moldau.broker.cluster.controller_channel import ControllerChannel, ControllerUnavailableError
from moldau.controller.features import SUPPORTED
from moldau.controller.image import Endpoint
from moldau.core.errors import ErrorCode, StartupError
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["BrokerLifecycle"]

_logger = logging.getLogger("moldau.broker.BrokerLifecycle")

RETRY_S: Final = 0.2
CATCH_UP_S: Final = 0.01
SHUTDOWN_STEP_S: Final = 0.05
SHUTDOWN_S: Final = 30.0
"""How long a controlled shutdown may take before the broker stops all the same."""
SILENCE_S: Final = 4.0
"""How long it waits for an active controller to answer: a new one may just be elected."""


class BrokerLifecycle:
    """Used on one loop. `applied_offset` says how far this broker has applied the metadata."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        channel: ControllerChannel,
        *,
        applied_offset: Callable[[], int],
        heartbeat_interval_ms: int,
        registration_timeout_ms: int,
        stands_aside: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stands_aside` says before each heartbeat whether this broker should lead nothing for now."""
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._channel = channel
        self._applied_offset = applied_offset
        self._interval_s = heartbeat_interval_ms / 1000
        self._timeout_s = registration_timeout_ms / 1000
        self._incarnation_id = uuid.uuid4()
        self._endpoints: Sequence[Endpoint] = ()
        self._log_dirs: Sequence[uuid.UUID] = ()
        self._rack: str | None = None
        self._wants_fence = True
        self._stands_aside = stands_aside
        self._unfenced = asyncio.Event()
        self._nudge = asyncio.Event()
        self._beats: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()
        self._is_silent = False
        self._previous_epoch = -1
        self.broker_epoch = -1
        """The epoch of the current registration."""

    # --- joining ----------------------------------------------------------------------------------------

    async def register(
        self,
        endpoints: Sequence[Endpoint],
        log_dirs: Sequence[uuid.UUID],
        rack: str | None,
        *,
        previous_epoch: int = -1,
    ) -> int:
        """Register and begin to send heartbeats; returns the broker epoch. Raises `StartupError` if refused.

        `previous_epoch` is the one under which the last run ended in order, -1 if it did not.
        """
        self._previous_epoch = previous_epoch
        self._endpoints, self._log_dirs, self._rack = tuple(endpoints), tuple(log_dirs), rack
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        has_warned = False
        while True:
            error: ErrorCode | None = None
            why = "no active controller answers"
            try:
                error = await self._register()
                why = self._refusal(error)
            except ControllerUnavailableError as trouble:
                why = str(trouble)
            if error is ErrorCode.NONE:
                break
            is_final = error is not None and error is not ErrorCode.DUPLICATE_BROKER_REGISTRATION
            if is_final or asyncio.get_running_loop().time() >= deadline:
                raise StartupError(why)
            if not has_warned:
                has_warned = True
                _logger.warning("%s; trying again for %g s", why, self._timeout_s)
            await self._pause()
        _logger.info("registered as broker %d with epoch %d", self._node_id, self.broker_epoch)
        self._beats = asyncio.ensure_future(self._keep_beating())
        return self.broker_epoch

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(RETRY_S):
                await self.stopping.wait()
        except TimeoutError:
            return
        raise StartupError("asked to stop before it was registered")

    async def _register(self) -> ErrorCode:
        request = Message(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[
                Message(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for one in self._endpoints
            ],
            features=[
                Message(name=name, min_supported_version=level.min, max_supported_version=level.max)
                for name, level in SUPPORTED.items()
            ],
            rack=self._rack,
            log_dirs=list(self._log_dirs),
            previous_broker_epoch=self._previous_epoch,
        )
        reply = await self._channel.send(ApiKey.BROKER_REGISTRATION, request, timeout_s=min(5.0, self._timeout_s))
        if reply.error_code == ErrorCode.NONE:
            self.broker_epoch = self._previous_epoch = reply.broker_epoch
        return ErrorCode(reply.error_code)

    def _refusal(self, error: ErrorCode) -> str:
        if error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            return (
                f"the log directories belong to cluster {self._cluster_id}, and the controllers to another one; use "
                "the log.dirs of that cluster, or an empty folder formatted with its id"
            )
        if error is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return (
                f"a broker with id {self._node_id} runs already, or did until a moment ago; give this one another "
                "node.id, or stop the other"
            )
        if error is ErrorCode.INVALID_REGISTRATION:
            return (
                f"the controller refuses broker {self._node_id}: its log directories have no ids, or another broker's; "
                "do not copy log.dirs from one broker to another"
            )
        return f"the controller refuses broker {self._node_id}: {error.name}"

    def give_up(self) -> None:
        """Stop waiting for a registration, because the process is to stop."""
        self.stopping.set()

    async def unfence(self) -> None:
        """Ask to be unfenced; returns when that is so."""
        self._wants_fence = False
        self._nudge.set()
        waits = [asyncio.ensure_future(one.wait()) for one in (self._unfenced, self.stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        if not self._unfenced.is_set():
            raise StartupError("asked to stop before it was unfenced")

    # --- heartbeats -------------------------------------------------------------------------------------

    async def _keep_beating(self) -> None:
        while True:
            try:
                is_settled = await self._beat()
                self._note_answer()
            except ControllerUnavailableError as error:
                is_settled = True
                self._note_silence(error)
            try:
                async with asyncio.timeout(self._interval_s if is_settled else CATCH_UP_S):
                    await self._nudge.wait()
            except TimeoutError:
                pass
            self._nudge.clear()

    async def _beat(self) -> bool:
        """Send one; returns whether the next one can wait for its time."""
        wants_fence = self._wants_fence or self._stands_aside()
        reply = await self._heartbeat(wants_fence=wants_fence)
        if reply.error_code == ErrorCode.STALE_BROKER_EPOCH:
            error = await self._register()
            if error is ErrorCode.NONE:
                _logger.info("registered again as broker %d with epoch %d", self._node_id, self.broker_epoch)
                return False
            _logger.error("%s", self._refusal(error))
            return True
        if reply.error_code:
            return True
        if not reply.is_fenced:
            self._unfenced.set()
        return bool(reply.is_fenced == wants_fence and reply.is_caught_up)

    async def _heartbeat(self, *, wants_fence: bool = False, wants_shut_down: bool = False) -> Message:
        request = Message(
            broker_id=self._node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied_offset(),
            want_fence=wants_fence,
            want_shut_down=wants_shut_down,
            offline_log_dirs=[],
        )
        step_s = max(self._interval_s, 1.0)
        return await self._channel.send(ApiKey.BROKER_HEARTBEAT, request, timeout_s=step_s, attempt_s=step_s)

    def _note_silence(self, error: ControllerUnavailableError) -> None:
        if not self._is_silent:
            self._is_silent = True
            _logger.warning("%s; the broker keeps serving", error)

    def _note_answer(self) -> None:
        if self._is_silent:
            self._is_silent = False
            _logger.info("the controller answers again")

    # --- leaving ----------------------------------------------------------------------------------------

    async def shut_down(self, *, is_controlled: bool) -> None:
        """Hand over what this broker leads; returns when it may stop, or should not be waited for any longer."""
        self.give_up()
        if self._beats is None:
            return
        self._beats.cancel()
        await asyncio.gather(self._beats, return_exceptions=True)
        self._beats = None
        if not is_controlled or not self._unfenced.is_set():
            return
        loop = asyncio.get_running_loop()
        deadline, heard_s = loop.time() + SHUTDOWN_S, loop.time()
        while loop.time() < deadline:
            try:
                reply = await self._heartbeat(wants_shut_down=True)
                heard_s = loop.time()
            except ControllerUnavailableError as error:
                if loop.time() - heard_s < SILENCE_S:
                    continue
                _logger.warning("%s; stopping without handing over", error)
                return
            if reply.error_code or reply.should_shut_down:
                return
            await asyncio.sleep(SHUTDOWN_STEP_S)
        _logger.warning("the controller did not let this broker stop within %g s; stopping all the same", SHUTDOWN_S)
