"""The engine: a topology becomes one Spark query whose batches run the same cores as the test driver.

With Connect's adapters this is the only place that imports `pyspark`, and only when a pipeline is made. Start at
`compiler.compile_topology`; `host` is what runs inside Spark's Python workers, `explain` says which path each node
takes.
"""
