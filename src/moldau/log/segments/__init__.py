"""The files of a log: segments with their indexes, the list of segments, and scans over batches."""
