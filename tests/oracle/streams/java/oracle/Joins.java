package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.BiFunction;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueJoinerWithKey;

/** Every join, inner, left or outer. Start at {@link #add}. */
final class Joins {
    private final SpecBuilder builder;
    private final JsonNode operator;
    private final Flow left;
    private final Flow right;
    private final String kind;
    private final ValueJoinerWithKey<Object, Object, Object, Object> joiner;

    private Joins(SpecBuilder builder, JsonNode operator) {
        this.builder = builder;
        this.operator = operator;
        this.left = builder.input(operator, 0);
        this.right = builder.input(operator, 1);
        this.kind = operator.get("kind").asText();
        this.joiner = Functions.joiner(operator.get("joiner"))::apply;
    }

    static void add(SpecBuilder builder, JsonNode operator) {
        Joins joins = new Joins(builder, operator);
        Object joined = switch (operator.get("op").asText()) {
            case "stream_join" -> joins.streams();
            case "stream_table_join" -> joins.streamTable();
            case "global_join" -> joins.global();
            case "table_join" -> joins.tables();
            default -> joins.foreignKey();
        };
        builder.keep(operator, joins.left.with(joined, Flow.TEXT));
    }

    private Object streams() {
        KStream<Object, Object> stream = left.as();
        KStream<Object, Object> other = right.as();
        JoinWindows windows = Windows.join(operator.get("window"));
        StreamJoined<Object, Object, Object> how = StreamJoined.with(left.keys(), left.values(), right.values());
        if (operator.has("name")) {
            how = how.withName(operator.get("name").asText());
        }
        if (operator.path("as").has("store")) {
            how = how.withStoreName(operator.get("as").get("store").asText());
        }
        return switch (kind) {
            case "inner" -> stream.join(other, joiner, windows, how);
            case "left" -> stream.leftJoin(other, joiner, windows, how);
            default -> stream.outerJoin(other, joiner, windows, how);
        };
    }

    private Object streamTable() {
        KStream<Object, Object> stream = left.as();
        KTable<Object, Object> table = right.as();
        Joined<Object, Object, Object> how = Joined.with(left.keys(), left.values(), right.values());
        if (operator.has("name")) {
            how = how.withName(operator.get("name").asText());
        }
        if (operator.has("grace")) {
            how = how.withGracePeriod(Windows.milliseconds(operator, "grace"));
        }
        return kind.equals("inner") ? stream.join(table, joiner, how) : stream.leftJoin(table, joiner, how);
    }

    private Object global() {
        KStream<Object, Object> stream = left.as();
        GlobalKTable<Object, Object> table = right.as();
        KeyValueMapper<Object, Object, Object> selector = Functions.keySelector(operator.get("selector"))::apply;
        Named named = builder.named(operator);
        if (kind.equals("inner")) {
            return named == null ? stream.join(table, selector, joiner) : stream.join(table, selector, joiner, named);
        }
        return named == null ? stream.leftJoin(table, selector, joiner) : stream.leftJoin(table, selector, joiner, named);
    }

    private Object tables() {
        KTable<Object, Object> table = left.as();
        KTable<Object, Object> other = right.as();
        ValueJoiner<Object, Object, Object> plain = (one, two) -> joiner.apply(null, one, two);
        Named named = builder.named(operator);
        if (operator.has("as")) {
            var rows = Stores.rows(builder, operator, left.keys(), Flow.TEXT);
            return switch (kind) {
                case "inner" -> named == null ? table.join(other, plain, rows) : table.join(other, plain, named, rows);
                case "left" -> named == null ? table.leftJoin(other, plain, rows) : table.leftJoin(other, plain, named, rows);
                default -> named == null ? table.outerJoin(other, plain, rows) : table.outerJoin(other, plain, named, rows);
            };
        }
        return switch (kind) {
            case "inner" -> named == null ? table.join(other, plain) : table.join(other, plain, named);
            case "left" -> named == null ? table.leftJoin(other, plain) : table.leftJoin(other, plain, named);
            default -> named == null ? table.outerJoin(other, plain) : table.outerJoin(other, plain, named);
        };
    }

    private Object foreignKey() {
        KTable<Object, Object> table = left.as();
        KTable<Object, Object> other = right.as();
        var selector = Functions.keySelector(operator.get("extractor"));
        BiFunction<Object, Object, Object> extractor = selector;
        ValueJoiner<Object, Object, Object> plain = (one, two) -> joiner.apply(null, one, two);
        TableJoined<Object, Object> how = operator.has("name") ? TableJoined.as(operator.get("name").asText()) : null;
        if (operator.has("as")) {
            var rows = Stores.rows(builder, operator, left.keys(), Flow.TEXT);
            if (kind.equals("inner")) {
                return how == null ? table.join(other, extractor, plain, rows) : table.join(other, extractor, plain, how, rows);
            }
            return how == null
                    ? table.leftJoin(other, extractor, plain, rows)
                    : table.leftJoin(other, extractor, plain, how, rows);
        }
        if (kind.equals("inner")) {
            return how == null ? table.join(other, extractor, plain) : table.join(other, extractor, plain, how);
        }
        return how == null ? table.leftJoin(other, extractor, plain) : table.leftJoin(other, extractor, plain, how);
    }
}
