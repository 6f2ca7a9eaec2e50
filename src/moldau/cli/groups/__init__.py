"""kafka-consumer-groups, kafka-groups and `moldau groups`: groups, their members and their offsets."""
