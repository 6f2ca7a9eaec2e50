"""The Streams DSL: people write what should happen to records, `ir` nodes come out.

Words and meaning are Kafka Streams', in Python spelling. Nothing runs here; the public name is `moldau.streams`. Start
at `builder.StreamsBuilder`, then `kstream.KStream`.
"""
