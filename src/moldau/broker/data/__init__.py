"""Moving records: produce, fetch, and what they wait for. Start at `data_plane`."""
