"""Made-up rows, for tests and demonstrations: `ksql-datagen` and the Datagen connector. Start at `rows`."""
