"""What SQL costs: records a second, latency, pull queries, start, many queries on one server.

Numbers, not tests. Start at `__main__`; what the numbers mean is in README.md.
"""
