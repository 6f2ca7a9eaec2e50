package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Processors a case may name, each with a twin of the same name in processors.py. Start at {@link #add}. */
final class Processors {
    private Processors() {}

    static void add(SpecBuilder builder, JsonNode operator) {
        if (operator.get("op").asText().equals("add_store")) {
            builder.rememberStore(operator.get("store").asText());
            builder.streams.addStateStore(store(operator, builder.inMemory));
            return;
        }
        if (operator.get("op").asText().equals("add_global_store")) {
            builder.addGlobalStore(operator, store(operator, builder.inMemory), () -> new Fill(operator));
            return;
        }
        Flow flow = builder.input(operator, 0);
        Named named = builder.named(operator);
        List<String> names = new ArrayList<>();
        operator.path("stores").forEach(name -> names.add(name.asText()));
        String[] stores = names.toArray(String[]::new);
        if (flow.handle() instanceof KTable) {
            builder.keep(operator, flow.with(transformed(builder, operator, flow, named, stores), Flow.TEXT));
            return;
        }
        KStream<Object, Object> stream = flow.as();
        if (operator.get("op").asText().equals("process")) {
            KStream<Object, Object> processed = named == null
                    ? stream.process(() -> processor(operator), stores)
                    : stream.process(() -> processor(operator), named, stores);
            builder.keep(operator, new Flow(processed, Flow.TEXT, Flow.TEXT));
        } else {
            KStream<Object, Object> processed = named == null
                    ? stream.processValues(() -> new Annotate(operator), stores)
                    : stream.processValues(() -> new Annotate(operator), named, stores);
            builder.keep(operator, flow.with(processed, Flow.TEXT));
        }
    }

    private static KTable<Object, Object> transformed(
            SpecBuilder builder, JsonNode operator, Flow flow, Named named, String[] stores) {
        KTable<Object, Object> table = flow.as();
        if (operator.has("as")) {
            var rows = oracle.Stores.rows(builder, operator, flow.keys(), Flow.TEXT);
            return named == null
                    ? table.transformValues(() -> new Numbered(operator), rows, stores)
                    : table.transformValues(() -> new Numbered(operator), rows, named, stores);
        }
        return named == null
                ? table.transformValues(() -> new Numbered(operator), stores)
                : table.transformValues(() -> new Numbered(operator), named, stores);
    }

    private static StoreBuilder<?> store(JsonNode operator, boolean inMemory) {
        String name = operator.get("store").asText();
        StoreBuilder<?> store = switch (operator.get("kind").asText()) {
            case "key-value" -> Stores.keyValueStoreBuilder(
                    inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name),
                    Flow.TEXT,
                    Flow.TEXT);
            case "timestamped" -> Stores.timestampedKeyValueStoreBuilder(
                    inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentTimestampedKeyValueStore(name),
                    Flow.TEXT,
                    Flow.TEXT);
            case "window" -> Stores.windowStoreBuilder(windows(operator, inMemory), Flow.TEXT, Flow.TEXT);
            case "session" -> {
                Duration retention = Windows.milliseconds(operator, "retention");
                yield Stores.sessionStoreBuilder(
                        inMemory ? Stores.inMemorySessionStore(name, retention) : Stores.persistentSessionStore(name, retention),
                        Flow.TEXT,
                        Flow.TEXT);
            }
            default -> throw Functions.unknown("store", operator);
        };
        return operator.path("logging").asBoolean(true) ? store : store.withLoggingDisabled();
    }

    private static WindowBytesStoreSupplier windows(JsonNode operator, boolean inMemory) {
        String name = operator.get("store").asText();
        Duration retention = Windows.milliseconds(operator, "retention");
        Duration size = Windows.milliseconds(operator, "size");
        boolean hasDuplicates = operator.path("duplicates").asBoolean();
        return inMemory
                ? Stores.inMemoryWindowStore(name, retention, size, hasDuplicates)
                : Stores.persistentWindowStore(name, retention, size, hasDuplicates);
    }

    private static Processor<Object, Object, Object, Object> processor(JsonNode spec) {
        return switch (spec.get("processor").asText()) {
            case "changed" -> new Changed(spec);
            case "stamp" -> new Stamp(spec);
            case "twice" -> new Twice();
            case "tick" -> new Tick(spec);
            case "neighbours" -> new Neighbours(spec);
            case "sessions" -> new Sessions(spec);
            case "previous" -> new Previous(spec);
            case "ranges" -> new Ranges(spec);
            case "lookup" -> new Lookup(spec);
            case "consult" -> new Consult(spec);
            default -> throw Functions.unknown("processor", spec);
        };
    }

    private static String firstStore(JsonNode spec) {
        return spec.get("stores").get(0).asText();
    }

    /** Passes on what differs from the last value of the key. */
    private static final class Changed extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        Changed(JsonNode spec) {
            name = firstStore(spec);
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            Object before = store.get(record.key());
            if (record.value() == null) {
                store.delete(record.key());
            } else {
                store.put(record.key(), record.value());
            }
            if (!Functions.text(before).equals(Functions.text(record.value()))) {
                context().forward(record.withValue(Functions.clip(Functions.text(before) + ">" + Functions.text(record.value()))));
            }
        }
    }

    /** Moves the timestamp, adds a header, and tells where the record came from and what time it is. */
    private static final class Stamp extends ContextualProcessor<Object, Object, Object, Object> {
        private final long shift;

        Stamp(JsonNode spec) {
            shift = spec.path("shift").asLong(0);
        }

        @Override
        public void process(Record<Object, Object> record) {
            RecordMetadata from = context().recordMetadata().orElseThrow();
            long timestamp = Math.max(0, record.timestamp() + shift);
            String value = Functions.text(record.value()) + "^" + from.topic() + from.offset() + "^"
                    + context().currentStreamTimeMs();
            Record<Object, Object> next = record.withValue((Object) Functions.clip(value)).withTimestamp(timestamp);
            next.headers().add("stamp", Functions.text(record.key()).getBytes(StandardCharsets.UTF_8));
            context().forward(next);
        }
    }

    /** Every record under its own key and then under the key "all". */
    private static final class Twice extends ContextualProcessor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
            context().forward(record);
            context().forward(record.withKey((Object) "all").withTimestamp(record.timestamp() + 1));
        }
    }

    /** Counts by key, and tells all counts at every tick of stream time or of the wall clock. */
    private static final class Tick extends ContextualProcessor<Object, Object, Object, Object> {
        private static final String TICKS = "#ticks";
        private final JsonNode spec;
        private KeyValueStore<Object, Object> store;
        private Cancellable schedule;

        Tick(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(firstStore(spec));
            PunctuationType type = spec.get("clock").asText().equals("wall")
                    ? PunctuationType.WALL_CLOCK_TIME
                    : PunctuationType.STREAM_TIME;
            schedule = context.schedule(Duration.ofMillis(spec.get("interval").asLong()), type, this::tick);
        }

        @Override
        public void process(Record<Object, Object> record) {
            Object key = record.key() == null ? "none" : record.key();
            Object before = store.get(key);
            store.put(key, Functions.clip((before == null ? "" : before + ",") + Functions.text(record.value())));
        }

        private void tick(long timestamp) {
            // How often it ticked is kept with the rest, so that a task made anew goes on counting.
            Object ticked = store.get(TICKS);
            int ticks = 1 + (ticked == null ? 0 : Integer.parseInt(ticked.toString()));
            List<KeyValue<Object, Object>> entries = new ArrayList<>();
            try (KeyValueIterator<Object, Object> all = store.all()) {
                all.forEachRemaining(entries::add);
            }
            for (KeyValue<Object, Object> entry : entries) {
                if (entry.key.equals(TICKS)) {
                    continue;
                }
                context().forward(new Record<>(entry.key, Functions.clip(entry.value + "!" + timestamp), timestamp));
                if (Functions.digest(entry.key, entry.value) % 3 == 0) {
                    store.delete(entry.key);
                }
            }
            store.put(TICKS, String.valueOf(ticks));
            if (spec.has("limit") && ticks >= spec.get("limit").asInt()) {
                schedule.cancel();
            }
        }
    }

    /** What a window store holds of the key near the record's time, forwards and backwards, and of all keys. */
    private static final class Neighbours extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private WindowStore<Object, Object> store;

        Neighbours(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(firstStore(spec));
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            long reach = spec.get("reach").asLong();
            long from = Math.max(0, record.timestamp() - reach);
            long to = record.timestamp() + reach;
            store.put(record.key(), record.value(), record.timestamp());
            StringBuilder found = new StringBuilder();
            try (WindowStoreIterator<Object> near = store.fetch(record.key(), from, to)) {
                near.forEachRemaining(entry -> found.append(entry.key).append('=').append(entry.value).append(' '));
            }
            found.append('<');
            try (WindowStoreIterator<Object> near = store.backwardFetch(record.key(), from, to)) {
                near.forEachRemaining(entry -> found.append(entry.key).append(' '));
            }
            found.append('*');
            // Their order depends on how the store lies on disk, so it is not compared.
            List<String> every = new ArrayList<>();
            try (KeyValueIterator<Windowed<Object>, Object> near = store.fetchAll(from, to)) {
                near.forEachRemaining(entry -> every.add(Functions.text(entry.key.key()) + entry.key.window().start() + " "));
            }
            every.stream().sorted().forEach(found::append);
            every.clear();
            if (from % 3 == 0 || from % 2 == 1) {
                Object low = from % 3 == 0 ? record.key() : null;
                Object high = from % 3 == 0 ? null : record.key();
                try (KeyValueIterator<Windowed<Object>, Object> between = store.fetch(low, high, from, to)) {
                    between.forEachRemaining(
                            entry -> every.add(Functions.text(entry.key.key()) + entry.key.window().start() + ";"));
                }
            }
            every.stream().sorted().forEach(found::append);
            found.append('.');
            if (!spec.get("duplicates").asBoolean()) {
                found.append(store.fetch(record.key(), from));
            }
            context().forward(record.withValue((Object) found.toString()));
        }
    }

    /** Sessions by hand: those near the record are merged into one. */
    private static final class Sessions extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode spec;
        private SessionStore<Object, Object> store;

        Sessions(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(firstStore(spec));
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null || record.value() == null) {
                return;
            }
            long reach = spec.get("reach").asLong();
            long start = record.timestamp();
            long end = record.timestamp();
            StringBuilder merged = new StringBuilder();
            List<Windowed<Object>> old = new ArrayList<>();
            try (KeyValueIterator<Windowed<Object>, Object> near =
                    store.findSessions(record.key(), Math.max(0, start - reach), end + reach)) {
                while (near.hasNext()) {
                    KeyValue<Windowed<Object>, Object> entry = near.next();
                    start = Math.min(start, entry.key.window().start());
                    end = Math.max(end, entry.key.window().end());
                    merged.append(entry.value).append('+');
                    old.add(entry.key);
                }
            }
            old.forEach(store::remove);
            Object value = Functions.clip(merged + Functions.text(record.value()));
            store.put(new Windowed<>(record.key(), new SessionWindow(start, end)), value);
            StringBuilder all = new StringBuilder();
            try (KeyValueIterator<Windowed<Object>, Object> every = store.fetch(record.key())) {
                every.forEachRemaining(entry -> all.append(Functions.text(entry.key)).append('=').append(entry.value).append(' '));
            }
            context().forward(record.withValue((Object) all.toString()));
        }
    }

    /** The value before and when it was written, from a store that keeps timestamps. */
    private static final class Previous extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private TimestampedKeyValueStore<Object, Object> store;

        Previous(JsonNode spec) {
            name = firstStore(spec);
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            if (record.key() == null) {
                return;
            }
            ValueAndTimestamp<Object> before = store.get(record.key());
            store.put(record.key(), ValueAndTimestamp.make(record.value(), record.timestamp()));
            String text = before == null ? "none" : before.value() + "@" + before.timestamp();
            context().forward(record.withValue((Object) Functions.clip(text + ">" + Functions.text(record.value()))));
        }
    }

    /** Ranges of a key-value store, both ways, and what is put only where nothing was. */
    private static final class Ranges extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private KeyValueStore<Object, Object> store;

        Ranges(JsonNode spec) {
            name = firstStore(spec);
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            Object key = record.key() == null ? "none" : record.key();
            Object present = store.putIfAbsent(key, record.value());
            StringBuilder found = new StringBuilder(Functions.text(present)).append('>');
            try (KeyValueIterator<Object, Object> upward = store.range("b", key)) {
                upward.forEachRemaining(entry -> found.append(entry.key));
            }
            found.append('<');
            try (KeyValueIterator<Object, Object> downward = store.reverseAll()) {
                downward.forEachRemaining(entry -> found.append(entry.key));
            }
            if (Functions.digest(key, record.value()) % 4 == 0) {
                found.append('-').append(store.delete(key));
            }
            context().forward(record.withKey(key).withValue((Object) found.toString()));
        }
    }

    /** What a table's own store says about the key at that moment. */
    private static final class Lookup extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;
        private TimestampedKeyValueStore<Object, Object> store;

        Lookup(JsonNode spec) {
            name = firstStore(spec);
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            store = context.getStateStore(name);
        }

        @Override
        public void process(Record<Object, Object> record) {
            ValueAndTimestamp<Object> row = record.key() == null ? null : store.get(record.key());
            String text = row == null ? "none" : row.value() + "@" + row.timestamp();
            context().forward(record.withValue((Object) Functions.clip(text + "?" + Functions.text(record.value()))));
        }
    }

    /** Puts what a global topic says into its store: the last two values of a key, or nothing after a null. */
    private static final class Fill implements Processor<Object, Object, Void, Void> {
        private final JsonNode spec;
        private ProcessorContext<Void, Void> context;

        Fill(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(ProcessorContext<Void, Void> given) {
            context = given;
        }

        @Override
        public void process(Record<Object, Object> record) {
            Object key = record.key() == null ? "nobody" : record.key();
            String topic = context.recordMetadata().map(RecordMetadata::topic).orElse("nowhere");
            String news = record.value() + "/" + topic + "/" + record.headers().toArray().length;
            if (spec.get("kind").asText().equals("timestamped")) {
                TimestampedKeyValueStore<Object, Object> store = context.getStateStore(spec.get("store").asText());
                ValueAndTimestamp<Object> before = store.get(key);
                Object value = joined(before == null ? null : before.value(), news);
                store.put(key, record.value() == null ? null : ValueAndTimestamp.make(value, record.timestamp()));
            } else {
                KeyValueStore<Object, Object> store = context.getStateStore(spec.get("store").asText());
                store.put(key, record.value() == null ? null : joined(store.get(key), news));
            }
        }

        private static Object joined(Object before, String news) {
            String text = Functions.text(before);
            return Functions.clip(text.substring(text.lastIndexOf(';') + 1) + ";" + news);
        }
    }

    /** What a global store knows of the key at that moment, and how many keys it knows. */
    private static final class Consult extends ContextualProcessor<Object, Object, Object, Object> {
        private final String name;

        Consult(JsonNode spec) {
            name = spec.get("global").asText();
        }

        @Override
        public void process(Record<Object, Object> record) {
            KeyValueStore<Object, Object> store = context().getStateStore(name);
            Object row = store.get(record.key() == null ? "nobody" : record.key());
            String told = row instanceof ValueAndTimestamp<?> stamped
                    ? stamped.value() + "@" + stamped.timestamp()
                    : Functions.text(row);
            int known = 0;
            try (KeyValueIterator<Object, Object> all = store.all()) {
                for (; all.hasNext(); all.next()) {
                    known++;
                }
            }
            String text = told + "?" + Functions.text(record.value()) + "#" + known;
            context().forward(record.withValue((Object) Functions.clip(text)));
        }
    }

    /** Values of a table with the number of times the key was seen, where there is a store to count in. */
    private static final class Numbered implements ValueTransformerWithKey<Object, Object, Object> {
        private final JsonNode spec;
        private KeyValueStore<Object, Object> store;

        Numbered(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            store = spec.path("stores").isEmpty() ? null : context.getStateStore(firstStore(spec));
        }

        @Override
        public Object transform(Object key, Object value) {
            if (value == null) {
                return null;
            }
            if (store == null) {
                return Functions.clip(Functions.text(key) + "~" + Functions.text(value));
            }
            String name = Functions.text(key);
            Object before = store.get(name);
            int seen = 1 + (before == null ? 0 : Integer.parseInt(before.toString()));
            store.put(name, String.valueOf(seen));
            return Functions.clip(Functions.text(value) + "#" + seen);
        }

        @Override
        public void close() {}
    }

    /** Keeps the key: a value with the number of headers and the key's text, and a header more. */
    private static final class Annotate extends ContextualFixedKeyProcessor<Object, Object, Object> {
        private final JsonNode spec;
        private KeyValueStore<Object, Object> store;

        Annotate(JsonNode spec) {
            this.spec = spec;
        }

        @Override
        public void init(FixedKeyProcessorContext<Object, Object> context) {
            super.init(context);
            store = spec.path("stores").isEmpty() ? null : context.getStateStore(firstStore(spec));
        }

        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            int headers = 0;
            for (Header ignored : record.headers()) {
                headers++;
            }
            String value = Functions.text(record.value()) + "/" + headers;
            if (store != null) {
                Object before = store.get("last");
                store.put("last", Functions.text(record.key()));
                value += "/" + Functions.text(before);
            }
            FixedKeyRecord<Object, Object> next = record.withValue((Object) Functions.clip(value));
            next.headers().add("note", Functions.text(record.key()).getBytes(StandardCharsets.UTF_8));
            context().forward(next);
        }
    }
}
