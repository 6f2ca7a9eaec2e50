package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * Builds Kafka Streams' topology from the operators of a case: sources, stateless operators, sinks.
 *
 * <p>{@link Aggregations}, {@link Joins} and {@link Processors} build the rest. Start at {@link #add}.
 */
final class SpecBuilder {
    final StreamsBuilder streams = new StreamsBuilder();
    final Map<String, Flow> flows = new HashMap<>();
    private final Set<String> sourceTopics = new LinkedHashSet<>();
    private final Set<String> globalTopics = new LinkedHashSet<>();
    private final Set<String> sinkTopics = new LinkedHashSet<>();
    private final Set<String> storeNames = new LinkedHashSet<>();
    final boolean inMemory;

    private SpecBuilder(JsonNode spec) {
        inMemory = spec.path("in_memory").asBoolean();
        spec.get("ops").forEach(this::add);
    }

    static SpecBuilder of(JsonNode spec) {
        return new SpecBuilder(spec);
    }

    Topology build(Properties properties) {
        return streams.build(properties);
    }

    Set<String> sourceTopics() {
        return sourceTopics;
    }

    Set<String> globalTopics() {
        return globalTopics;
    }

    Set<String> sinkTopics() {
        return sinkTopics;
    }

    Set<String> storeNames() {
        return storeNames;
    }

    Flow input(JsonNode operator, int index) {
        return flows.get(operator.get("in").get(index).asText());
    }

    void keep(JsonNode operator, Flow flow) {
        flows.put(operator.get("id").asText(), flow);
    }

    Named named(JsonNode operator) {
        return operator.has("name") ? Named.as(operator.get("name").asText()) : null;
    }

    private void add(JsonNode operator) {
        switch (operator.get("op").asText()) {
            case "stream", "table", "global_table" -> addSource(operator);
            case "to" -> addSink(operator);
            case "split" -> addSplit(operator);
            case "count", "reduce", "aggregate", "cogroup", "group_by", "group_by_key", "windowed_by" ->
                    Aggregations.add(this, operator);
            case "stream_join", "stream_table_join", "global_join", "table_join", "foreign_key_join" ->
                    Joins.add(this, operator);
            case "process", "process_values", "transform_values", "add_store", "add_global_store" -> Processors.add(this, operator);
            default -> keep(operator, input(operator, 0).handle() instanceof KTable
                    ? tableOperator(operator, input(operator, 0))
                    : streamOperator(operator, input(operator, 0)));
        }
    }

    void rememberStore(String name) {
        storeNames.add(name);
    }

    void addGlobalStore(
            JsonNode operator, StoreBuilder<?> store, ProcessorSupplier<Object, Object, Void, Void> supplier) {
        String topic = operator.get("topic").asText();
        globalTopics.add(topic);
        streams.addGlobalStore(store, topic, consumed(operator), supplier);
    }

    private void addSource(JsonNode operator) {
        String topic = operator.get("topic").asText();
        Consumed<Object, Object> consumed = consumed(operator);
        Flow flow = new Flow(null, Flow.TEXT, Flow.TEXT);
        switch (operator.get("op").asText()) {
            case "stream" -> {
                List<String> topics = new ArrayList<>(List.of(topic));
                operator.path("more_topics").forEach(more -> topics.add(more.asText()));
                sourceTopics.addAll(topics);
                keep(operator, flow.with(streams.stream(topics, consumed)));
            }
            case "table" -> {
                sourceTopics.add(topic);
                keep(operator, flow.with(operator.has("as")
                        ? streams.table(topic, consumed, Stores.rows(this, operator, Flow.TEXT, Flow.TEXT))
                        : streams.table(topic, consumed)));
            }
            default -> {
                globalTopics.add(topic);
                keep(operator, flow.with(operator.has("as")
                        ? streams.globalTable(topic, consumed, Stores.rows(this, operator, Flow.TEXT, Flow.TEXT))
                        : streams.globalTable(topic, consumed)));
                // Everybody who reads it has a copy, and how many those are is not to be compared.
                storeNames.remove(operator.path("as").path("store").asText());
            }
        }
    }

    private static Consumed<Object, Object> consumed(JsonNode operator) {
        Consumed<Object, Object> consumed = Consumed.with(Flow.TEXT, Flow.TEXT);
        if (operator.has("name")) {
            consumed = consumed.withName(operator.get("name").asText());
        }
        if (operator.has("clock")) {
            consumed = consumed.withTimestampExtractor(Functions.clock(operator.get("clock")));
        }
        return consumed;
    }

    private void addSink(JsonNode operator) {
        Flow flow = input(operator, 0);
        KStream<Object, Object> stream = flow.as();
        Produced<Object, Object> produced = Produced.with(flow.keys(), flow.values());
        if (operator.has("name")) {
            produced = produced.withName(operator.get("name").asText());
        }
        if (operator.has("choose")) {
            JsonNode choices = operator.get("choose");
            choices.forEach(choice -> sinkTopics.add(choice.asText()));
            stream.to(
                    (key, value, record) ->
                            choices.get(Functions.digest(key, value) % choices.size()).asText(),
                    produced);
        } else {
            sinkTopics.add(operator.get("topic").asText());
            stream.to(operator.get("topic").asText(), produced);
        }
    }

    private void addSplit(JsonNode operator) {
        Flow flow = input(operator, 0);
        KStream<Object, Object> stream = flow.as();
        BranchedKStream<Object, Object> split =
                operator.has("name") ? stream.split(named(operator)) : stream.split();
        String id = operator.get("id").asText();
        int index = 0;
        for (JsonNode branch : operator.get("branches")) {
            String name = id + "." + index++;
            Branched<Object, Object> branched = Branched.withConsumer(taken -> flows.put(name, flow.with(taken)));
            if (branch.has("name")) {
                branched = branched.withName(branch.get("name").asText());
            }
            split = split.branch(predicate(branch), branched);
        }
        if (operator.path("default").asBoolean()) {
            split.defaultBranch(Branched.withConsumer(taken -> flows.put(id + ".default", flow.with(taken))));
        } else {
            split.noDefaultBranch();
        }
    }

    static Predicate<Object, Object> predicate(JsonNode spec) {
        return Functions.predicate(spec)::apply;
    }

    private Flow streamOperator(JsonNode operator, Flow flow) {
        KStream<Object, Object> stream = flow.as();
        boolean isNamed = operator.has("name");
        Named named = named(operator);
        JsonNode with = operator.get("with");
        boolean hasKey = operator.path("has_key").asBoolean();
        switch (operator.get("op").asText()) {
            case "filter":
                return flow.with(isNamed ? stream.filter(predicate(with), named) : stream.filter(predicate(with)));
            case "filter_not":
                return flow.with(isNamed ? stream.filterNot(predicate(with), named) : stream.filterNot(predicate(with)));
            case "map": {
                var keys = Functions.keySelector(operator.get("key"));
                var values = Functions.valueMapper(operator.get("value"));
                org.apache.kafka.streams.kstream.KeyValueMapper<Object, Object, KeyValue<Object, Object>> mapper =
                        (key, value) -> new KeyValue<>(keys.apply(key, value), values.apply(key, value));
                return new Flow(isNamed ? stream.map(mapper, named) : stream.map(mapper), Flow.TEXT, Flow.TEXT);
            }
            case "map_values": {
                var mapper = Functions.valueMapper(with);
                if (hasKey) {
                    org.apache.kafka.streams.kstream.ValueMapperWithKey<Object, Object, Object> keyed = mapper::apply;
                    return flow.with(isNamed ? stream.mapValues(keyed, named) : stream.mapValues(keyed), Flow.TEXT);
                }
                org.apache.kafka.streams.kstream.ValueMapper<Object, Object> plain = value -> mapper.apply(null, value);
                return flow.with(isNamed ? stream.mapValues(plain, named) : stream.mapValues(plain), Flow.TEXT);
            }
            case "flat_map": {
                var keys = Functions.keySelector(operator.get("key"));
                var values = Functions.flattener(operator.get("value"));
                org.apache.kafka.streams.kstream.KeyValueMapper<Object, Object, List<KeyValue<Object, Object>>> mapper =
                        (key, value) -> values.apply(key, value).stream()
                                .map(each -> new KeyValue<>(keys.apply(key, each), each))
                                .toList();
                return new Flow(isNamed ? stream.flatMap(mapper, named) : stream.flatMap(mapper), Flow.TEXT, Flow.TEXT);
            }
            case "flat_map_values": {
                var flattener = Functions.flattener(with);
                if (hasKey) {
                    org.apache.kafka.streams.kstream.ValueMapperWithKey<Object, Object, List<Object>> keyed = flattener::apply;
                    return flow.with(isNamed ? stream.flatMapValues(keyed, named) : stream.flatMapValues(keyed), Flow.TEXT);
                }
                org.apache.kafka.streams.kstream.ValueMapper<Object, List<Object>> plain = value -> flattener.apply(null, value);
                return flow.with(isNamed ? stream.flatMapValues(plain, named) : stream.flatMapValues(plain), Flow.TEXT);
            }
            case "select_key": {
                org.apache.kafka.streams.kstream.KeyValueMapper<Object, Object, Object> selector =
                        Functions.keySelector(with)::apply;
                return new Flow(
                        isNamed ? stream.selectKey(selector, named) : stream.selectKey(selector), Flow.TEXT, flow.values());
            }
            case "peek":
                return flow.with(isNamed ? stream.peek((key, value) -> {}, named) : stream.peek((key, value) -> {}));
            case "merge": {
                KStream<Object, Object> other = input(operator, 1).as();
                return flow.with(isNamed ? stream.merge(other, named) : stream.merge(other));
            }
            case "repartition": {
                Repartitioned<Object, Object> repartitioned = Repartitioned.with(flow.keys(), flow.values());
                if (isNamed) {
                    repartitioned = repartitioned.withName(operator.get("name").asText());
                }
                if (operator.has("partitions")) {
                    repartitioned = repartitioned.withNumberOfPartitions(operator.get("partitions").asInt());
                }
                return flow.with(stream.repartition(repartitioned));
            }
            case "to_table": {
                if (operator.has("as")) {
                    var rows = Stores.rows(this, operator, flow.keys(), flow.values());
                    return flow.with(isNamed ? stream.toTable(named, rows) : stream.toTable(rows));
                }
                return flow.with(isNamed ? stream.toTable(named) : stream.toTable());
            }
            default:
                throw Functions.unknown("operator on a stream", operator);
        }
    }

    private Flow tableOperator(JsonNode operator, Flow flow) {
        KTable<Object, Object> table = flow.as();
        boolean isNamed = operator.has("name");
        Named named = named(operator);
        JsonNode with = operator.get("with");
        switch (operator.get("op").asText()) {
            case "filter", "filter_not": {
                boolean isNegated = operator.get("op").asText().equals("filter_not");
                Predicate<Object, Object> predicate = predicate(with);
                if (operator.has("as")) {
                    var rows = Stores.rows(this, operator, flow.keys(), flow.values());
                    if (isNamed) {
                        return flow.with(isNegated ? table.filterNot(predicate, named, rows) : table.filter(predicate, named, rows));
                    }
                    return flow.with(isNegated ? table.filterNot(predicate, rows) : table.filter(predicate, rows));
                }
                if (isNamed) {
                    return flow.with(isNegated ? table.filterNot(predicate, named) : table.filter(predicate, named));
                }
                return flow.with(isNegated ? table.filterNot(predicate) : table.filter(predicate));
            }
            case "map_values": {
                var function = Functions.valueMapper(with);
                org.apache.kafka.streams.kstream.ValueMapperWithKey<Object, Object, Object> keyed = function::apply;
                org.apache.kafka.streams.kstream.ValueMapper<Object, Object> plain = value -> function.apply(null, value);
                boolean hasKey = operator.path("has_key").asBoolean();
                if (operator.has("as")) {
                    var rows = Stores.rows(this, operator, flow.keys(), Flow.TEXT);
                    if (isNamed) {
                        return flow.with(hasKey ? table.mapValues(keyed, named, rows) : table.mapValues(plain, named, rows), Flow.TEXT);
                    }
                    return flow.with(hasKey ? table.mapValues(keyed, rows) : table.mapValues(plain, rows), Flow.TEXT);
                }
                if (isNamed) {
                    return flow.with(hasKey ? table.mapValues(keyed, named) : table.mapValues(plain, named), Flow.TEXT);
                }
                return flow.with(hasKey ? table.mapValues(keyed) : table.mapValues(plain), Flow.TEXT);
            }
            case "to_stream": {
                if (with != null) {
                    org.apache.kafka.streams.kstream.KeyValueMapper<Object, Object, Object> selector =
                            Functions.keySelector(with)::apply;
                    return new Flow(
                            isNamed ? table.toStream(selector, named) : table.toStream(selector), Flow.TEXT, flow.values());
                }
                return flow.with(isNamed ? table.toStream(named) : table.toStream());
            }
            case "suppress":
                return flow.with(table.suppress(Stores.suppression(operator)));
            default:
                throw Functions.unknown("operator on a table", operator);
        }
    }
}
