"""Configs from the command line: `command` is the door of `kafka-configs`."""
