"""What is kept once for each log directory: identity, checkpoints, manifest. Start at `log_directory`."""
