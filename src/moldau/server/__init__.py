"""Builds a node from its settings, then starts, monitors and stops it. Also runs other services.

Start at `node.Node`, and at `services.run.run_services` for a service that is not a node.
"""
