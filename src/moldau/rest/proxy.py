"""What all endpoints share: the cluster, the producer, the schemas and the consumer instances. Start at `Proxy`."""

from __future__ import annotations

from moldau.http.calls import Call
from moldau.rest.cluster import Cluster
from moldau.rest.consumers.instances import Instances
from moldau.rest.producing import RecordProducer
from moldau.rest.records.schemas import Schemas
from moldau.rest.settings import RestSettings

__all__ = ["Proxy"]


class Proxy:
    """Belongs to the event loop that runs when it is made. Nothing connects before a request needs it."""

    def __init__(self, settings: RestSettings) -> None:
        self.settings = settings
        servers, client_id = settings["bootstrap.servers"], settings.client_id
        self.cluster = Cluster(
            servers,
            settings.client_properties("admin"),
            client_id=client_id,
            timeout_ms=settings["moldau.request.timeout.ms"],
        )
        self.producer = RecordProducer(servers, settings.client_properties("producer"), f"{client_id}-producer")
        self.schemas = Schemas(_registry_properties(settings))
        self.instances = Instances(settings)
        self.open_streams = 0
        self.tails = 0

    def start(self) -> None:
        self.instances.start()

    async def stop(self) -> None:
        await self.instances.stop()
        await self.producer.close()
        await self.cluster.close()

    def base_url(self, call: Call) -> str:
        """The beginning of URLs in answers: what is advertised, else the address that the client asked."""
        advertised = self.settings.advertised
        if advertised is not None:
            return advertised
        asked = call.base_url
        if self.settings["host.name"]:
            asked = asked.replace(hostname=self.settings["host.name"])
        return str(asked).rstrip("/")


def _registry_properties(settings: RestSettings) -> dict[str, str]:
    properties = {"schema.registry.url": settings["schema.registry.url"]}
    if settings["schema.registry.basic.auth.user.info"]:
        properties["basic.auth.user.info"] = settings["schema.registry.basic.auth.user.info"]
    return properties
