package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs one case: a driver for every partition, and records of internal topics carried to the partition of their key.
 *
 * <p>A driver runs all sub-topologies as one task with one stream time. Where a processor looks at that time, there is a
 * driver for every sub-topology too, fed with its topics only, as Kafka Streams would have a task for each.
 *
 * <p>An input record is finished, with all that follows from it, before the next one. Start at {@link #run}.
 */
final class CaseRunner {
    private static final String APPLICATION_PREFIX = "oracle-";
    private final ObjectMapper json;
    private final JsonNode spec;
    private final List<Driver> drivers = new ArrayList<>();
    private final Map<String, Integer> subtopologies = new HashMap<>();
    private final Deque<ProducerRecord<byte[], byte[]>> internal = new ArrayDeque<>();
    private final ArrayNode outputs;
    private SpecBuilder builder;
    private int step;

    private CaseRunner(ObjectMapper json, JsonNode spec) {
        this.json = json;
        this.spec = spec;
        this.outputs = json.createArrayNode();
    }

    /** The result holds the topology's description, the outputs in order, the stores at the end, or an error. */
    static ObjectNode run(ObjectMapper json, JsonNode spec, Path stateDirectory) {
        ObjectNode result = json.createObjectNode();
        result.set("id", spec.get("id"));
        CaseRunner runner = new CaseRunner(json, spec);
        try {
            result.put("describe", runner.open(stateDirectory));
            runner.feed();
            if (!spec.path("without_stores").asBoolean()) {
                result.set("stores", runner.stores());
            }
        } catch (RuntimeException error) {
            result.put("error", describe(error));
        } finally {
            result.set("outputs", runner.outputs);
            runner.drivers.forEach(Driver::close);
        }
        return result;
    }

    private String open(Path stateDirectory) {
        int partitions = spec.path("partitions").asInt(1);
        Topology topology = openDriver(stateDirectory);
        if (spec.path("by_subtopology").asBoolean()) {
            int number = 0;
            for (TopologyDescription.Subtopology part : topology.describe().subtopologies()) {
                for (TopologyDescription.Node node : part.nodes()) {
                    assign(node, number);
                }
                number++;
            }
        }
        int count = partitions * (1 + subtopologies.values().stream().max(Integer::compare).orElse(0));
        while (drivers.size() < count) {
            openDriver(stateDirectory);
        }
        return topology.describe().toString();
    }

    /** Remember which sub-topology reads a topic and holds a store. */
    private void assign(TopologyDescription.Node node, int subtopology) {
        if (node instanceof TopologyDescription.Source source) {
            source.topicSet().forEach(topic -> subtopologies.put(topic, subtopology));
        } else if (node instanceof TopologyDescription.Processor processor) {
            processor.stores().forEach(store -> subtopologies.put(store, subtopology));
        }
    }

    /** Each driver believes to be the only one, so each needs a topology and a folder of its own. */
    private Topology openDriver(Path stateDirectory) {
        Properties properties = properties(stateDirectory.resolve(UUID.randomUUID().toString()));
        builder = SpecBuilder.of(spec);
        Topology topology = builder.build(properties);
        boolean isPlain = spec.path("plain").asBoolean();
        drivers.add(new Driver(topology, properties, spec.path("wall").asLong(0), builder, isPlain));
        return topology;
    }

    private Properties properties(Path stateDirectory) {
        Properties properties = new Properties();
        properties.put("application.id", "oracle");
        properties.put("bootstrap.servers", "nowhere:1");
        properties.put("state.dir", stateDirectory.toString());
        properties.put("statestore.cache.max.bytes", "0");
        // By default results are held back by the wall clock, at most once a second: here, as soon as they are due.
        properties.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        properties.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        properties.put("default.key.serde", "org.apache.kafka.common.serialization.Serdes$StringSerde");
        properties.put("default.value.serde", "org.apache.kafka.common.serialization.Serdes$StringSerde");
        if (spec.path("in_memory").asBoolean()) {
            properties.put("dsl.store.suppliers.class", BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        }
        for (Map.Entry<String, JsonNode> setting : spec.path("config").properties()) {
            properties.put(setting.getKey(), setting.getValue().asText());
        }
        return properties;
    }

    private void feed() {
        for (JsonNode event : spec.get("inputs")) {
            if (event.has("advance")) {
                for (Driver driver : drivers) {
                    driver.advance(event.get("advance").asLong());
                    collect(driver);
                }
            } else {
                route(event.get("topic").asText(), record(event), event.path("partition").asInt(-1));
            }
            carry();
            step++;
        }
    }

    /** Give a record to the partition it belongs to, or to all where the topic feeds a global table. */
    private void route(String topic, TestRecord<byte[], byte[]> record, int partition) {
        if (builder.globalTopics().contains(topic)) {
            drivers.forEach(driver -> driver.pipe(topic, record));
            return;
        }
        int partitions = spec.path("partitions").asInt(1);
        int chosen = partition >= 0 ? partition : partitionOf(record.key(), partitions);
        String plainTopic = topic.startsWith(APPLICATION_PREFIX) ? topic.substring(APPLICATION_PREFIX.length()) : topic;
        Driver driver = drivers.get(subtopologies.getOrDefault(plainTopic, 0) * partitions + chosen);
        driver.pipe(topic, record);
        collect(driver);
    }

    /** First in, first out, as the driver itself takes records of equal time. */
    private void carry() {
        while (!internal.isEmpty()) {
            ProducerRecord<byte[], byte[]> record = internal.remove();
            route(
                    record.topic(),
                    new TestRecord<>(record.key(), record.value(), record.headers(), record.timestamp()),
                    -1);
        }
    }

    private void collect(Driver driver) {
        for (ProducerRecord<byte[], byte[]> record : driver.drain()) {
            if (driver.isInternal(record.topic())) {
                internal.add(record);
            }
            if (builder.sinkTopics().contains(record.topic())) {
                outputs.add(encoded(record));
            }
        }
    }

    private static int partitionOf(byte[] key, int partitions) {
        return key == null ? 0 : Utils.toPositive(Utils.murmur2(key)) % partitions;
    }

    private static TestRecord<byte[], byte[]> record(JsonNode event) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : event.path("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        long timestamp = event.get("timestamp").asLong();
        return new TestRecord<>(bytes(event.get("key")), bytes(event.get("value")), headers, timestamp);
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    private ArrayNode encoded(ProducerRecord<byte[], byte[]> record) {
        ArrayNode output = json.createArrayNode();
        output.add(step).add(record.topic()).add(record.key()).add(record.value()).add(record.timestamp());
        ArrayNode headers = output.addArray();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return output;
    }

    private ObjectNode stores() {
        ObjectNode stores = json.createObjectNode();
        for (String name : builder.storeNames()) {
            ArrayNode entries = stores.putArray(name);
            int partitions = spec.path("partitions").asInt(1);
            int first = subtopologies.getOrDefault(name, 0) * partitions;
            drivers.subList(first, first + partitions).forEach(driver -> driver.dump(name, entries));
        }
        return stores;
    }

    private static String describe(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(cause.getClass().getName()).append(": ").append(cause.getMessage()).append('\n');
        }
        return text.toString();
    }
}
