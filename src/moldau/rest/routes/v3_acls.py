"""ACLs in version 3: a cluster without an authorizer refuses them with 40002. Start at `Acls`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from moldau.client.admin import Admin
from moldau.client.errors import ClientError, client_error
from moldau.core.errors import ErrorCode
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, text
from moldau.rest.errors import RestError, titled
from moldau.rest.routes import documents
from moldau.rest.routes.resource import body_object
from moldau.rest.routes.v3_resource import V3Resource

__all__ = ["Acls"]

Found = TypeVar("Found")
NO_AUTHORIZER = 40002
RESOURCES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN")
OPERATIONS = (
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
)
WORDS = {
    "resource_type": RESOURCES,
    "pattern_type": ("LITERAL", "PREFIXED"),
    "operation": OPERATIONS,
    "permission": ("ALLOW", "DENY"),
}
FIELDS = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
NEEDED_TO_DELETE = ("resource_type", "pattern_type", "operation", "permission")


class Acls(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        filters = tuple(text(name, "Which ACLs are meant; any unless given.") for name in FIELDS)
        yield self.row("GET", "/acls", self.search, "ACLs that match.", parameters=filters)
        yield self.row(
            "POST", "/acls", self.create, "Create an ACL.", body=documents.CREATE_ACL, status=201, reply=None
        )
        yield self.row("DELETE", "/acls", self.delete, "Delete ACLs.", parameters=filters, reply=documents.OBJECT)
        yield self.row(
            "POST", "/acls:batch", self.create_batch, "Create ACLs.", body=documents.CREATE_ACLS, status=201, reply=None
        )

    async def search(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        wanted = _filter(call)

        def ask(admin: Admin) -> Any:
            return _found(admin, admin.client.describe_acls(_filter_binding(wanted), request_timeout=admin.timeout_s))

        found = await self._ask(ask)
        data = [self._acl(call, here, one) for one in found]
        return self.listing(call, "KafkaAclList", (here, "acls"), data)

    async def create(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        wanted = _new_acl(await body_object(call))
        await self._create([wanted])
        location = f"{self.url(call, (here, 'acls'))}?{urlencode(wanted)}"
        return Answer(content=b"", status=201, headers={"location": location})

    async def create_batch(self, call: Call) -> Answer:
        await self.cluster_id(call)
        listed = (await body_object(call)).get("data")
        if not isinstance(listed, list) or not listed:
            raise titled(400, "data must be a list of ACLs.")
        await self._create([_new_acl(one) for one in listed])
        return Answer(content=b"", status=201)

    async def delete(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        for name in NEEDED_TO_DELETE:
            if not call.text(name):
                raise titled(400, f"{name} is needed to delete ACLs.")
        wanted = _filter(call)

        def ask(admin: Admin) -> list[Any]:
            futures = admin.client.delete_acls([_filter_binding(wanted)], request_timeout=admin.timeout_s)
            return [one for found in futures.values() for one in _found(admin, found)]

        return Answer({"data": [self._acl(call, here, one) for one in await self._ask(ask)]})

    async def _create(self, wanted: list[Mapping[str, str]]) -> None:
        def ask(admin: Admin) -> None:
            bindings = [_new_binding(one) for one in wanted]
            admin.wait_for_all(admin.client.create_acls(bindings, request_timeout=admin.timeout_s))

        await self._ask(ask)

    async def _ask(self, question: Callable[[Admin], Found]) -> Found:
        try:
            return await self.proxy.cluster.ask(question)
        except ClientError as error:
            # What librdkafka says of it is about the age of brokers.
            if error.error_code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            raise RestError(NO_AUTHORIZER, "No Authorizer is configured: this cluster has no ACLs.") from None

    def _acl(self, call: Call, here: str, one: Any) -> dict[str, Any]:
        resource = "CLUSTER" if one.restype.name == "BROKER" else one.restype.name
        values = {
            "resource_type": resource,
            "resource_name": one.name,
            "pattern_type": one.resource_pattern_type.name,
            "principal": one.principal,
            "host": one.host,
            "operation": one.operation.name,
            "permission": one.permission_type.name,
        }
        document = self.entity(call, "KafkaAcl", (here, "acls"), {"kafka": here, "acl": resource}, {})
        document["metadata"]["self"] += f"?{urlencode(values)}"
        return {**document, "cluster_id": here, **values}


def _found(admin: Admin, future: Any) -> list[Any]:
    found: list[Any] = admin.wait_for(future)
    return found


def _filter(call: Call) -> dict[str, str | None]:
    wanted: dict[str, str | None] = {}
    for name in FIELDS:
        given = call.text(name) or None
        if name in WORDS and given is not None:
            given = given.upper()
            others = ("ANY", "MATCH") if name == "pattern_type" else ("ANY",)
            if given not in (*WORDS[name], *others):
                raise titled(400, f"{name}={given} is not one of {', '.join((*WORDS[name], *others))}.")
        wanted[name] = given
    return wanted


def _new_acl(document: Any) -> dict[str, str]:
    if not isinstance(document, dict):
        raise titled(400, "An ACL is an object.")
    wanted: dict[str, str] = {}
    for name in FIELDS:
        given = document.get(name)
        if not isinstance(given, str) or not given:
            raise titled(400, f"{name} is missing, or is not text.")
        if name in WORDS:
            given = given.upper()
            if given not in WORDS[name]:
                raise titled(400, f"{name}={given} is not one of {', '.join(WORDS[name])}.")
        wanted[name] = given
    if wanted["resource_type"] == "CLUSTER" and wanted["resource_name"] != "kafka-cluster":
        raise RestError(40002, "The resource_name of a CLUSTER ACL must be kafka-cluster.")
    return wanted


def _filter_binding(wanted: Mapping[str, str | None]) -> Any:
    from confluent_kafka.admin import AclBindingFilter

    return _binding(AclBindingFilter, wanted)


def _new_binding(wanted: Mapping[str, str]) -> Any:
    from confluent_kafka.admin import AclBinding

    return _binding(AclBinding, wanted)


def _binding(kind: Any, wanted: Mapping[str, str | None]) -> Any:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    resource = wanted["resource_type"] or "ANY"
    if resource == "DELEGATION_TOKEN":
        raise ClientError("ACLs of delegation tokens cannot be managed here", ErrorCode.UNSUPPORTED_VERSION)
    try:
        return kind(
            ResourceType["BROKER" if resource == "CLUSTER" else resource],
            wanted["resource_name"],
            ResourcePatternType[wanted["pattern_type"] or "ANY"],
            wanted["principal"],
            wanted["host"],
            AclOperation[wanted["operation"] or "ANY"],
            AclPermissionType[wanted["permission"] or "ANY"],
        )
    except KafkaException as error:
        raise client_error(error.args[0]) from None
    except (KeyError, ValueError, TypeError) as error:
        raise ClientError(f"This ACL cannot be expressed: {error}", ErrorCode.INVALID_REQUEST) from None
