"""The console tools: lines in, records out (`producer`), and the other way round (`consumer`)."""
