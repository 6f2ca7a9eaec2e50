"""Subscribes and reads JSON records over version 2 of the API."""

import json
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
FORMAT = "application/vnd.kafka.v2+json"
POST_HEADERS = {"Content-Type": FORMAT}
GET_HEADERS = {"Accept": FORMAT}


def create_consumer_instance(group_name: str, instance_name: str) -> str:
    url = f"{server}/consumers/{group_name}"
    payload = {"name": instance_name, "format": "json"}
    r = requests.post(url, data=json.dumps(payload), headers=POST_HEADERS)
    if r.status_code != 200:
        print("Status Code: " + str(r.status_code))
    return str(r.json()["base_uri"])


def subscribe_to_topic(base_uri: str, topic: str) -> None:
    r = requests.post(base_uri + "/subscription", data=json.dumps({"topics": [topic]}), headers=POST_HEADERS)
    if r.status_code != 204:
        print("Status Code: " + str(r.status_code))


def consume_messages(base_uri: str) -> None:
    r = requests.get(base_uri + "/records", headers=GET_HEADERS, timeout=20)
    if r.status_code != 200:
        sys.exit("Status Code: " + str(r.status_code) + " " + r.text)
    for message in r.json():
        print(message["key"], message["value"])


def delete_consumer(base_uri: str) -> None:
    r = requests.delete(base_uri, headers=POST_HEADERS)
    if r.status_code != 204:
        print("Status Code: " + str(r.status_code))


base_uri = create_consumer_instance("group1", "my_consumer")
subscribe_to_topic(base_uri, "hello_world_topic")
consume_messages(base_uri)
delete_consumer(base_uri)
