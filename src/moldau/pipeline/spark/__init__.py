"""The Spark engine: compiles a topology into one Spark query whose batches run the same cores as the test driver.

Besides Connect's adapters this is the only package that imports `pyspark`, and only when a pipeline is created. Start
at `compiler.compile_topology`; `hosted.host` runs inside Spark's Python workers, `explain` shows how each node runs.
"""
