"""Puts a node together: settings become objects, which are started, watched and stopped. Runs other services too.

Start at `node.Node`, and at `services.run_services` for a service that is no node.
"""
