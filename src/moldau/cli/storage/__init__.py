"""kafka-storage: format log directories and look at them. Start at `command`."""
