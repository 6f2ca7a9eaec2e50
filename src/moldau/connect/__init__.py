"""Connect: data in and out of topics by configuration. Connector authors start at `api`."""
