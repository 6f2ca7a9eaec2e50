"""Reads Avro records over version 1 of the API."""

import json
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
r = requests.post(
    f"{server}/consumers/avro_group",
    data=json.dumps({"format": "avro"}),
    headers={"Content-Type": "application/vnd.kafka.v1+json"},
)
base_uri = r.json()["base_uri"]

headers = {"Accept": "application/vnd.kafka.avro.v1+json"}
r = requests.get(base_uri + "/topics/my_avro_topic", headers=headers, timeout=20)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
    sys.exit("Error thrown while getting message")
for message in r.json():
    keysuit = message["key"]["suit"]
    valuesuit = message["value"]["suit"]
    valuecard = message["value"]["card"]
    print(f"{keysuit}: {valuecard} of {valuesuit}")
requests.delete(base_uri)
