"""Version 3, call by call, but for producing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.rest.talk import V2, Talk, embedded

JSON = "application/json"


def alter(talk: Talk, path: str, *changes: dict[str, Any], **more: Any) -> int:
    return talk("POST", f"{talk.cluster}{path}", {"data": list(changes), **more}, content=JSON).status


def test_clusters_and_brokers(talk: Talk) -> None:
    listed = talk("GET", "/v3/clusters")
    assert listed.headers["content-type"] == JSON
    assert listed.document["kind"] == "KafkaClusterList"
    assert listed.document["metadata"] == {"self": f"{talk.url}/v3/clusters", "next": None}
    cluster = listed.document["data"][0]
    number = cluster["cluster_id"]
    assert cluster["metadata"]["resource_name"] == f"crn:///kafka={number}"
    assert talk("GET", f"/v3/clusters/{number}").document == cluster
    for link in ("acls", "brokers", "broker_configs", "consumer_groups", "topics", "partition_reassignments"):
        assert cluster[link]["related"].startswith(f"{talk.url}/v3/clusters/{number}/")
    brokers = talk("GET", cluster["brokers"]["related"]).document
    broker = brokers["data"][0]
    assert (brokers["kind"], broker["kind"], broker["host"]) == ("KafkaBrokerList", "KafkaBroker", "127.0.0.1")
    assert talk("GET", f"/v3/clusters/{number}/brokers/{broker['broker_id']}").document == broker
    topic = talk.new_topic()
    replicas = talk("GET", broker["partition_replicas"]["related"]).document
    assert replicas["kind"] == "KafkaReplicaList"
    assert topic in {replica["topic_name"] for replica in replicas["data"]}


def test_unknown_resources(talk: Talk) -> None:
    other = talk("GET", "/v3/clusters/other/topics")
    assert (other.status, other.code) == (404, 404)
    assert other.document["message"] == "Not Found: Cluster other cannot be found."
    cluster, topic = talk.cluster, talk.new_topic()
    for path, code in {
        "/brokers/99": 404,
        "/brokers/x": 404,
        "/topics/not-there": 40403,
        "/topics/not-there/configs": 40403,
        f"/topics/{topic}/partitions/-1": 40402,
        f"/topics/{topic}/partitions/9/offset": 40402,
        f"/topics/{topic}/configs/nothing": 404,
        f"/topics/{topic}/partitions/0/replicas/99": 404,
        f"/topics/{topic}/partitions/0/reassignment": 404,
        "/consumer-groups/nobody": 40405,
        "/consumer-groups/nobody/lag-summary": 40405,
    }.items():
        answer = talk("GET", f"{cluster}{path}")
        assert (answer.status, answer.code) == (404, code), path


def test_a_topics_life(talk: Talk) -> None:
    cluster, name = talk.cluster, talk.new_name()
    number = cluster.rpartition("/")[2]
    body = {
        "topic_name": name,
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    checked = talk("POST", f"{cluster}/topics", {**body, "validate_only": True}, content=JSON)
    assert (checked.status, checked.document["partitions_count"]) == (200, 2)
    assert talk("GET", f"{cluster}/topics/{name}").code == 40403
    created = talk("POST", f"{cluster}/topics", body, content=JSON)
    assert created.status == 201
    assert created.headers["location"] == f"{talk.url}{cluster}/topics/{name}"
    assert created.document["metadata"]["resource_name"] == f"crn:///kafka={number}/topic={name}"
    shown = talk("GET", f"{cluster}/topics/{name}").document
    assert (shown["partitions_count"], shown["replication_factor"], shown["is_internal"]) == (2, 1, False)
    again = talk("POST", f"{cluster}/topics", body, content=JSON)
    assert (again.status, again.code) == (400, 40002)
    grown = talk("PATCH", f"{cluster}/topics/{name}", {"partitions_count": 3}, content=JSON)
    assert (grown.status, grown.document["partitions_count"]) == (200, 3)
    assert talk("PATCH", f"{cluster}/topics/{name}", {"partitions_count": 1}, content=JSON).code == 40002
    assert name in {topic["topic_name"] for topic in talk("GET", f"{cluster}/topics").document["data"]}
    allowed = talk("GET", f"{cluster}/topics/{name}?include_authorized_operations=true").document
    assert "READ" in allowed["authorized_operations"]
    assert talk("DELETE", f"{cluster}/topics/{name}").status == 204
    assert talk("DELETE", f"{cluster}/topics/{name}").code == 40403


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, 400),
        ({"topic_name": "a b"}, 422, 42206),
        ({"topic_name": ".."}, 422, 42206),
        ({"topic_name": 3}, 422, 42206),
        ({"topic_name": "t", "partitions_count": 0}, 400, 40002),
        ({"topic_name": "t", "partitions_count": "2"}, 400, 400),
        ({"topic_name": "t", "replication_factor": 99}, 400, 40002),
        ({"topic_name": "t", "configs": [{"name": "no.such.config", "value": "1"}]}, 400, 40002),
        ({"topic_name": "t", "configs": [{"name": "retention.ms", "value": "soon"}]}, 400, 40002),
        ({"topic_name": "t", "replicas_assignments": {"1": [0]}}, 400, 400),
        ({"topic_name": "t", "replicas_assignments": {"0": [77]}}, 400, 40002),
    ],
)
def test_topics_that_cannot_be_created(talk: Talk, body: Any, status: int, code: int) -> None:
    answer = talk("POST", f"{talk.cluster}/topics", body, content=JSON)
    assert (answer.status, answer.code) == (status, code), answer.document


def test_a_topic_with_assigned_replicas(talk: Talk) -> None:
    cluster, name = talk.cluster, talk.new_name()
    broker = talk("GET", f"{cluster}/brokers").document["data"][0]["broker_id"]
    body = {"topic_name": name, "replicas_assignments": {"0": [broker], "1": [broker]}}
    assert talk("POST", f"{cluster}/topics", body, content=JSON).document["partitions_count"] == 2


def test_partitions_replicas_and_offsets(talk: Talk) -> None:
    cluster, topic = talk.cluster, talk.new_topic(partitions=2)
    listed = talk("GET", f"{cluster}/topics/{topic}/partitions").document
    assert (listed["kind"], len(listed["data"])) == ("KafkaPartitionList", 2)
    one = talk("GET", f"{cluster}/topics/{topic}/partitions/1").document
    assert one == listed["data"][1]
    replicas = talk("GET", one["replicas"]["related"]).document["data"]
    assert [(replica["is_leader"], replica["is_in_sync"]) for replica in replicas] == [(True, True)]
    assert talk("GET", one["leader"]["related"]).document == replicas[0]
    talk.produce(topic, 1, 2, kind="json")
    offsets = [
        talk("GET", f"{cluster}/topics/{topic}/partitions/{number}/offset?offset_type=earliest_and_latest").document
        for number in (0, 1)
    ]
    assert sum(one["latest_offset"] for one in offsets) == 2
    assert {one["earliest_offset"] for one in offsets} == {0}
    assert talk("GET", f"{cluster}/topics/{topic}/partitions/0/offset?offset_type=latest").status == 400


def test_reassignments(talk: Talk) -> None:
    cluster, topic = talk.cluster, talk.new_topic()
    for path in (f"/topics/{topic}/partitions/-/reassignment", "/topics/-/partitions/-/reassignment"):
        found = talk("GET", f"{cluster}{path}").document
        assert (found["kind"], found["data"]) == ("KafkaReassignmentList", [])


def test_configs_of_topics(talk: Talk) -> None:
    cluster, topic = talk.cluster, talk.new_topic()
    path = f"{cluster}/topics/{topic}/configs"
    found = talk("GET", f"{path}/retention.ms").document
    assert (found["kind"], found["value"], found["is_default"]) == ("KafkaTopicConfig", "604800000", True)
    assert talk("PUT", f"{path}/retention.ms", {"value": "1000000"}, content=JSON).status == 204
    found = talk("GET", f"{path}/retention.ms").document
    assert (found["value"], found["source"]) == ("1000000", "DYNAMIC_TOPIC_CONFIG")
    assert found["synonyms"][0] == {"name": "retention.ms", "value": "1000000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert talk("PUT", f"{path}/retention.ms", {"value": "soon"}, content=JSON).code == 40002
    assert talk("PUT", f"{path}/no.such", {"value": "1"}, content=JSON).code == 404
    assert talk("DELETE", f"{path}/retention.ms").status == 204
    assert talk("GET", f"{path}/retention.ms").document["is_default"] is True
    assert "cleanup.policy" in {one["name"] for one in talk("GET", path).document["data"]}


def test_configs_are_altered_together_or_not_at_all(talk: Talk) -> None:
    topic = talk.new_topic(cleanup_policy="compact")
    path = f"/topics/{topic}/configs"
    good, bad = {"name": "retention.ms", "value": "1"}, {"name": "segment.bytes", "value": "many"}
    assert alter(talk, f"{path}:alter", good, bad) == 400
    assert talk("GET", f"{talk.cluster}{path}/retention.ms").document["is_default"] is True
    assert alter(talk, f"{path}:alter", good, validate_only=True) == 204
    assert talk("GET", f"{talk.cluster}{path}/retention.ms").document["is_default"] is True
    assert alter(talk, f"{path}:alter", good, {"name": "cleanup.policy", "operation": "DELETE"}) == 204
    assert talk("GET", f"{talk.cluster}{path}/retention.ms").document["value"] == "1"
    assert talk("GET", f"{talk.cluster}{path}/cleanup.policy").document["value"] == "delete"
    assert alter(talk, f"{path}:alter") == 400
    assert alter(talk, f"{path}:alter", {"name": "x", "operation": "ADD"}) == 400


def test_configs_of_all_topics(talk: Talk) -> None:
    topic = talk.new_topic()
    listed = talk("GET", f"{talk.cluster}/topics/-/configs").document["data"]
    assert topic in {one["topic_name"] for one in listed}
    assert alter(talk, "/topics/-/configs:alter", {"name": "retention.ms", "value": "x"}) == 400
    change = {"name": "max.message.bytes", "value": "1048000"}
    assert alter(talk, "/topics/-/configs:alter", change, validate_only=True) == 204


def test_configs_of_brokers_and_of_the_cluster(talk: Talk) -> None:
    cluster = talk.cluster
    broker = talk("GET", f"{cluster}/brokers").document["data"][0]
    own = talk("GET", f"{broker['configs']['related']}/log.retention.ms")
    assert own.document["kind"] == "KafkaBrokerConfig"
    listed = talk("GET", f"{cluster}/brokers/-/configs").document
    assert "num.partitions" in {one["name"] for one in listed["data"]}
    name = "log.cleaner.backoff.ms"
    path = f"{cluster}/broker-configs"
    assert talk("PUT", f"{path}/{name}", {"value": "15001"}, content=JSON).status == 204
    found = talk("GET", f"{path}/{name}").document
    assert (found["kind"], found["config_type"], found["value"]) == ("KafkaClusterConfig", "BROKER", "15001")
    assert talk("DELETE", f"{path}/{name}").status == 204
    assert name not in {one["name"] for one in talk("GET", path).document["data"]}
    assert alter(talk, "/broker-configs:alter", {"name": name, "value": "15002"}) == 204
    assert alter(talk, "/broker-configs:alter", {"name": name, "operation": "DELETE"}) == 204
    assert talk("PUT", f"{path}/broker.id", {"value": "9"}, content=JSON).code == 40002
    of_broker = f"/brokers/{broker['broker_id']}/configs"
    assert alter(talk, f"{of_broker}:alter", {"name": name, "value": "15003"}) == 204
    assert talk("GET", f"{cluster}{of_broker}/{name}").document["value"] == "15003"
    assert talk("DELETE", f"{cluster}{of_broker}/{name}").status == 204


def test_groups_members_and_lags(talk: Talk) -> None:
    """The contract's tenth scenario among them."""
    cluster, topic, group = talk.cluster, talk.new_topic(), talk.new_name("group")
    talk.produce(topic, *range(4))
    uri = talk.instance(group=group, format="json", auto_commit_enable="false")
    talk("POST", f"{uri}/subscription", {"topics": [topic]}, content=V2)
    talk.read(uri, 4, accept=embedded("json"))
    talk("POST", f"{uri}/offsets", content=V2)
    talk.produce(topic, *range(10))
    path = f"{cluster}/consumer-groups/{group}"
    found = talk("GET", path).document
    assert (found["state"], found["type"], found["is_simple"]) == ("STABLE", "CLASSIC", False)
    listed = {one["consumer_group_id"]: one for one in talk("GET", f"{cluster}/consumer-groups").document["data"]}
    assert listed[group] == found
    members = talk("GET", found["consumers"]["related"]).document["data"]
    assert [member["client_id"] for member in members] == [uri.rpartition("/")[2]]
    member = talk("GET", f"{path}/consumers/{members[0]['consumer_id']}").document
    assert member == members[0]
    assignments = talk("GET", member["assignments"]["related"]).document["data"]
    assert [(one["topic_name"], one["partition_id"]) for one in assignments] == [(topic, 0)]
    assert talk("GET", assignments[0]["metadata"]["self"]).document == assignments[0]
    lag = talk("GET", assignments[0]["lag"]["related"]).document
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (4, 14, 10)
    assert talk("GET", f"{path}/lags").document["data"] == [lag]
    summary = talk("GET", found["lag_summary"]["related"]).document
    assert (summary["total_lag"], summary["max_lag"], summary["max_lag_topic_name"]) == (10, 10, topic)
    assert summary["max_lag_consumer_id"] == member["consumer_id"]
    assert talk("GET", f"{path}/consumers/nobody").status == 404


def test_acls_need_an_authorizer(talk: Talk) -> None:
    path = f"{talk.cluster}/acls"
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "t",
        "pattern_type": "LITERAL",
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    for answer in (
        talk("GET", path),
        talk("GET", f"{path}?resource_type=topic&pattern_type=match"),
        talk("POST", path, acl, content=JSON),
        talk("POST", f"{path}:batch", {"data": [acl]}, content=JSON),
        talk("DELETE", f"{path}?resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY"),
        talk("POST", path, {**acl, "resource_type": "CLUSTER"}, content=JSON),
    ):
        assert (answer.status, answer.code) == (400, 40002), answer
    assert talk("DELETE", path).code == 400
    assert talk("GET", f"{path}?operation=JUMP").code == 400
    assert talk("POST", path, {}, content=JSON).code == 400
