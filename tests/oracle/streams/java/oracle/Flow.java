package oracle;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** Something the DSL returned (a stream, a table, a grouping) and what its keys and values are. */
record Flow(Object handle, Serde<Object> keys, Serde<Object> values) {
    static final Serde<Object> TEXT = any(Serdes.String());
    static final Serde<Object> NUMBER = any(Serdes.Long());

    @SuppressWarnings("unchecked")
    static Serde<Object> any(Serde<?> serde) {
        return (Serde<Object>) serde;
    }

    static Serde<Object> timeWindowed(long size) {
        return any(new WindowedSerdes.TimeWindowedSerde<>(Serdes.String(), size));
    }

    static Serde<Object> sessionWindowed() {
        return any(new WindowedSerdes.SessionWindowedSerde<>(Serdes.String()));
    }

    Flow with(Object next) {
        return new Flow(next, keys, values);
    }

    Flow with(Object next, Serde<Object> nextValues) {
        return new Flow(next, keys, nextValues);
    }

    @SuppressWarnings("unchecked")
    <T> T as() {
        return (T) handle;
    }
}
