"""What Connect costs, beside PySpark by hand and Apache Kafka's Connect."""
