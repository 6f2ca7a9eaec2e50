"""Commands: Kafka's tools under their own names, and `moldau` for people. Start at `main` and `tools`."""
