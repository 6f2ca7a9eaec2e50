"""Produces an Avro record over version 1 of the API: the schemas travel with the first request."""

import json
import sys
from pathlib import Path

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
here = Path(__file__).parent
key_schema = (here / "my_key.avsc").read_text()
value_schema = (here / "my_value.avsc").read_text()

producerurl = f"{server}/topics/my_avro_topic"
headers = {"Content-Type": "application/vnd.kafka.avro.v1+json"}
payload = {
    "key_schema": key_schema,
    "value_schema": value_schema,
    "records": [{"key": {"suit": "spades"}, "value": {"suit": "spades", "card": "ace"}}],
}
r = requests.post(producerurl, data=json.dumps(payload), headers=headers)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
