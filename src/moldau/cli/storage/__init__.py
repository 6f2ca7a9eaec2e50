"""kafka-storage: formats log directories and shows their state. Start at `command`."""
