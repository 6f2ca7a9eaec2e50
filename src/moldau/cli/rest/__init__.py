"""`moldau rest`, `kafka-rest-start` and `kafka-rest-stop`."""
