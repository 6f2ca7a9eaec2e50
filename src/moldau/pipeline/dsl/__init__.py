"""The Streams DSL: user code describes what happens to records, and the DSL builds `ir` nodes from it.

Names and semantics are those of Kafka Streams, in Python spelling. Nothing runs here; users import `moldau.streams`.
Start at `builder.StreamsBuilder`, then `kstream.KStream`.
"""
