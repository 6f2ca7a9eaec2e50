"""Broker settings for the node's identity, its listeners and the limits of connections."""

from __future__ import annotations

from moldau.core.config.key import ConfigKey, ConfigType, Dynamic, UnitSynonym, at_least, each_of, one_of
from moldau.core.ids import INT32_MAX

__all__ = ["NETWORK_KEYS"]

BOOLEAN, STRING, INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
LONG, LIST, CLASS = ConfigType.LONG, ConfigType.LIST, ConfigType.CLASS
CLUSTER = Dynamic.CLUSTER

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

IDENTITY = [
    ConfigKey(
        "process.roles",
        LIST,
        [],
        "What this process is: broker, controller, or both.",
        each_of("broker", "controller"),
    ),
    ConfigKey(
        "node.id",
        INT,
        None,
        "This node's number in the cluster.",
        at_least(0),
        synonyms=(UnitSynonym("broker.id", is_told=False),),
    ),
    ConfigKey("broker.id", INT, -1, "The older name of node.id; both must agree if both are given."),
    ConfigKey("broker.id.generation.enable", BOOLEAN, True, "Let a ZooKeeper-era file without broker.id be given one."),
    ConfigKey("reserved.broker.max.id", INT, 1000, "Generated broker ids begin above this one.", at_least(0)),
    ConfigKey("broker.rack", STRING, None, "Where this broker stands; replicas are spread over racks."),
    ConfigKey("controller.quorum.voters", LIST, [], "The fixed set of controllers, as id@host:port."),
    ConfigKey("controller.quorum.bootstrap.servers", LIST, [], "Controllers to ask for the quorum, as host:port."),
    ConfigKey("controller.listener.names", LIST, [], "Listeners that carry controller traffic; brokers use the first."),
    ConfigKey(
        "listeners",
        LIST,
        ["PLAINTEXT://:9092"],
        "Where to listen, as NAME://host:port. No host is the default interface, 0.0.0.0 all of them, "
        "and port 0 a free one.",
    ),
    ConfigKey(
        "advertised.listeners",
        LIST,
        None,
        "What clients are told to connect to; the listeners themselves when not given.",
    ),
    ConfigKey(
        "listener.security.protocol.map",
        STRING,
        ",".join(f"{name}:{name}" for name in ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
        "Which security protocol each listener name speaks, as NAME:PROTOCOL.",
    ),
    ConfigKey("inter.broker.listener.name", STRING, None, "The listener brokers use among themselves."),
    ConfigKey(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The protocol brokers use among themselves, where no inter.broker.listener.name is given.",
        one_of(*SECURITY_PROTOCOLS),
    ),
    ConfigKey("config.providers", LIST, [], "Who may fill in ${provider:...} in values."),
    ConfigKey("early.start.listeners", LIST, None, "Listeners that open before the authorizer has loaded."),
    ConfigKey(
        "cluster.id",
        STRING,
        None,
        "The cluster this node belongs to; normally read from meta.properties.",
        is_hidden=True,
    ),
]

SOCKETS = [
    ConfigKey(
        "num.network.threads",
        INT,
        3,
        "Threads that send large replies; one event loop does the rest.",
        at_least(1),
        CLUSTER,
    ),
    ConfigKey(
        "num.io.threads", INT, 8, "Threads that send large replies; one event loop does the rest.", at_least(1), CLUSTER
    ),
    ConfigKey("background.threads", INT, 10, "Threads for housekeeping off the event loop.", at_least(1), CLUSTER),
    ConfigKey(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "Threads per data folder that recover logs at start and flush them at stop.",
        at_least(1),
        CLUSTER,
    ),
    ConfigKey("queued.max.requests", INT, 500, "Requests taken in before the broker stops reading.", at_least(1)),
    ConfigKey(
        "queued.max.request.bytes", LONG, -1, "Bytes of requests taken in before the broker stops reading; -1 no limit."
    ),
    ConfigKey("socket.send.buffer.bytes", INT, 102_400, "Send buffer of server sockets; -1 leaves it to the system."),
    ConfigKey(
        "socket.receive.buffer.bytes", INT, 102_400, "Receive buffer of server sockets; -1 leaves it to the system."
    ),
    ConfigKey(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "The largest request; a bigger one ends the connection.",
        at_least(1),
    ),
    ConfigKey(
        "socket.listen.backlog.size", INT, 50, "Connections the system may hold before they are accepted.", at_least(1)
    ),
    ConfigKey("max.connections", INT, INT32_MAX, "Connections open at once.", at_least(0), CLUSTER),
    ConfigKey(
        "max.connections.per.ip", INT, INT32_MAX, "Connections open at once from one address.", at_least(0), CLUSTER
    ),
    ConfigKey(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Exceptions to the limit per address, as host:count.",
        None,
        CLUSTER,
    ),
    ConfigKey("max.connection.creation.rate", INT, INT32_MAX, "New connections per second.", at_least(0), CLUSTER),
    ConfigKey("connections.max.idle.ms", LONG, 600_000, "Silence after which a connection is closed."),
    ConfigKey(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long a connection that failed to authenticate is kept waiting before it is closed.",
        at_least(0),
    ),
    ConfigKey("request.timeout.ms", INT, 30_000, "How long requests to other nodes may take."),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots", INT, 1000, "Fetch sessions remembered at once.", at_least(0)
    ),
    ConfigKey(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "The most one fetch may return, whatever the client asks for.",
        at_least(1024),
    ),
    ConfigKey(
        "max.request.partition.size.limit", INT, 2000, "Partitions in one page of DescribeTopicPartitions.", at_least(1)
    ),
]

METRICS = [
    ConfigKey(
        "metrics.http.port", INT, 0, "Serve /metrics, /jmx and /healthz on this port; 0 leaves it off.", at_least(0)
    ),
    ConfigKey("metrics.http.host", STRING, "127.0.0.1", "The address the metrics port is bound to."),
    ConfigKey("metric.reporters", LIST, [], "Java classes in Kafka; accepted and ignored.", None, CLUSTER),
    ConfigKey("metrics.num.samples", INT, 2, "Samples kept to compute a rate.", at_least(1)),
    ConfigKey("metrics.sample.window.ms", LONG, 30_000, "The length of a rate's sample.", at_least(1)),
    ConfigKey(
        "metrics.recording.level", STRING, "INFO", "How much detail is recorded.", one_of("INFO", "DEBUG", "TRACE")
    ),
    ConfigKey("auto.include.jmx.reporter", BOOLEAN, True, "Concerns Java only; ignored."),
    ConfigKey("kafka.metrics.reporters", LIST, [], "Java classes in Kafka; accepted and ignored."),
    ConfigKey("kafka.metrics.polling.interval.secs", INT, 10, "Concerns Java reporters only; ignored.", at_least(1)),
    ConfigKey("client.quota.callback.class", CLASS, None, "A Java class in Kafka; accepted and ignored."),
    ConfigKey("create.topic.policy.class.name", CLASS, None, "A Java class in Kafka; accepted and ignored."),
    ConfigKey("alter.config.policy.class.name", CLASS, None, "A Java class in Kafka; accepted and ignored."),
]

NETWORK_KEYS = [*IDENTITY, *SOCKETS, *METRICS]
