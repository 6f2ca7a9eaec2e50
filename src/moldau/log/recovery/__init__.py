"""Opening logs: what a start finds on disk, believes or mends. Start at `loading`."""
