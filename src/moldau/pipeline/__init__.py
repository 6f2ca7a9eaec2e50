"""Pipelines: what people describe in `dsl` (or SQL) becomes nodes of `ir`, decided by `cores`, run by `spark`.

Start at `ir.nodes`, the words that all of them share.
"""
