package oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.lang.reflect.Field;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.function.Function;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.test.TestRecord;

/**
 * One TopologyTestDriver that gives away what it writes to internal topics, unless plain, instead of reading it itself.
 *
 * <p>The driver has one partition and no way to have more. Several of them make a topology with several partitions,
 * if records of repartition topics go to the driver of their key; for that the driver must forget, but for the moment
 * such a record comes in, that it reads these topics. Its own fields are the only place to tell it so.
 */
final class Driver {
    private final TopologyTestDriver driver;
    private final Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
    private final Map<String, TopicPartition> readTopics;
    private final Map<String, TopicPartition> internalTopics = new HashMap<>();
    private final InOrder written = new InOrder();

    Driver(Topology topology, Properties properties, long wallClock, SpecBuilder builder, boolean isPlain) {
        driver = new TopologyTestDriver(topology, properties, Instant.ofEpochMilli(wallClock));
        readTopics = field("partitionsByInputTopic");
        replace("outputRecordsByTopic", written);
        for (Map.Entry<String, TopicPartition> read : readTopics.entrySet()) {
            // A topic that the topology both writes and reads is internal in this sense too.
            boolean isInput = builder.sourceTopics().contains(read.getKey());
            if (!isInput || builder.sinkTopics().contains(read.getKey())) {
                internalTopics.put(read.getKey(), read.getValue());
            }
        }
        if (isPlain && internalTopics.size() <= 1) {
            // Of several internal topics the driver takes records in turn, whoever was written first.
            internalTopics.clear();
        }
        readTopics.keySet().removeAll(internalTopics.keySet());
    }

    boolean isInternal(String topic) {
        return internalTopics.containsKey(topic);
    }

    void pipe(String topic, TestRecord<byte[], byte[]> record) {
        TestInputTopic<byte[], byte[]> input = inputs.computeIfAbsent(
                topic, name -> driver.createInputTopic(name, new ByteArraySerializer(), new ByteArraySerializer()));
        if (isInternal(topic)) {
            readTopics.put(topic, internalTopics.get(topic));
        }
        try {
            input.pipeInput(record);
        } finally {
            readTopics.keySet().removeAll(internalTopics.keySet());
        }
    }

    void advance(long milliseconds) {
        driver.advanceWallClockTime(Duration.ofMillis(milliseconds));
    }

    /** What was written since the last call, to whatever topic, in order. */
    List<ProducerRecord<byte[], byte[]>> drain() {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>(written.records);
        written.records.clear();
        return records;
    }

    /** Every entry of a store. */
    void dump(String name, ArrayNode entries) {
        StateStore store = driver.getAllStateStores().get(name);
        if (store instanceof ReadOnlyWindowStore<?, ?> windows) {
            try (KeyValueIterator<? extends Windowed<?>, ?> all = windows.all()) {
                all.forEachRemaining(entry -> add(entries, entry));
            }
        } else if (store instanceof ReadOnlySessionStore<?, ?> sessions) {
            try (KeyValueIterator<? extends Windowed<?>, ?> all = sessions.fetch(null, null)) {
                all.forEachRemaining(entry -> add(entries, entry));
            }
        } else if (store instanceof ReadOnlyKeyValueStore<?, ?> rows) {
            try (KeyValueIterator<?, ?> all = rows.all()) {
                all.forEachRemaining(entry -> add(entries, entry));
            }
        }
    }

    private static void add(ArrayNode entries, KeyValue<?, ?> entry) {
        ArrayNode row = entries.addArray().add(Functions.text(entry.key));
        if (entry.value instanceof ValueAndTimestamp<?> stamped) {
            row.add(Functions.text(stamped.value())).add(stamped.timestamp());
        } else {
            row.add(Functions.text(entry.value));
        }
    }

    /** A topology that has failed may fail again when its stores are closed; what it made of the case is known by then. */
    void close() {
        try {
            driver.close();
        } catch (RuntimeException error) {
            return;
        }
    }

    @SuppressWarnings("unchecked")
    private <T> T field(String name) {
        try {
            return (T) accessible(name).get(driver);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private void replace(String name, Object value) {
        try {
            accessible(name).set(driver, value);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Field accessible(String name) throws NoSuchFieldException {
        Field field = TopologyTestDriver.class.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    /** The driver's queues by topic, which also keep the order of all. */
    private static final class InOrder extends HashMap<String, Queue<ProducerRecord<byte[], byte[]>>> {
        private static final long serialVersionUID = 1L;
        private final transient List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();

        @Override
        public Queue<ProducerRecord<byte[], byte[]>> computeIfAbsent(
                String topic, Function<? super String, ? extends Queue<ProducerRecord<byte[], byte[]>>> made) {
            return new LinkedList<>() {
                @Override
                public boolean add(ProducerRecord<byte[], byte[]> record) {
                    return records.add(record);
                }
            };
        }
    }
}
