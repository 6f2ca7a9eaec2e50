"""What `kafka-dump-log` shows of the files of a log. Start at `dump`."""
