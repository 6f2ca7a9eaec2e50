"""The semantics of pipelines: per-record operators with state, in pure Python, without engine or clock.

Each operator gives the results of Kafka Streams. `task.Task` runs a sub-topology on one partition; the test driver and
Spark host the same tasks. Start at `task`, then `processor` and `builders`.
"""
