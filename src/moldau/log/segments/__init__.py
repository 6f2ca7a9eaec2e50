"""The files of a log: segments with their indexes, the list of them, and walking over batches."""
