// Prints what Kafka Streams says of a number of topologies, one file each, into the directory of the first argument.
// Run it with Kafka Streams on the class path: java -cp "<libs>/*" Descriptions.java <directory>
// The same topologies in Python are in topologies.py next to it.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.state.Stores;

public class Descriptions {
    static final Map<String, Consumer<StreamsBuilder>> TOPOLOGIES = new LinkedHashMap<>();
    static final Duration MINUTE = Duration.ofMinutes(1);
    static final ValueJoiner<Object, Object, Object> PAIR = (left, right) -> left;

    static KStream<Object, Object> in(StreamsBuilder builder, String topic) {
        return builder.stream(topic);
    }

    static KTable<Object, Object> table(StreamsBuilder builder, String topic) {
        return builder.table(topic);
    }

    static class Quiet implements Processor<Object, Object, Object, Object> {
        public void process(org.apache.kafka.streams.processor.api.Record<Object, Object> record) {}
    }

    static class QuietValues implements FixedKeyProcessor<Object, Object, Object> {
        public void process(FixedKeyRecord<Object, Object> record) {}
    }

    static class QuietTransformer implements ValueTransformerWithKey<Object, Object, Object> {
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {}
        public Object transform(Object key, Object value) { return value; }
        public void close() {}
    }

    static {
        TOPOLOGIES.put("stateless", b -> in(b, "in").filter((k, v) -> true).filterNot((k, v) -> false)
            .mapValues(v -> v).map(KeyValue::pair).flatMapValues(v -> Arrays.asList(v)).selectKey((k, v) -> v)
            .peek((k, v) -> {}).to("out"));
        TOPOLOGIES.put("named_stateless", b -> b.stream("in", Consumed.as("source")).filter((k, v) -> true, Named.as("keep"))
            .mapValues(v -> v, Named.as("change")).to("out", Produced.as("sink")));
        TOPOLOGIES.put("word_count", b -> in(b, "in").flatMapValues(v -> Arrays.asList(v)).groupBy((k, v) -> v).count()
            .toStream().to("out"));
        TOPOLOGIES.put("word_count_named_store", b -> in(b, "in").groupBy((k, v) -> v).count(Materialized.as("counts"))
            .toStream().to("out"));
        TOPOLOGIES.put("word_count_serdes_only", b -> in(b, "in").groupBy((k, v) -> v)
            .count(Materialized.with(null, Serdes.Long())).toStream().to("out"));
        TOPOLOGIES.put("word_count_named_group", b -> in(b, "in").groupBy((k, v) -> v, Grouped.as("by-word"))
            .count(Named.as("counting")).toStream(Named.as("stream")).to("out"));
        TOPOLOGIES.put("two_folds_of_a_named_group", b -> {
            KGroupedStream<Object, Object> grouped = in(b, "in").groupBy((k, v) -> v, Grouped.as("by-word"));
            grouped.count().toStream().to("counts");
            grouped.reduce((x, y) -> y).toStream().to("latest");
        });
        TOPOLOGIES.put("two_folds_of_a_group", b -> {
            KGroupedStream<Object, Object> grouped = in(b, "in").groupBy((k, v) -> v);
            grouped.count().toStream().to("counts");
            grouped.reduce((x, y) -> y).toStream().to("latest");
        });
        TOPOLOGIES.put("count_by_key", b -> in(b, "in").groupByKey().count().toStream().to("out"));
        TOPOLOGIES.put("aggregate_by_key", b -> in(b, "in").groupByKey().aggregate(() -> 0, (k, v, a) -> a).toStream()
            .to("out"));
        TOPOLOGIES.put("tumbling", b -> in(b, "in").groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE)).count()
            .toStream().to("out"));
        TOPOLOGIES.put("hopping_reduce", b -> in(b, "in").selectKey((k, v) -> v).groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(MINUTE, MINUTE).advanceBy(Duration.ofSeconds(10))).reduce((x, y) -> y)
            .toStream().to("out"));
        TOPOLOGIES.put("sliding", b -> in(b, "in").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(MINUTE)).count(Materialized.with(null, Serdes.Long()))
            .toStream().to("out"));
        TOPOLOGIES.put("sessions", b -> in(b, "in").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(MINUTE)).aggregate(() -> 0, (k, v, a) -> a, (k, x, y) -> x)
            .toStream().to("out"));
        TOPOLOGIES.put("suppressed", b -> in(b, "in").groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE))
            .count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream().to("out"));
        TOPOLOGIES.put("suppressed_named", b -> table(b, "in")
            .suppress(Suppressed.untilTimeLimit(MINUTE, Suppressed.BufferConfig.maxRecords(10)).withName("later"))
            .toStream().to("out"));
        TOPOLOGIES.put("stream_join", b -> in(b, "left").join(in(b, "right"), PAIR,
            JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out"));
        TOPOLOGIES.put("stream_left_join", b -> in(b, "left").leftJoin(in(b, "right"), PAIR,
            JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out"));
        TOPOLOGIES.put("stream_outer_join", b -> in(b, "left").outerJoin(in(b, "right"), PAIR,
            JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out"));
        TOPOLOGIES.put("stream_join_named", b -> in(b, "left").selectKey((k, v) -> v)
            .outerJoin(in(b, "right").selectKey((k, v) -> v), PAIR, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE),
                StreamJoined.as("pairs").withName("pairs").withStoreName("pair-stores")).to("out"));
        TOPOLOGIES.put("stream_join_repartitioned", b -> in(b, "left").map(KeyValue::pair)
            .join(in(b, "right").selectKey((k, v) -> v), PAIR, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out"));
        TOPOLOGIES.put("stream_joined_twice", b -> {
            KStream<Object, Object> keyed = in(b, "left").selectKey((k, v) -> v);
            keyed.join(in(b, "one"), PAIR, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out1");
            keyed.join(in(b, "two"), PAIR, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out2");
        });
        TOPOLOGIES.put("self_join", b -> {
            KStream<Object, Object> stream = in(b, "in");
            stream.join(stream, PAIR, JoinWindows.ofTimeDifferenceWithNoGrace(MINUTE)).to("out");
        });
        TOPOLOGIES.put("table_join", b -> in(b, "in").join(table(b, "table"), PAIR).to("out"));
        TOPOLOGIES.put("table_left_join_repartitioned", b -> in(b, "in").selectKey((k, v) -> v)
            .leftJoin(table(b, "table"), PAIR).to("out"));
        TOPOLOGIES.put("table_join_named", b -> in(b, "in").selectKey((k, v) -> v)
            .join(table(b, "table"), PAIR, Joined.as("enrich")).to("out"));
        TOPOLOGIES.put("filtered_table_join", b -> in(b, "in")
            .join(table(b, "table").filter((k, v) -> true).mapValues(v -> v), PAIR).to("out"));
        TOPOLOGIES.put("global_table_join", b -> in(b, "in").join(b.globalTable("global"), (k, v) -> v, PAIR).to("out"));
        TOPOLOGIES.put("global_table_named", b -> {
            GlobalKTable<Object, Object> table = b.globalTable("global", Materialized.as("everywhere"));
            in(b, "in").leftJoin(table, (k, v) -> v, PAIR, Named.as("look-up")).to("out");
        });
        TOPOLOGIES.put("tables_join", b -> table(b, "left").join(table(b, "right"), PAIR).toStream().to("out"));
        TOPOLOGIES.put("tables_outer_join_stored", b -> table(b, "left")
            .outerJoin(table(b, "right"), PAIR, Named.as("both"), Materialized.as("joined")).toStream().to("out"));
        TOPOLOGIES.put("tables_left_join_serdes", b -> table(b, "left")
            .leftJoin(table(b, "right"), PAIR, Materialized.with(null, null)).toStream().to("out"));
        TOPOLOGIES.put("three_tables", b -> table(b, "one").join(table(b, "two"), PAIR).leftJoin(table(b, "three"), PAIR)
            .toStream().to("out"));
        TOPOLOGIES.put("foreign_key_join", b -> table(b, "left").join(table(b, "right"), v -> v, PAIR).toStream().to("out"));
        TOPOLOGIES.put("foreign_key_left_join_named", b -> table(b, "left")
            .leftJoin(table(b, "right"), v -> v, PAIR, TableJoined.as("fk"), Materialized.as("result")).toStream()
            .to("out"));
        TOPOLOGIES.put("suppressed_foreign_key_join", b -> table(b, "left")
            .suppress(Suppressed.untilTimeLimit(MINUTE, Suppressed.BufferConfig.maxRecords(10)))
            .join(table(b, "right"), v -> v, PAIR).toStream().to("out"));
        TOPOLOGIES.put("table_only", b -> table(b, "in").toStream().to("out"));
        TOPOLOGIES.put("table_stored", b -> b.table("in", Consumed.as("reader"), Materialized.as("store")).toStream()
            .to("out"));
        TOPOLOGIES.put("table_operators", b -> table(b, "in").filter((k, v) -> true, Materialized.as("kept"))
            .filterNot((k, v) -> false, Materialized.with(null, null)).mapValues(v -> v, Materialized.with(null, null))
            .toStream((k, v) -> v).to("out"));
        TOPOLOGIES.put("table_transformed", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.Long()));
            table(b, "in").transformValues(QuietTransformer::new, "seen").toStream().to("out");
        });
        TOPOLOGIES.put("table_grouped", b -> table(b, "in").groupBy(KeyValue::pair).count().toStream().to("out"));
        TOPOLOGIES.put("table_grouped_named", b -> table(b, "in").groupBy(KeyValue::pair, Grouped.as("by-make"))
            .aggregate(() -> 0, (k, v, a) -> a, (k, v, a) -> a, Named.as("folding"), Materialized.as("folded")).toStream()
            .to("out"));
        TOPOLOGIES.put("table_grouped_reduced", b -> table(b, "in").groupBy(KeyValue::pair).reduce((x, y) -> y, (x, y) -> x)
            .toStream().to("out"));
        TOPOLOGIES.put("split", b -> {
            Map<String, KStream<Object, Object>> branches = in(b, "in").split(Named.as("size-"))
                .branch((k, v) -> true, Branched.as("big")).branch((k, v) -> true).defaultBranch();
            branches.get("size-big").to("big");
            branches.get("size-2").mapValues(v -> v).to("second");
            branches.get("size-0").to("rest");
        });
        TOPOLOGIES.put("split_chained", b -> in(b, "in").split()
            .branch((k, v) -> true, Branched.withConsumer(s -> s.mapValues(v -> v).to("one")))
            .branch((k, v) -> true, Branched.withConsumer(s -> s.to("two"))).noDefaultBranch());
        TOPOLOGIES.put("merged", b -> in(b, "one").merge(in(b, "two")).merge(in(b, "three").mapValues(v -> v)).to("out"));
        TOPOLOGIES.put("repartitioned", b -> in(b, "in").repartition().to("out"));
        TOPOLOGIES.put("repartitioned_named", b -> in(b, "in").selectKey((k, v) -> v)
            .repartition(Repartitioned.as("spread")).groupByKey().count().toStream().to("out"));
        TOPOLOGIES.put("to_table", b -> in(b, "in").toTable().toStream().to("out"));
        TOPOLOGIES.put("to_table_repartitioned", b -> in(b, "in").selectKey((k, v) -> v).toTable(Materialized.as("rows"))
            .toStream().to("out"));
        TOPOLOGIES.put("cogrouped", b -> in(b, "one").groupByKey().cogroup((k, v, a) -> a)
            .cogroup(in(b, "two").groupByKey(), (k, v, a) -> a).aggregate(() -> 0).toStream().to("out"));
        TOPOLOGIES.put("cogrouped_windows_named", b -> in(b, "one").groupBy((k, v) -> v, Grouped.as("first"))
            .cogroup((k, v, a) -> a).cogroup(in(b, "two").groupBy((k, v) -> v, Grouped.as("second")), (k, v, a) -> a)
            .windowedBy(TimeWindows.ofSizeWithNoGrace(MINUTE))
            .aggregate(() -> 0, Named.as("both"), Materialized.as("folded")).toStream().to("out"));
        TOPOLOGIES.put("processors", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.Long()));
            KStream<Object, Object> stream = in(b, "in");
            stream.process(Quiet::new, "seen").to("one");
            stream.processValues(QuietValues::new, Named.as("values"), "seen").to("two");
            in(b, "other").process(Quiet::new, "seen").to("three");
        });
        TOPOLOGIES.put("fan_out", b -> {
            KStream<Object, Object> stream = in(b, "in");
            stream.mapValues(v -> v).to("one");
            stream.filter((k, v) -> true).mapValues(v -> v).filter((k, v) -> true).to("two");
            stream.filter((k, v) -> true).to("three");
            stream.to("four");
            stream.peek((k, v) -> {}).mapValues(v -> v).mapValues(v -> v).to("five");
            stream.foreach((k, v) -> {});
            stream.mapValues(v -> v).filter((k, v) -> true).to("six");
        });
        TOPOLOGIES.put("fan_in", b -> {
            KStream<Object, Object> all = in(b, "a").merge(in(b, "b").mapValues(v -> v)).merge(in(b, "c"))
                .merge(in(b, "d").filter((k, v) -> true).mapValues(v -> v));
            all.to("out");
            all.groupByKey().count().toStream().to("counts");
            all.join(table(b, "t"), PAIR).to("joined");
        });
        TOPOLOGIES.put("several_topics", b -> b.stream(Arrays.asList("alpha", "beta", "gamma", "delta")).to("out"));
        TOPOLOGIES.put("pattern", b -> b.stream(Pattern.compile("in-.*")).to("out"));
        TOPOLOGIES.put("read_twice", b -> {
            in(b, "in").mapValues(v -> v).to("one");
            in(b, "in").filter((k, v) -> true).to("two");
        });
        TOPOLOGIES.put("feeds_itself", b -> {
            KStream<Object, Object> stream = in(b, "in");
            KTable<Object, Long> counts = stream.groupBy((k, v) -> v).count();
            stream.join(counts, (v, c) -> v).to("out");
        });
        TOPOLOGIES.put("several_globals", b -> {
            GlobalKTable<Object, Object> first = b.globalTable("g1");
            KStream<Object, Object> one = in(b, "one");
            GlobalKTable<Object, Object> second = b.globalTable("g2");
            one.join(first, (k, v) -> v, PAIR).join(second, (k, v) -> v, PAIR).to("out");
            in(b, "two").to("copy");
        });
    }

    public static void main(String[] arguments) throws Exception {
        for (Map.Entry<String, Consumer<StreamsBuilder>> each : TOPOLOGIES.entrySet()) {
            StreamsBuilder builder = new StreamsBuilder();
            each.getValue().accept(builder);
            Files.writeString(Path.of(arguments[0], each.getKey() + ".txt"), builder.build().describe().toString());
        }
    }
}
