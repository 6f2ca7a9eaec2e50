"""kafka-dump-log: the files of a log as text. Start at `command`."""
