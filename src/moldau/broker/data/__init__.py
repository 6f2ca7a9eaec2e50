"""The data path: produce, fetch, and the queues and threads they use. Start at `data_plane`."""
