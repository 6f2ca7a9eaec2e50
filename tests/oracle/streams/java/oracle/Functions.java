package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.TimestampExtractor;

/**
 * The functions a case may name. Each has a twin of the same name in functions.py, and gives the same text.
 *
 * <p>Values are texts, but for counts. Functions that see a number or a windowed key take its text. Start at {@link
 * #text}.
 */
final class Functions {
    private static final int LONGEST = 60;

    private Functions() {}

    static String text(Object value) {
        if (value instanceof Windowed<?> windowed) {
            return text(windowed.key()) + "@" + windowed.window().start() + "/" + windowed.window().end();
        }
        return String.valueOf(value);
    }

    /** A small number that depends on every character. */
    static int digest(Object... parts) {
        int digest = 7;
        for (Object part : parts) {
            for (char letter : text(part).toCharArray()) {
                digest = (digest * 31 + letter) % 9973;
            }
            digest = (digest * 31 + 1) % 9973;
        }
        return digest;
    }

    /** Values grow with every step; past a length only their beginning and a digest of the whole are kept. */
    static String clip(String value) {
        return value.length() <= LONGEST ? value : value.substring(0, LONGEST / 2) + "~" + digest(value);
    }

    static boolean isChosen(JsonNode spec, Object... parts) {
        return digest(parts) % spec.get("mod").asInt() == spec.path("rest").asInt(0);
    }

    private static void failIfChosen(JsonNode spec, Object... parts) {
        if (isChosen(spec, parts)) {
            throw new IllegalArgumentException("the case wants this to fail");
        }
    }

    /** Reads a record's time: another than it has, or one that makes no sense. */
    static TimestampExtractor clock(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "shifted" -> (record, previous) -> Math.max(0, record.timestamp() - spec.get("by").asLong());
            case "invalid" -> (record, previous) -> isChosen(spec, record.value()) ? -1 : record.timestamp();
            case "previous" -> (record, previous) ->
                    isChosen(spec, record.value()) && previous >= 0 ? previous : record.timestamp();
            default -> throw unknown("clock", spec);
        };
    }

    static BiFunction<Object, Object, Boolean> predicate(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "digest" -> (key, value) -> isChosen(spec, key, value);
            case "key_digest" -> (key, value) -> isChosen(spec, key);
            case "value_digest" -> (key, value) -> isChosen(spec, value);
            case "has_value" -> (key, value) -> value != null;
            case "has_key" -> (key, value) -> key != null;
            case "longer" -> (key, value) -> text(value).length() > spec.get("than").asInt();
            case "failing" -> (key, value) -> {
                failIfChosen(spec, key, value);
                return true;
            };
            default -> throw unknown("predicate", spec);
        };
    }

    static BiFunction<Object, Object, Object> valueMapper(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "append" -> (key, value) -> clip(text(value) + spec.get("text").asText());
            case "text" -> (key, value) -> text(value);
            case "with_key" -> (key, value) -> clip(text(key) + ":" + text(value));
            case "nullable" -> (key, value) -> isChosen(spec, value) ? null : clip(text(value) + "n");
            case "keep_null" -> (key, value) -> value == null ? null : clip(text(value) + "k");
            case "failing" -> (key, value) -> {
                failIfChosen(spec, key, value);
                return clip(text(value) + "f");
            };
            default -> throw unknown("value mapper", spec);
        };
    }

    static BiFunction<Object, Object, Object> keySelector(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "first" -> (key, value) -> text(value).substring(0, Math.min(1, text(value).length()));
            case "bucket" -> (key, value) -> "b" + digest(value) % spec.get("mod").asInt();
            case "nullable_bucket" -> (key, value) ->
                    digest(value) % spec.get("mod").asInt() == 0 ? null : "b" + digest(value) % spec.get("mod").asInt();
            case "key_bucket" -> (key, value) -> "k" + digest(key) % spec.get("mod").asInt();
            case "key_text" -> (key, value) -> text(key);
            default -> throw unknown("key selector", spec);
        };
    }

    static BiFunction<Object, Object, List<Object>> flattener(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "split" -> (key, value) -> List.of((Object[]) text(value).split(",", -1));
            case "repeat" -> (key, value) -> {
                List<Object> copies = new ArrayList<>();
                for (int copy = 0; copy < digest(value) % spec.get("mod").asInt(); copy++) {
                    copies.add(clip(text(value) + "#" + copy));
                }
                return copies;
            };
            default -> throw unknown("flattener", spec);
        };
    }

    /** Takes key, left and right. */
    static TriFunction joiner(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "pair" -> (key, left, right) -> clip("(" + text(left) + "," + text(right) + ")");
            case "pair_key" -> (key, left, right) -> clip(text(key) + "(" + text(left) + "," + text(right) + ")");
            case "failing" -> (key, left, right) -> {
                failIfChosen(spec, left, right);
                return clip("(" + text(left) + "," + text(right) + ")");
            };
            case "nullable_pair" -> (key, left, right) ->
                    isChosen(spec, left, right) ? null : clip("(" + text(left) + "," + text(right) + ")");
            default -> throw unknown("joiner", spec);
        };
    }

    static BiFunction<Object, Object, Object> reducer(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "concat" -> (aggregate, value) -> clip(text(aggregate) + "|" + text(value));
            case "minus" -> (aggregate, value) -> clip(text(aggregate) + "-" + text(value));
            case "last" -> (aggregate, value) -> value;
            case "nullable" -> (aggregate, value) ->
                    isChosen(spec, aggregate, value) ? null : clip(text(aggregate) + "|" + text(value));
            default -> throw unknown("reducer", spec);
        };
    }

    /** Takes key, value and aggregate. */
    static TriFunction aggregator(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "concat" -> (key, value, aggregate) -> clip(text(aggregate) + "|" + text(value));
            case "failing" -> (key, value, aggregate) -> {
                failIfChosen(spec, key, value);
                return clip(text(aggregate) + "|" + text(value));
            };
            case "minus" -> (key, value, aggregate) -> clip(text(aggregate) + "-" + text(value));
            case "keyed" -> (key, value, aggregate) -> clip(text(aggregate) + "|" + text(key) + "=" + text(value));
            case "nullable" -> (key, value, aggregate) ->
                    isChosen(spec, aggregate, value) ? null : clip(text(aggregate) + "|" + text(value));
            default -> throw unknown("aggregator", spec);
        };
    }

    /** Takes key, one aggregate and the other. */
    static TriFunction merger(JsonNode spec) {
        return switch (spec.get("fn").asText()) {
            case "merge" -> (key, one, other) -> clip("[" + text(one) + "+" + text(other) + "]");
            default -> throw unknown("merger", spec);
        };
    }

    static IllegalArgumentException unknown(String what, JsonNode spec) {
        return new IllegalArgumentException("no such " + what + ": " + spec);
    }

    interface TriFunction {
        Object apply(Object first, Object second, Object third);
    }
}
