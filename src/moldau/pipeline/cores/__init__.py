"""The semantics of pipelines: per-record operators with state, pure Python, no engine and no clock of their own.

What each operator decides is what Kafka Streams would decide. `task.Task` runs a sub-topology on one partition; the
test driver and Spark host the same tasks. Start at `task`, then `processor` and `builders`.
"""
