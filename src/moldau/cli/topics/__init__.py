"""Commands for topics, one file per verb. Start at `command`, which is `kafka-topics`."""
