"""Puts a node together: settings become objects, which are started, watched and stopped. Start at `node.Node`."""
