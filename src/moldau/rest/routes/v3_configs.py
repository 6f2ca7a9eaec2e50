"""Configs of topics, brokers and the cluster in version 3. Start at `Configs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.client.admin import Admin, ConfigEntry
from moldau.client.wire_admin import ResourceKind, alter_configs, describe_configs
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.rest.errors import RestError, titled
from moldau.rest.routes import documents
from moldau.rest.routes.resource import body_object
from moldau.rest.routes.v3_resource import V3Resource, broker_number

__all__ = ["Configs"]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose configs are meant."""

    kind: ResourceKind
    name: str
    path: tuple[str | int, ...]
    """Of the list of its configs, below the cluster."""
    fields: Mapping[str, Any]
    """What identifies it in documents."""
    document_kind: str
    broker_id: int | None = None
    """The broker that has to be asked, if not any."""


class Configs(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        for path, owner in (
            ("/topics/{topic_name}/configs", self._topic_owner),
            ("/brokers/{broker_id}/configs", self._broker_owner),
            ("/broker-configs", self._cluster_owner),
        ):
            yield from self._rows(path, owner)
        yield self.row("GET", "/topics/-/configs", self.all_topics, "Configs of all topics.")
        yield self.row("GET", "/brokers/-/configs", self.all_brokers, "Configs of all brokers.")
        yield self.row(
            "POST",
            "/topics/-/configs:alter",
            self.alter_all_topics,
            "Change configs of all topics.",
            body=documents.ALTER_CONFIGS,
            status=204,
        )

    def _rows(self, path: str, find: Any) -> Iterator[Endpoint]:
        async def entries(call: Call) -> Answer:
            here, owner = await self.cluster_id(call), await find(call)
            found = await self._describe(owner)
            data = [self._config(call, here, owner, entry) for entry in found]
            return self.listing(call, f"{owner.document_kind}List", (here, *owner.path), data)

        async def show(call: Call) -> Answer:
            here, owner = await self.cluster_id(call), await find(call)
            return Answer(self._config(call, here, owner, await self._find(owner, call.parts["name"])))

        async def put(call: Call) -> Answer:
            await self.cluster_id(call)
            value = (await body_object(call)).get("value")
            if value is not None and not isinstance(value, str):
                raise titled(400, "value must be a string.")
            return await change(call, {} if value is None else {call.parts["name"]: value})

        async def reset(call: Call) -> Answer:
            await self.cluster_id(call)
            return await change(call, {})

        async def change(call: Call, added: Mapping[str, str]) -> Answer:
            owner, name = await find(call), call.parts["name"]
            if owner.kind is ResourceKind.TOPIC:
                await self._find(owner, name)
            await self._alter([owner], added, [] if added else [name])
            return Answer(status=204)

        async def alter(call: Call) -> Answer:
            await self.cluster_id(call)
            changes, owner = _changes(await body_object(call)), await find(call)
            await self._alter([owner], *changes)
            return Answer(status=204)

        one = f"{path}/{{name}}"
        yield self.row("GET", path, entries, "The configs.")
        yield self.row("GET", one, show, "A config.")
        yield self.row("PUT", one, put, "Set a config.", body=documents.UPDATE_CONFIG, status=204)
        yield self.row("DELETE", one, reset, "Reset a config to its default.", status=204)
        yield self.row(
            "POST", f"{path}:alter", alter, "Set and reset configs.", body=documents.ALTER_CONFIGS, status=204
        )

    async def all_topics(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        owners = [_topic_owner(name) for name in await self.proxy.cluster.topic_names()]
        return self.listing(
            call, "KafkaTopicConfigList", (here, "topics", "-", "configs"), await self._all(call, here, owners)
        )

    async def all_brokers(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        owners = [_broker_owner(node.id) for node in (await self.proxy.cluster.description()).nodes]
        return self.listing(
            call, "KafkaBrokerConfigList", (here, "brokers", "-", "configs"), await self._all(call, here, owners)
        )

    async def alter_all_topics(self, call: Call) -> Answer:
        await self.cluster_id(call)
        changes = _changes(await body_object(call))
        await self._alter([_topic_owner(name) for name in await self.proxy.cluster.topic_names()], *changes)
        return Answer(status=204)

    async def _all(self, call: Call, here: str, owners: Sequence[Owner]) -> list[dict[str, Any]]:
        found = []
        for owner in owners:
            found += [self._config(call, here, owner, entry) for entry in await self._describe(owner)]
        return found

    # Owners

    async def _topic_owner(self, call: Call) -> Owner:
        return _topic_owner((await self.topic(call)).name)

    async def _broker_owner(self, call: Call) -> Owner:
        wanted = broker_number(call.parts["broker_id"])
        if wanted is None or wanted not in {node.id for node in (await self.proxy.cluster.description()).nodes}:
            raise titled(404, f"Broker {call.parts['broker_id']} cannot be found.")
        return _broker_owner(wanted)

    async def _cluster_owner(self, _call: Call) -> Owner:
        return Owner(ResourceKind.BROKER, "", ("broker-configs",), {"config_type": "BROKER"}, "KafkaClusterConfig")

    # Asking and changing

    async def _describe(self, owner: Owner) -> list[ConfigEntry]:
        def ask(admin: Admin) -> list[ConfigEntry]:
            with admin.wire(owner.broker_id) as client:
                return describe_configs(client, owner.kind, owner.name)

        return await self.proxy.cluster.ask(ask)

    async def _find(self, owner: Owner, name: str) -> ConfigEntry:
        for entry in await self._describe(owner):
            if entry.name == name:
                return entry
        raise titled(404, f"Config {name} cannot be found.")

    async def _alter(
        self, owners: Sequence[Owner], added: Mapping[str, str], deleted: Sequence[str], validate_only: bool = False
    ) -> None:
        def change(admin: Admin) -> None:
            for owner in owners:
                with admin.wire(owner.broker_id) as client:
                    alter_configs(
                        client, owner.kind, owner.name, add=added, delete=deleted, validate_only=validate_only
                    )

        await self.proxy.cluster.ask(change)

    def _config(self, call: Call, here: str, owner: Owner, entry: ConfigEntry) -> dict[str, Any]:
        fields = {
            "cluster_id": here,
            **owner.fields,
            "name": entry.name,
            "value": None if entry.is_sensitive else entry.value,
            "is_default": entry.source == "DEFAULT_CONFIG",
            "is_read_only": entry.is_read_only,
            "is_sensitive": entry.is_sensitive,
            "source": entry.source,
            "synonyms": [
                {"name": one.name, "value": None if entry.is_sensitive else one.value, "source": one.source}
                for one in entry.synonyms
            ],
        }
        names: dict[str, str | int] = {"kafka": here}
        if owner.kind is ResourceKind.TOPIC:
            names["topic"] = owner.name
        elif owner.name:
            names["broker"] = owner.name
        names["config" if owner.name else "broker-config"] = entry.name
        return self.entity(call, owner.document_kind, (here, *owner.path, entry.name), names, fields)


def _topic_owner(name: str) -> Owner:
    return Owner(ResourceKind.TOPIC, name, ("topics", name, "configs"), {"topic_name": name}, "KafkaTopicConfig")


def _broker_owner(number: int) -> Owner:
    fields = {"broker_id": number}
    path = ("brokers", number, "configs")
    return Owner(ResourceKind.BROKER, str(number), path, fields, "KafkaBrokerConfig", broker_id=number)


def _changes(document: Mapping[str, Any]) -> tuple[dict[str, str], list[str], bool]:
    """What to set, what to reset, and whether only to check it."""
    listed = document.get("data")
    if not isinstance(listed, list) or not listed:
        raise titled(400, "data must be a list of changes.")
    added: dict[str, str] = {}
    deleted: list[str] = []
    for one in listed:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not one["name"]:
            raise titled(400, "Every change needs the name of a config.")
        name, value, operation = one["name"], one.get("value"), one.get("operation") or "SET"
        if name in added or name in deleted:
            raise RestError(40002, f"Config {name} is changed twice in one request.")
        if not isinstance(operation, str) or operation.upper() not in ("SET", "DELETE"):
            raise titled(400, f"The operation of config {name} must be SET or DELETE.")
        if operation.upper() == "DELETE" or value is None:
            deleted.append(name)
        elif isinstance(value, str):
            added[name] = value
        else:
            raise titled(400, f"The value of config {name} must be a string.")
    return added, deleted, document.get("validate_only") is True
