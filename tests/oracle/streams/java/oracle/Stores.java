package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** How state is kept, from the field "as" of an operator: a name, or only serdes where there is none. */
final class Stores {
    private Stores() {}

    static Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> rows(
            SpecBuilder builder, JsonNode operator, Serde<Object> keys, Serde<Object> values) {
        JsonNode as = operator.get("as");
        if (as.has("versioned")) {
            // Not remembered: such a store cannot list its entries.
            return Materialized.<Object, Object>as(org.apache.kafka.streams.state.Stores.persistentVersionedKeyValueStore(
                            as.get("store").asText(), Windows.milliseconds(as, "versioned")))
                    .withKeySerde(keys)
                    .withValueSerde(values);
        }
        return materialized(builder, operator, keys, values);
    }

    static Materialized<Object, Object, WindowStore<Bytes, byte[]>> windows(
            SpecBuilder builder, JsonNode operator, Serde<Object> keys, Serde<Object> values) {
        return materialized(builder, operator, keys, values);
    }

    static Materialized<Object, Object, SessionStore<Bytes, byte[]>> sessions(
            SpecBuilder builder, JsonNode operator, Serde<Object> keys, Serde<Object> values) {
        return materialized(builder, operator, keys, values);
    }

    private static <S extends StateStore> Materialized<Object, Object, S> materialized(
            SpecBuilder builder, JsonNode operator, Serde<Object> keys, Serde<Object> values) {
        JsonNode as = operator.get("as");
        Materialized<Object, Object, S> materialized;
        if (as.has("store")) {
            builder.rememberStore(as.get("store").asText());
            materialized = Materialized.<Object, Object, S>as(as.get("store").asText()).withKeySerde(keys).withValueSerde(values);
        } else {
            materialized = Materialized.with(keys, values);
        }
        if (as.has("retention")) {
            materialized = materialized.withRetention(Windows.milliseconds(as, "retention"));
        }
        if (as.path("caching").asBoolean(true)) {
            materialized = materialized.withCachingEnabled();
        } else {
            materialized = materialized.withCachingDisabled();
        }
        return as.path("logging").asBoolean(true) ? materialized : materialized.withLoggingDisabled();
    }

    static Suppressed<Object> suppression(JsonNode operator) {
        Suppressed<Object> suppressed;
        if (operator.has("wait")) {
            suppressed = Suppressed.untilTimeLimit(Windows.milliseconds(operator, "wait"), buffer(operator));
        } else {
            suppressed = untilClose();
        }
        return operator.has("name") ? suppressed.withName(operator.get("name").asText()) : suppressed;
    }

    private static Suppressed.BufferConfig<?> buffer(JsonNode operator) {
        Suppressed.EagerBufferConfig buffer;
        if (operator.has("max_records")) {
            buffer = Suppressed.BufferConfig.maxRecords(operator.get("max_records").asLong());
        } else if (operator.has("max_bytes")) {
            buffer = Suppressed.BufferConfig.maxBytes(operator.get("max_bytes").asLong());
        } else {
            return Suppressed.BufferConfig.unbounded();
        }
        return operator.path("is_strict").asBoolean() ? buffer.shutDownWhenFull() : buffer.emitEarlyWhenFull();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Suppressed<Object> untilClose() {
        return (Suppressed) Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded());
    }
}
