"""Produces a JSON record over version 2 of the API."""

import json
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
url = f"{server}/topics/hello_world_topic"
headers = {"Content-Type": "application/vnd.kafka.json.v2+json"}
payload = {"records": [{"key": "firstkey", "value": "firstvalue"}]}
r = requests.post(url, data=json.dumps(payload), headers=headers)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
