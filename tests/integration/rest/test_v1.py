"""Version 1, call by call."""

from __future__ import annotations

from tests.integration.rest.talk import V1, V2, Talk, b64, embedded

BINARY, AVRO, JSON = embedded("binary", 1), embedded("avro", 1), embedded("json", 1)


def test_root_is_an_empty_object(talk: Talk) -> None:
    answer = talk("GET", "/")
    assert (answer.status, answer.document) == (200, {})
    assert answer.headers["content-type"] == V1


def test_topics_partitions_and_brokers(talk: Talk) -> None:
    topic = talk.new_topic(partitions=2)
    assert topic in talk("GET", "/topics", accept=V1).document
    found = talk("GET", f"/topics/{topic}").document
    assert found["name"] == topic
    assert found["configs"]["cleanup.policy"] == "delete"
    brokers = talk("GET", "/brokers").document["brokers"]
    replica = {"broker": brokers[0], "leader": True, "in_sync": True}
    assert found["partitions"][1] == {"partition": 1, "leader": brokers[0], "replicas": [replica]}
    assert talk("GET", f"/topics/{topic}/partitions").document == found["partitions"]
    assert talk("GET", f"/topics/{topic}/partitions/1").document == found["partitions"][1]


def test_unknown_topics_and_partitions(talk: Talk) -> None:
    topic = talk.new_topic()
    missing = talk("GET", "/topics/not-there", accept=V1)
    assert (missing.status, missing.code) == (404, 40401)
    assert talk("GET", "/topics/not-there/partitions").code == 40401
    for number in ("7", "-1", "x", "99999999999"):
        assert talk("GET", f"/topics/{topic}/partitions/{number}").code == 40402


def test_binary_round_trip_with_a_commit(talk: Talk) -> None:
    """The contract's first scenario."""
    topic, group = talk.new_topic(), talk.new_name("group")
    records = [{"key": b64("k"), "value": b64("v")}, {"value": b64("second")}]
    sent = talk("POST", f"/topics/{topic}", {"records": records}, content=BINARY)
    assert sent.status == 200
    assert sent.document == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 0, "offset": 1, "error_code": None, "error": None},
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    settings = {"format": "binary", "auto.offset.reset": "smallest", "auto.commit.enable": "false"}
    created = talk("POST", f"/consumers/{group}", settings, content=V1).document
    uri = created["base_uri"]
    assert uri == f"{talk.url}/consumers/{group}/instances/{created['instance_id']}"
    read = talk.read(uri, 2, f"/topics/{topic}", BINARY)
    assert read == [
        {"topic": topic, "key": b64("k"), "value": b64("v"), "partition": 0, "offset": 0},
        {"topic": topic, "key": None, "value": b64("second"), "partition": 0, "offset": 1},
    ]
    assert talk("GET", f"{uri}/topics/{topic}", accept=BINARY).document == []
    committed = talk("POST", f"{uri}/offsets", content=V1)
    assert committed.document == [{"topic": topic, "partition": 0, "consumed": 1, "committed": 1}]
    gone = talk("DELETE", uri, accept=V1)
    assert (gone.status, gone.document) == (204, None)
    assert talk("GET", f"{uri}/topics/{topic}", accept=BINARY).code == 40403
    talk("POST", f"/topics/{topic}", {"records": [{"value": b64("third")}]}, content=BINARY)
    again = talk.instance(version=1, group=group)
    assert [record["offset"] for record in talk.read(again, 1, f"/topics/{topic}")] == [2]


def test_avro_round_trip_by_text_and_by_id(talk: Talk) -> None:
    """The contract's second scenario."""
    topic = talk.new_topic()
    schema = '{"type":"record","name":"Card","fields":[{"name":"suit","type":["null","string"]}]}'
    value = {"suit": {"string": "spades"}}
    first = talk("POST", f"/topics/{topic}", {"value_schema": schema, "records": [{"value": value}]}, content=AVRO)
    number = first.document["value_schema_id"]
    assert first.document["offsets"][0]["offset"] == 0
    body = {"value_schema_id": number, "records": [{"value": {"suit": None}}]}
    second = talk("POST", f"/topics/{topic}", body, content=AVRO)
    assert second.document["value_schema_id"] == number
    uri = talk.instance(version=1, format="avro")
    assert [one["value"] for one in talk.read(uri, 2, f"/topics/{topic}", AVRO)] == [value, {"suit": None}]


def test_an_instance_reads_one_topic(talk: Talk) -> None:
    topic, other = talk.new_topic(), talk.new_topic()
    uri = talk.instance(version=1)
    assert talk("GET", f"{uri}/topics/not-there", accept=BINARY).code == 40401
    assert talk("GET", f"{uri}/topics/{topic}", accept=BINARY).status == 200
    refused = talk("GET", f"{uri}/topics/{other}", accept=BINARY)
    assert (refused.status, refused.code) == (409, 40901)


def test_instances_are_named_once(talk: Talk) -> None:
    group = talk.new_name("group")
    uri = talk.instance(version=1, group=group, id="mine")
    assert uri.endswith(f"/consumers/{group}/instances/mine")
    refused = talk("POST", f"/consumers/{group}", {"name": "mine"}, content=V1)
    assert (refused.status, refused.code) == (409, 40902)


def test_an_instance_without_a_body_reads_binary_from_the_end(talk: Talk) -> None:
    created = talk("POST", f"/consumers/{talk.new_name('group')}", content=V1)
    assert created.document["instance_id"].startswith("rest-consumer-")
    assert talk("DELETE", created.document["base_uri"]).status == 204


def test_settings_of_instances_are_checked(talk: Talk) -> None:
    def refusal(**settings: object) -> tuple[int, int]:
        body = {name.replace("_", "."): value for name, value in settings.items()}
        answer = talk("POST", "/consumers/g", body, content=V1)
        return answer.status, answer.code

    assert refusal(format="protobuf") == (422, 422)
    assert refusal(format=["binary"]) == (422, 422)
    assert refusal(auto_offset_reset="middle") == (422, 42204)
    assert refusal(auto_commit_enable="perhaps") == (422, 42204)
    assert refusal(name=3) == (422, 422)


def test_messages_by_offset(talk: Talk) -> None:
    topic = talk.new_topic()
    talk.produce(topic, "a", "b", "c", kind="json")
    path = f"/topics/{topic}/partitions/0/messages"
    found = talk("GET", f"{path}?offset=1&count=5", accept=JSON)
    assert found.document == [
        {"key": None, "value": "b", "partition": 0, "offset": 1},
        {"key": None, "value": "c", "partition": 0, "offset": 2},
    ]
    assert [one["value"] for one in talk("GET", f"{path}?offset=0", accept=BINARY).document] == [b64('"a"')]
    assert talk("GET", f"{path}?offset=3", accept=BINARY).document == []
    assert talk("GET", f"{path}?offset=9", accept=BINARY).code == 422
    assert talk("GET", f"{path}?offset=first", accept=BINARY).code == 422
    assert talk("GET", f"/topics/{topic}/partitions/4/messages?offset=0", accept=BINARY).code == 40402
    assert talk("GET", f"{path}?offset=0", accept=embedded("json")).status == 404


def test_plain_json_is_version_1_and_binary(talk: Talk) -> None:
    topic = talk.new_topic()
    for content in ("application/json", "application/vnd.kafka+json", V1, None):
        sent = talk("POST", f"/topics/{topic}", {"records": [{"value": b64("x")}]}, content=content)
        assert sent.document["offsets"][0]["error_code"] is None
    assert talk("POST", f"/topics/{topic}", {"records": [{"value": b64("x")}]}, content=V2).status == 415


def test_producing_to_a_partition(talk: Talk) -> None:
    topic = talk.new_topic(partitions=2)
    path = f"/topics/{topic}/partitions"
    sent = talk("POST", f"{path}/1", {"records": [{"value": 1}]}, content=JSON)
    assert sent.document["offsets"][0]["partition"] == 1
    assert talk("POST", f"{path}/5", {"records": [{"value": 1}]}, content=JSON).code == 40402
    assert talk("POST", f"{path}/1", {"records": [{"value": 1, "partition": 0}]}, content=JSON).code == 422
