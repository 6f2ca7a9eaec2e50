"""The side-by-side benchmark: Apache Kafka and moldau on one machine, one client, the same work in turns.

Numbers for people, never a test: nothing here fails a build. Run it with `scripts/bench`; start reading at
`bench.__main__`, then `bench.workloads` for what is measured and `bench.goals` for what we want to see.
"""
