"""Commands for configs. Start at `command`, which is `kafka-configs`."""
