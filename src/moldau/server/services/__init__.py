"""The services beside the broker, each wired together, and the engine process they share. Start at `run`."""
