"""Rewrites: functions from the nodes of a pipeline to the nodes of an equivalent one, a module each.

The graph traversal that they share is in `rebuilding`.
"""
