package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;

/** Windows from their JSON form; a join window without grace is the old form that emits unmatched records at once. */
final class Windows {
    private Windows() {}

    static Duration milliseconds(JsonNode spec, String field) {
        return Duration.ofMillis(spec.get(field).asLong());
    }

    static TimeWindows time(JsonNode spec) {
        TimeWindows windows = TimeWindows.ofSizeAndGrace(milliseconds(spec, "size"), milliseconds(spec, "grace"));
        return spec.has("advance") ? windows.advanceBy(milliseconds(spec, "advance")) : windows;
    }

    static SlidingWindows sliding(JsonNode spec) {
        return SlidingWindows.ofTimeDifferenceAndGrace(milliseconds(spec, "difference"), milliseconds(spec, "grace"));
    }

    static SessionWindows session(JsonNode spec) {
        return SessionWindows.ofInactivityGapAndGrace(milliseconds(spec, "gap"), milliseconds(spec, "grace"));
    }

    static UnlimitedWindows unlimited(JsonNode spec) {
        return UnlimitedWindows.of().startOn(java.time.Instant.ofEpochMilli(spec.get("start").asLong()));
    }

    @SuppressWarnings("deprecation")
    static JoinWindows join(JsonNode spec) {
        Duration before = milliseconds(spec, "before");
        JoinWindows windows = spec.has("grace")
                ? JoinWindows.ofTimeDifferenceAndGrace(before, milliseconds(spec, "grace"))
                : JoinWindows.of(before);
        return windows.after(milliseconds(spec, "after"));
    }

    /** How the keys of a windowed table are written. */
    static Serde<Object> keys(JsonNode spec) {
        return switch (spec.get("kind").asText()) {
            case "time" -> Flow.timeWindowed(spec.get("size").asLong());
            case "sliding" -> Flow.timeWindowed(spec.get("difference").asLong());
            case "unlimited" -> Flow.timeWindowed(Long.MAX_VALUE);
            case "session" -> Flow.sessionWindowed();
            default -> throw Functions.unknown("window", spec);
        };
    }
}
