"""Whether the broker keeps up: the loop, hanging calls, loggers. Start at `watchdog`."""
