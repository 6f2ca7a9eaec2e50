"""Rewrites: nodes in, an equal pipeline of other nodes out; a module each, small functions.

What walks the graph for all of them is in `rebuilding`.
"""
