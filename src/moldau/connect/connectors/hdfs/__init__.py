"""Topics to files of a folder tree, on a local or mounted disk or on HDFS, exactly once. Start at `sink`."""
