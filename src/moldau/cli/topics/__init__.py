"""Topics from the command line: one file per verb, `command` is the door of `kafka-topics`."""
