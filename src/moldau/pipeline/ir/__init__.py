"""The intermediate representation (IR) of a pipeline: frozen nodes that say what to do, independent of the engine.

Front ends build them, rewrites turn them into simpler ones, engines run them. Start at `nodes`.
"""
