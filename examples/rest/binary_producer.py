"""Produces a record over version 1 of the API: key and value in base64."""

import base64
import json
import sys

import requests

server = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8082"
url = f"{server}/topics/my_topic"
headers = {"Content-Type": "application/vnd.kafka.binary.v1+json"}
payload = {
    "records": [
        {
            "key": base64.b64encode(b"firstkey").decode(),
            "value": base64.b64encode(b"firstvalue").decode(),
        }
    ]
}
r = requests.post(url, data=json.dumps(payload), headers=headers)
if r.status_code != 200:
    print("Status Code: " + str(r.status_code))
    print(r.text)
