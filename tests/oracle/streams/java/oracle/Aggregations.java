package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;

/** Groupings, windows and the folding of what they hold. Start at {@link #add}. */
final class Aggregations {
    private final SpecBuilder builder;
    private final JsonNode operator;
    private final Flow flow;
    private final Named named;

    private Aggregations(SpecBuilder builder, JsonNode operator) {
        this.builder = builder;
        this.operator = operator;
        this.flow = builder.input(operator, 0);
        this.named = builder.named(operator);
    }

    static void add(SpecBuilder builder, JsonNode operator) {
        Aggregations aggregations = new Aggregations(builder, operator);
        builder.keep(operator, switch (operator.get("op").asText()) {
            case "group_by" -> aggregations.groupBy();
            case "group_by_key" -> aggregations.groupByKey();
            case "cogroup" -> aggregations.cogroup();
            case "windowed_by" -> aggregations.windowedBy();
            default -> aggregations.fold();
        });
    }

    private Grouped<Object, Object> grouped(Serde<Object> keys, Serde<Object> values) {
        Grouped<Object, Object> grouped = Grouped.with(keys, values);
        return operator.has("name") ? grouped.withName(operator.get("name").asText()) : grouped;
    }

    private Flow groupByKey() {
        KStream<Object, Object> stream = flow.as();
        return flow.with(stream.groupByKey(grouped(flow.keys(), flow.values())));
    }

    private Flow groupBy() {
        var selector = Functions.keySelector(operator.get("with"));
        if (flow.handle() instanceof KTable) {
            KTable<Object, Object> table = flow.as();
            KeyValueMapper<Object, Object, KeyValue<Object, Object>> mapper =
                    (key, value) -> new KeyValue<>(selector.apply(key, value), value);
            return new Flow(table.groupBy(mapper, grouped(Flow.TEXT, flow.values())), Flow.TEXT, flow.values());
        }
        KStream<Object, Object> stream = flow.as();
        KeyValueMapper<Object, Object, Object> mapper = selector::apply;
        return new Flow(stream.groupBy(mapper, grouped(Flow.TEXT, flow.values())), Flow.TEXT, flow.values());
    }

    private Flow cogroup() {
        KGroupedStream<Object, Object> first = flow.as();
        CogroupedKStream<Object, Object> cogrouped = first.cogroup(aggregator(operator.get("adders").get(0)));
        for (int index = 1; index < operator.get("in").size(); index++) {
            KGroupedStream<Object, Object> next = builder.input(operator, index).as();
            cogrouped = cogrouped.cogroup(next, aggregator(operator.get("adders").get(index)));
        }
        return new Flow(cogrouped, flow.keys(), Flow.TEXT);
    }

    private Flow windowedBy() {
        JsonNode window = operator.get("window");
        Object windowed = flow.handle() instanceof KGroupedStream ? streamWindow(window) : cogroupWindow(window);
        return new Flow(new Windowing(windowed, window), Windows.keys(window), flow.values());
    }

    private Object streamWindow(JsonNode window) {
        KGroupedStream<Object, Object> grouped = flow.as();
        boolean isFinal = operator.path("emit").asText().equals("final");
        if (window.get("kind").asText().equals("session")) {
            SessionWindowedKStream<Object, Object> windowed = grouped.windowedBy(Windows.session(window));
            return isFinal ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
        }
        TimeWindowedKStream<Object, Object> windowed =
                switch (window.get("kind").asText()) {
                    case "time" -> grouped.windowedBy(Windows.time(window));
                    case "sliding" -> grouped.windowedBy(Windows.sliding(window));
                    case "unlimited" -> grouped.windowedBy(Windows.unlimited(window));
                    default -> throw Functions.unknown("window", window);
                };
        return isFinal ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
    }

    private Object cogroupWindow(JsonNode window) {
        CogroupedKStream<Object, Object> grouped = flow.as();
        return switch (window.get("kind").asText()) {
            case "time" -> grouped.windowedBy(Windows.time(window));
            case "sliding" -> grouped.windowedBy(Windows.sliding(window));
            case "session" -> grouped.windowedBy(Windows.session(window));
            default -> throw Functions.unknown("window", window);
        };
    }

    private static Aggregator<Object, Object, Object> aggregator(JsonNode spec) {
        return Functions.aggregator(spec)::apply;
    }

    private Initializer<Object> initializer() {
        JsonNode initial = operator.get("initial");
        return () -> initial == null ? null : initial.asText();
    }

    private Merger<Object, Object> merger() {
        return Functions.merger(operator.get("merger"))::apply;
    }

    private Reducer<Object> reducer(String field) {
        return Functions.reducer(operator.get(field))::apply;
    }

    private Flow fold() {
        boolean isCount = operator.get("op").asText().equals("count");
        boolean isReduce = operator.get("op").asText().equals("reduce");
        Serde<Object> values = isCount ? Flow.NUMBER : isReduce ? flow.values() : Flow.TEXT;
        Object handle = flow.handle() instanceof Windowing windowing ? windowing.grouping() : flow.handle();
        Object table = switch (operator.get("op").asText()) {
            case "count" -> count(handle);
            case "reduce" -> reduce(handle, values);
            default -> aggregate(handle, values);
        };
        return flow.with(table, values);
    }

    private boolean hasStore() {
        return operator.has("as");
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object count(Object handle) {
        Serde<Object> number = Flow.NUMBER;
        if (handle instanceof KGroupedStream grouped) {
            if (hasStore()) {
                var rows = (org.apache.kafka.streams.kstream.Materialized) Stores.rows(builder, operator, Flow.TEXT, number);
                return named == null ? grouped.count(rows) : grouped.count(named, rows);
            }
            return named == null ? grouped.count() : grouped.count(named);
        }
        if (handle instanceof KGroupedTable grouped) {
            if (hasStore()) {
                var rows = (org.apache.kafka.streams.kstream.Materialized) Stores.rows(builder, operator, Flow.TEXT, number);
                return named == null ? grouped.count(rows) : grouped.count(named, rows);
            }
            return named == null ? grouped.count() : grouped.count(named);
        }
        if (handle instanceof TimeWindowedKStream grouped) {
            if (hasStore()) {
                var rows = (org.apache.kafka.streams.kstream.Materialized) Stores.windows(builder, operator, Flow.TEXT, number);
                return named == null ? grouped.count(rows) : grouped.count(named, rows);
            }
            return named == null ? grouped.count() : grouped.count(named);
        }
        SessionWindowedKStream grouped = (SessionWindowedKStream) handle;
        if (hasStore()) {
            var rows = (org.apache.kafka.streams.kstream.Materialized) Stores.sessions(builder, operator, Flow.TEXT, number);
            return named == null ? grouped.count(rows) : grouped.count(named, rows);
        }
        return named == null ? grouped.count() : grouped.count(named);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object reduce(Object handle, Serde<Object> values) {
        Reducer<Object> adder = reducer("adder");
        if (handle instanceof KGroupedStream grouped) {
            if (hasStore()) {
                var rows = Stores.rows(builder, operator, Flow.TEXT, values);
                return named == null ? grouped.reduce(adder, rows) : grouped.reduce(adder, named, rows);
            }
            return grouped.reduce(adder);
        }
        if (handle instanceof KGroupedTable grouped) {
            Reducer<Object> subtractor = reducer("subtractor");
            if (hasStore()) {
                var rows = Stores.rows(builder, operator, Flow.TEXT, values);
                return named == null
                        ? grouped.reduce(adder, subtractor, rows)
                        : grouped.reduce(adder, subtractor, named, rows);
            }
            return grouped.reduce(adder, subtractor);
        }
        if (handle instanceof TimeWindowedKStream grouped) {
            if (hasStore()) {
                var windows = Stores.windows(builder, operator, Flow.TEXT, values);
                return named == null ? grouped.reduce(adder, windows) : grouped.reduce(adder, named, windows);
            }
            return named == null ? grouped.reduce(adder) : grouped.reduce(adder, named);
        }
        SessionWindowedKStream grouped = (SessionWindowedKStream) handle;
        if (hasStore()) {
            var sessions = Stores.sessions(builder, operator, Flow.TEXT, values);
            return named == null ? grouped.reduce(adder, sessions) : grouped.reduce(adder, named, sessions);
        }
        return named == null ? grouped.reduce(adder) : grouped.reduce(adder, named);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object aggregate(Object handle, Serde<Object> values) {
        Initializer<Object> initial = initializer();
        if (handle instanceof CogroupedKStream grouped) {
            if (hasStore()) {
                var rows = Stores.rows(builder, operator, Flow.TEXT, values);
                return named == null ? grouped.aggregate(initial, rows) : grouped.aggregate(initial, named, rows);
            }
            return named == null ? grouped.aggregate(initial) : grouped.aggregate(initial, named);
        }
        if (handle instanceof TimeWindowedCogroupedKStream grouped) {
            if (hasStore()) {
                var windows = Stores.windows(builder, operator, Flow.TEXT, values);
                return named == null ? grouped.aggregate(initial, windows) : grouped.aggregate(initial, named, windows);
            }
            return named == null ? grouped.aggregate(initial) : grouped.aggregate(initial, named);
        }
        if (handle instanceof SessionWindowedCogroupedKStream grouped) {
            if (hasStore()) {
                var sessions = Stores.sessions(builder, operator, Flow.TEXT, values);
                return named == null
                        ? grouped.aggregate(initial, merger(), sessions)
                        : grouped.aggregate(initial, merger(), named, sessions);
            }
            return named == null ? grouped.aggregate(initial, merger()) : grouped.aggregate(initial, merger(), named);
        }
        Aggregator<Object, Object, Object> adder = aggregator(operator.get("adder"));
        if (handle instanceof KGroupedStream grouped) {
            if (hasStore()) {
                var rows = Stores.rows(builder, operator, Flow.TEXT, values);
                return named == null ? grouped.aggregate(initial, adder, rows) : grouped.aggregate(initial, adder, named, rows);
            }
            return grouped.aggregate(initial, adder);
        }
        if (handle instanceof KGroupedTable grouped) {
            Aggregator<Object, Object, Object> subtractor = aggregator(operator.get("subtractor"));
            if (hasStore()) {
                var rows = Stores.rows(builder, operator, Flow.TEXT, values);
                return named == null
                        ? grouped.aggregate(initial, adder, subtractor, rows)
                        : grouped.aggregate(initial, adder, subtractor, named, rows);
            }
            return named == null
                    ? grouped.aggregate(initial, adder, subtractor)
                    : grouped.aggregate(initial, adder, subtractor, named);
        }
        if (handle instanceof TimeWindowedKStream grouped) {
            if (hasStore()) {
                var windows = Stores.windows(builder, operator, Flow.TEXT, values);
                return named == null
                        ? grouped.aggregate(initial, adder, windows)
                        : grouped.aggregate(initial, adder, named, windows);
            }
            return named == null ? grouped.aggregate(initial, adder) : grouped.aggregate(initial, adder, named);
        }
        SessionWindowedKStream grouped = (SessionWindowedKStream) handle;
        if (hasStore()) {
            var sessions = Stores.sessions(builder, operator, Flow.TEXT, values);
            return named == null
                    ? grouped.aggregate(initial, adder, merger(), sessions)
                    : grouped.aggregate(initial, adder, merger(), named, sessions);
        }
        return named == null
                ? grouped.aggregate(initial, adder, merger())
                : grouped.aggregate(initial, adder, merger(), named);
    }

    /** A windowed grouping, with the window whose size its keys are written with. */
    private record Windowing(Object grouping, JsonNode window) {}
}
