"""The broker: requests find their handler here, partitions are appended to and read from, clients are answered."""
