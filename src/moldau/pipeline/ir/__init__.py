"""The description of a pipeline: frozen nodes that say what to do and nothing about how.

Front ends build them, rewrites turn them into simpler ones, engines run them. Start at `nodes`.
"""
