"""The Kafka cluster as the proxy asks it: each question in a thread, so that the event loop goes on.

Start at `Cluster.ask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from moldau.client.admin import Admin, ClusterDescription, TopicDescription
from moldau.client.connection import log_report, normalize_servers
from moldau.client.errors import ClientError
from moldau.client.waiting import in_daemon_thread
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.rest.errors import RestError, partition_not_found, titled, topic_not_found

__all__ = ["Cluster"]

Answer = TypeVar("Answer")
EARLIEST, LATEST = -2, -1
_NO_SUCH_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Cluster:
    def __init__(self, servers: str, properties: Mapping[str, str], *, client_id: str, timeout_ms: int) -> None:
        self.servers = normalize_servers(servers)
        self._properties = {**properties, "client.id": f"{client_id}-admin"}
        self._timeout_ms = timeout_ms
        self._admin: Admin | None = None
        self.cluster_id: str | None = None
        """Known once a broker has answered."""

    async def ask(self, question: Callable[[Admin], Answer]) -> Answer:
        """The answer to a blocking question."""
        try:
            return await in_daemon_thread(lambda: question(self._get_admin()), name="rest-admin")
        except ClientError as error:
            # Whoever keeps the error, such as a log, must not keep the client alive through its frames.
            error.__context__ = None
            raise error.with_traceback(None) from None

    def _get_admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self.servers, self._properties, report=log_report, timeout_ms=self._timeout_ms)
        return self._admin

    async def close(self) -> None:
        self._admin = None

    async def description(self) -> ClusterDescription:
        found = await self.ask(lambda admin: admin.describe_cluster())
        self.cluster_id = found.cluster_id
        return found

    async def check_cluster(self, cluster_id: str) -> None:
        """Raise a 404 for another cluster's id."""
        known = self.cluster_id or (await self.description()).cluster_id
        if cluster_id != known:
            raise titled(404, f"Cluster {cluster_id} cannot be found.")

    async def topic_names(self) -> list[str]:
        return await self.ask(lambda admin: admin.topic_names())

    async def topics(self) -> list[TopicDescription]:
        return await self.ask(lambda admin: admin.describe_topics(admin.topic_names()))

    async def topic(self, name: str, *, missing: Callable[[], RestError] = topic_not_found) -> TopicDescription:
        """A topic; raises `missing` if there is none."""
        if not name or len(name) > 249:
            raise missing()
        try:
            return (await self.ask(lambda admin: admin.describe_topics([name])))[0]
        except ClientError as error:
            if error.error_code in _NO_SUCH_TOPIC:
                raise missing() from None
            raise

    async def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """The first and the next offset of a partition; raises 40401 and 40402."""
        description = await self.topic(topic)
        if partition not in {one.partition for one in description.partitions}:
            raise partition_not_found()
        place = TopicPartition(topic, partition)
        first = await self.ask(lambda admin: admin.list_offsets({place: EARLIEST}))
        last = await self.ask(lambda admin: admin.list_offsets({place: LATEST}))
        return first[place], last[place]
