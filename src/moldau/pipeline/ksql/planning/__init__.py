"""Queries as pipelines: an analysed query becomes nodes of `pipeline.ir`. Start at `query_plan`."""
