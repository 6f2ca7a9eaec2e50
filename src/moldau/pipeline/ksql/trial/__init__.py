"""Statements tried out in memory: topics and a registry without servers, and records given as JSON.

`ksql-test-runner` and the conformance cases use it. Start at `records.input_record`.
"""
