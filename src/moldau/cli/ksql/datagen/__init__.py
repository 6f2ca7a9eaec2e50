"""`ksql-datagen`: records of made-up orders, users and so on, or of any Avro schema. Start at `command.main`."""
