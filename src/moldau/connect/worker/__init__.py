"""A Connect worker: settings, state in topics, assignment among workers, and the REST API. Start at `herder`."""
