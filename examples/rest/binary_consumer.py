"""Reads records over version 1 of the API, commits them by hand, and deletes the consumer instance."""

import base64
import json
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
baseurl = f"{server}/consumers/group1"


def should_commit(messages: list) -> bool:  # type: ignore[type-arg]
    """The program's own decision: here, whether there is anything to commit."""
    return bool(messages)


print("Creating consumer instance")
payload = {"format": "binary", "enable.auto.commit": "false"}
headers = {"Content-Type": "application/vnd.kafka.v1+json"}
r = requests.post(baseurl, data=json.dumps(payload), headers=headers)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
    sys.exit("Error thrown while creating consumer")

# The base URI identifies the consumer instance
base_uri = r.json()["base_uri"]

r = requests.get(base_uri + "/topics/my_topic", headers={"Accept": "application/vnd.kafka.binary.v1+json"}, timeout=20)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
    sys.exit("Error thrown while getting message")

messages = r.json()
for message in messages:
    if message["key"] is not None:
        print("Message Key:" + base64.b64decode(message["key"]).decode())
    print("Message Value:" + base64.b64decode(message["value"]).decode())

if should_commit(messages):
    r = requests.post(base_uri + "/offsets", headers=headers, timeout=20)
    if r.status_code != 200:
        print("Status Code: " + str(r.status_code))
        print(r.text)
        sys.exit("Error thrown while committing")
    print("Committed")

r = requests.delete(base_uri, headers={"Accept": "application/vnd.kafka.v1+json"})
if r.status_code != 204:
    print("Status Code: " + str(r.status_code))
    print(r.text)
