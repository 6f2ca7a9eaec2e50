"""Clusters, brokers, topics, partitions, replicas and reassignments of version 3. Start at `ClusterResources`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.client.admin import ClusterDescription, Node, PartitionDescription, TopicDescription
from moldau.client.wire_admin import Reassignment, list_reassignments
from moldau.core.ids import TopicPartition
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, flag, text
from moldau.rest.errors import RestError, titled
from moldau.rest.routes import documents
from moldau.rest.routes.resource import MAX_INT32, body_object
from moldau.rest.routes.v3_resource import V3Resource, broker_number

__all__ = ["ClusterResources"]

PAYLOAD_ERROR = 42206
LINKS = ("acls", "brokers", "broker_configs", "consumer_groups", "topics")


class ClusterResources(V3Resource):
    def endpoints(self) -> Iterator[Endpoint]:
        row = self.row
        yield Endpoint(
            method="GET",
            path="/v3/clusters",
            handle=self.clusters,
            summary="The cluster that this proxy serves.",
            reply=documents.OBJECT,
            tag=self.tag,
        )
        yield row("GET", "", self.cluster, "A cluster.")
        yield row("GET", "/brokers", self.brokers, "The brokers.")
        yield row("GET", "/brokers/{broker_id}", self.broker, "A broker.")
        yield row("GET", "/brokers/{broker_id}/partition-replicas", self.broker_replicas, "Replicas of a broker.")
        yield row("GET", "/topics", self.topics, "The topics.")
        yield row("POST", "/topics", self.create, "Create a topic.", body=documents.CREATE_TOPIC, status=201)
        topic = "/topics/{topic_name}"
        operations = flag("include_authorized_operations", "Whether to list what the client may do.")
        yield row("GET", topic, self.show, "A topic.", parameters=(operations,))
        yield row("PATCH", topic, self.update, "Add partitions.", body=documents.UPDATE_TOPIC)
        yield row("DELETE", topic, self.delete, "Delete a topic.", status=204)
        yield row("GET", f"{topic}/partitions", self.partitions, "The partitions of a topic.")
        one = f"{topic}/partitions/{{partition_id}}"
        yield row("GET", one, self.show_partition, "A partition.")
        kind = text("offset_type", "earliest_and_latest", default="earliest_and_latest")
        yield row("GET", f"{one}/offset", self.offsets, "First and next offset.", parameters=(kind,))
        yield row("GET", f"{one}/replicas", self.replicas, "The replicas of a partition.")
        yield row("GET", f"{one}/replicas/{{broker_id}}", self.replica, "A replica.")
        yield row("GET", f"{one}/reassignment", self.reassignment, "The reassignment of a partition.")
        yield row("GET", f"{topic}/partitions/-/reassignment", self.topic_reassignments, "Those of a topic.")
        yield row("GET", "/topics/-/partitions/-/reassignment", self.reassignments, "All reassignments.")

    # Clusters and brokers

    async def clusters(self, call: Call) -> Answer:
        found = await self.proxy.cluster.description()
        return self.listing(call, "KafkaClusterList", (), [self._cluster(call, found)])

    async def cluster(self, call: Call) -> Answer:
        await self.cluster_id(call)
        return Answer(self._cluster(call, await self.proxy.cluster.description()))

    def _cluster(self, call: Call, found: ClusterDescription) -> dict[str, Any]:
        here = found.cluster_id
        fields: dict[str, Any] = {"cluster_id": here}
        if found.controller_id is not None:
            fields["controller"] = self.related(call, (here, "brokers", found.controller_id))
        fields |= {name: self.related(call, (here, name.replace("_", "-"))) for name in LINKS}
        fields["partition_reassignments"] = self.related(call, (here, "topics", "-", "partitions", "-", "reassignment"))
        return self.entity(call, "KafkaCluster", (here,), {"kafka": here}, fields)

    async def brokers(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        found = await self.proxy.cluster.description()
        data = [self._broker(call, here, node) for node in found.nodes]
        return self.listing(call, "KafkaBrokerList", (here, "brokers"), data)

    async def broker(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        return Answer(self._broker(call, here, await self._node(call)))

    async def _node(self, call: Call) -> Node:
        wanted = broker_number(call.parts["broker_id"])
        for node in (await self.proxy.cluster.description()).nodes:
            if node.id == wanted:
                return node
        raise titled(404, f"Broker {call.parts['broker_id']} cannot be found.")

    def _broker(self, call: Call, here: str, node: Node) -> dict[str, Any]:
        path = (here, "brokers", node.id)
        fields = {
            "cluster_id": here,
            "broker_id": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "configs": self.related(call, (*path, "configs")),
            "partition_replicas": self.related(call, (*path, "partition-replicas")),
        }
        return self.entity(call, "KafkaBroker", path, {"kafka": here, "broker": node.id}, fields)

    async def broker_replicas(self, call: Call) -> Answer:
        here, node = await self.cluster_id(call), await self._node(call)
        data = [
            self._replica(call, here, topic.name, partition, node.id)
            for topic in await self.proxy.cluster.topics()
            for partition in topic.partitions
            if node.id in partition.replicas
        ]
        return self.listing(call, "KafkaReplicaList", (here, "brokers", node.id, "partition-replicas"), data)

    # Topics

    async def topics(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        data = [self._topic(call, here, topic) for topic in await self.proxy.cluster.topics()]
        return self.listing(call, "KafkaTopicList", (here, "topics"), data)

    async def show(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        return Answer(self._topic(call, here, await self.topic(call)))

    def _topic(self, call: Call, here: str, topic: TopicDescription) -> dict[str, Any]:
        path = (here, "topics", topic.name)
        fields = {
            "cluster_id": here,
            "topic_name": topic.name,
            "is_internal": topic.is_internal,
            "replication_factor": topic.replication_factor,
            "partitions_count": len(topic.partitions),
            "partitions": self.related(call, (*path, "partitions")),
            "configs": self.related(call, (*path, "configs")),
            "partition_reassignments": self.related(call, (*path, "partitions", "-", "reassignment")),
        }
        if call.flag("include_authorized_operations"):
            # Without an authorizer every operation is allowed.
            fields["authorized_operations"] = list(_OPERATIONS)
        return self.entity(call, "KafkaTopic", path, {"kafka": here, "topic": topic.name}, fields)

    async def create(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        document = await body_object(call)
        name = _topic_name(document)
        wanted = _new_topic(document)
        validate_only = document.get("validate_only") is True
        await self.proxy.cluster.ask(lambda admin: admin.create_topic(name, validate_only=validate_only, **wanted))
        location = {"location": self.url(call, (here, "topics", name))}
        if validate_only:
            assignment = wanted.get("replica_assignment") or ()
            count = len(assignment) or wanted.get("partitions") or 0
            replicas = len(assignment[0]) if assignment else wanted.get("replication_factor") or 0
            blank = tuple(PartitionDescription(number, None, (0,) * replicas, ()) for number in range(count))
            checked = TopicDescription(name, "", False, blank)
            return Answer({**self._topic(call, here, checked), "replication_factor": replicas})
        created = await self.proxy.cluster.topic(name)
        return Answer(self._topic(call, here, created), status=201, headers=location)

    async def update(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        count = (await body_object(call)).get("partitions_count")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MAX_INT32:
            raise titled(400, "partitions_count must be a number from 1.")
        topic = await self.topic(call)
        if count != len(topic.partitions):
            await self.proxy.cluster.ask(lambda admin: admin.create_partitions(topic.name, count))
        return Answer(self._topic(call, here, await self.topic(call)))

    async def delete(self, call: Call) -> Answer:
        await self.cluster_id(call)
        topic = await self.topic(call)
        await self.proxy.cluster.ask(lambda admin: admin.delete_topics([topic.name]))
        return Answer(status=204)

    # Partitions and replicas

    async def partitions(self, call: Call) -> Answer:
        here, topic = await self.cluster_id(call), await self.topic(call)
        data = [self._partition(call, here, topic.name, one) for one in topic.partitions]
        return self.listing(call, "KafkaPartitionList", (here, "topics", topic.name, "partitions"), data)

    async def show_partition(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        return Answer(self._partition(call, here, call.parts["topic_name"], await self.partition(call)))

    def _partition(self, call: Call, here: str, topic: str, one: PartitionDescription) -> dict[str, Any]:
        path = (here, "topics", topic, "partitions", one.partition)
        fields: dict[str, Any] = {"cluster_id": here, "topic_name": topic, "partition_id": one.partition}
        if one.leader is not None:
            fields["leader"] = self.related(call, (*path, "replicas", one.leader))
        fields["replicas"] = self.related(call, (*path, "replicas"))
        fields["reassignment"] = self.related(call, (*path, "reassignment"))
        names = {"kafka": here, "topic": topic, "partition": one.partition}
        return self.entity(call, "KafkaPartition", path, names, fields)

    async def offsets(self, call: Call) -> Answer:
        here = await self.cluster_id(call)
        if call.text("offset_type", "earliest_and_latest").lower() != "earliest_and_latest":
            raise titled(400, "offset_type must be earliest_and_latest.")
        topic, partition = call.parts["topic_name"], (await self.partition(call)).partition
        first, following = await self.proxy.cluster.offsets(topic, partition)
        path = (here, "topics", topic, "partitions", partition, "offset")
        fields = {
            "cluster_id": here,
            "topic_name": topic,
            "partition_id": partition,
            "earliest_offset": first,
            "latest_offset": following,
        }
        names = {"kafka": here, "topic": topic, "partition": partition}
        return Answer(self.entity(call, "KafkaPartitionOffset", path, names, fields))

    async def replicas(self, call: Call) -> Answer:
        here, topic, one = await self.cluster_id(call), call.parts["topic_name"], await self.partition(call)
        path = (here, "topics", topic, "partitions", one.partition, "replicas")
        data = [self._replica(call, here, topic, one, broker) for broker in one.replicas]
        return self.listing(call, "KafkaReplicaList", path, data)

    async def replica(self, call: Call) -> Answer:
        here, topic, one = await self.cluster_id(call), call.parts["topic_name"], await self.partition(call)
        broker = broker_number(call.parts["broker_id"])
        if broker is None or broker not in one.replicas:
            raise titled(404, f"Broker {call.parts['broker_id']} has no replica of {topic}-{one.partition}.")
        return Answer(self._replica(call, here, topic, one, broker))

    def _replica(self, call: Call, here: str, topic: str, one: PartitionDescription, broker: int) -> dict[str, Any]:
        fields = {
            "cluster_id": here,
            "topic_name": topic,
            "partition_id": one.partition,
            "broker_id": broker,
            "is_leader": broker == one.leader,
            "is_in_sync": broker in one.isr,
            "broker": self.related(call, (here, "brokers", broker)),
        }
        path = (here, "topics", topic, "partitions", one.partition, "replicas", broker)
        names = {"kafka": here, "topic": topic, "partition": one.partition, "replica": broker}
        return self.entity(call, "KafkaReplica", path, names, fields)

    # Reassignments

    async def reassignments(self, call: Call) -> Answer:
        here, moving = await self.cluster_id(call), await self._moving()
        path = (here, "topics", "-", "partitions", "-", "reassignment")
        return self.listing(call, "KafkaReassignmentList", path, self._moves(call, here, moving))

    async def topic_reassignments(self, call: Call) -> Answer:
        here, topic, moving = await self.cluster_id(call), (await self.topic(call)).name, await self._moving()
        of_topic = {at: move for at, move in moving.items() if at.topic == topic}
        path = (here, "topics", topic, "partitions", "-", "reassignment")
        return self.listing(call, "KafkaReassignmentList", path, self._moves(call, here, of_topic))

    async def reassignment(self, call: Call) -> Answer:
        here, one, moving = await self.cluster_id(call), await self.partition(call), await self._moving()
        at = TopicPartition(call.parts["topic_name"], one.partition)
        if at not in moving:
            raise titled(404, f"Reassignment of {at.topic}-{at.partition} cannot be found: none is under way.")
        return Answer(self._moves(call, here, {at: moving[at]})[0])

    async def _moving(self) -> Mapping[TopicPartition, Reassignment]:
        def ask(admin: Any) -> Mapping[TopicPartition, Reassignment]:
            with admin.wire() as client:
                return list_reassignments(client)

        return await self.proxy.cluster.ask(ask)

    def _moves(self, call: Call, here: str, moving: Mapping[TopicPartition, Reassignment]) -> list[dict[str, Any]]:
        found = []
        for at, move in sorted(moving.items()):
            path = (here, "topics", at.topic, "partitions", at.partition)
            fields = {
                "cluster_id": here,
                "topic_name": at.topic,
                "partition_id": at.partition,
                "adding_replicas": list(move.adding),
                "removing_replicas": list(move.removing),
                "replicas": self.related(call, (*path, "replicas")),
            }
            names = {"kafka": here, "topic": at.topic, "partition": at.partition}
            found.append(self.entity(call, "KafkaReassignment", (*path, "reassignment"), names, fields))
        return found


_OPERATIONS = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")


def _topic_name(document: Mapping[str, Any]) -> str:
    name = document.get("topic_name")
    if name is None:
        raise titled(400, "topic_name is missing.")
    legal = isinstance(name, str) and 0 < len(name) <= 249 and name not in (".", "..")
    if not legal or not all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name):
        raise RestError(PAYLOAD_ERROR, "Payload error. Invalid topic name.")
    return str(name)


def _new_topic(document: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Admin.create_topic`."""
    wanted: dict[str, Any] = {"configs": _configs(document.get("configs"))}
    assignments = document.get("replicas_assignments")
    if assignments:
        wanted["replica_assignment"] = _assignment(assignments)
        return wanted
    for field, name in (("partitions_count", "partitions"), ("replication_factor", "replication_factor")):
        number = document.get(field)
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or abs(number) > MAX_INT32:
            raise titled(400, f"{field} must be a number.")
        if number < 1:
            raise RestError(40002, f"{field}={number}: it must be larger than 0.")
        wanted[name] = number
    return wanted


def _assignment(given: Any) -> list[list[int]]:
    problem = titled(400, 'replicas_assignments must look like {"0": [1, 2]}, with every partition from 0.')
    if not isinstance(given, dict):
        raise problem
    try:
        ordered = [given[str(number)] for number in range(len(given))]
    except KeyError:
        raise problem from None
    for replicas in ordered:
        if not isinstance(replicas, list) or not replicas:
            raise problem
        if not all(type(one) is int and 0 <= one <= MAX_INT32 for one in replicas):
            raise problem
    return ordered


def _configs(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, list):
        raise titled(400, "configs must be a list of objects with name and value.")
    found = {}
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or not one["name"]:
            raise titled(400, "configs must be a list of objects with name and value.")
        value = one.get("value")
        if value is None:
            continue
        if not isinstance(value, str):
            raise titled(400, f"The value of config {one['name']} must be a string.")
        found[one["name"]] = value
    return found
