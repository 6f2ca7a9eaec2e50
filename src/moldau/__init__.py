"""moldau: an event-streaming platform that speaks Kafka's protocol.

If you are here to read the code, start with `server.node` (how a node is put together), then
`broker.router` (how a request finds its handler) and `log.partition_log` (what an append does).
"""

__version__ = "0.1.0"
