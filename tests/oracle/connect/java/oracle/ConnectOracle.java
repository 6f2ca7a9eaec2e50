package oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Runs Kafka's own converters, transforms and predicates: a case on each line of the input, its result on the output. */
public class ConnectOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonConverter ENVELOPE = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        ENVELOPE.configure(Map.of("schemas.enable", "true"), false);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode result;
            try {
                result = run(MAPPER.readTree(line));
            } catch (Throwable error) {
                result = MAPPER.createObjectNode().put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            out.println(MAPPER.writeValueAsString(result));
            out.flush();
        }
    }

    private static ObjectNode run(JsonNode given) throws Exception {
        switch (given.get("op").asText()) {
            case "transform": return transform(given);
            case "predicate": return predicate(given);
            case "write": return write(given);
            case "read": return read(given);
            default: return data(Values.parseString(given.get("text").textValue()));
        }
    }

    private static Map<String, String> config(JsonNode given) {
        Map<String, String> config = new HashMap<>();
        Iterator<Map.Entry<String, JsonNode>> fields = given.get("config").fields();
        while (fields.hasNext()) {
            Map.Entry<String, JsonNode> field = fields.next();
            config.put(field.getKey(), field.getValue().textValue());
        }
        return config;
    }

    private static SchemaAndValue envelope(JsonNode node) throws Exception {
        return ENVELOPE.toConnectData("t", node == null || node.isNull() ? null : MAPPER.writeValueAsBytes(node));
    }

    @SuppressWarnings("unchecked")
    private static SinkRecord record(JsonNode given) throws Exception {
        JsonNode record = given.get("record");
        SchemaAndValue key = envelope(record.get("key")), value = envelope(record.get("value"));
        Long timestamp = record.get("timestamp").isNull() ? null : record.get("timestamp").longValue();
        SinkRecord made = new SinkRecord(record.get("topic").textValue(), record.get("partition").intValue(), key.schema(), key.value(),
            value.schema(), value.value(), record.get("offset").longValue(), timestamp, TimestampType.CREATE_TIME);
        for (JsonNode header : record.get("headers")) {
            SchemaAndValue found = envelope(header.get("value"));
            made.headers().add(header.get("key").textValue(), found.value(), found.schema());
        }
        return made;
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode transform(JsonNode given) throws Exception {
        Transformation<SinkRecord> transform =
            (Transformation<SinkRecord>) Class.forName(given.get("class").asText()).getDeclaredConstructor().newInstance();
        transform.configure(config(given));
        SinkRecord changed = transform.apply(record(given));
        ObjectNode result = MAPPER.createObjectNode();
        if (changed == null) return result.put("dropped", true);
        result.put("topic", changed.topic());
        result.set("key", data(new SchemaAndValue(changed.keySchema(), changed.key())));
        result.set("value", data(new SchemaAndValue(changed.valueSchema(), changed.value())));
        ArrayNode headers = result.putArray("headers");
        for (Header header : changed.headers()) {
            ObjectNode one = data(new SchemaAndValue(header.schema(), header.value()));
            headers.addObject().put("key", header.key()).set("value", one);
        }
        return result;
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode predicate(JsonNode given) throws Exception {
        Predicate<SinkRecord> predicate =
            (Predicate<SinkRecord>) Class.forName(given.get("class").asText()).getDeclaredConstructor().newInstance();
        predicate.configure(config(given));
        return MAPPER.createObjectNode().put("holds", predicate.test(record(given)));
    }

    private static Converter converter(JsonNode given) throws Exception {
        Converter converter = (Converter) Class.forName(given.get("class").asText()).getDeclaredConstructor().newInstance();
        converter.configure(config(given), false);
        return converter;
    }

    private static ObjectNode write(JsonNode given) throws Exception {
        SchemaAndValue value = envelope(given.get("value"));
        byte[] bytes = converter(given).fromConnectData("t", value.schema(), value.value());
        return MAPPER.createObjectNode().put("bytes", bytes == null ? null : Base64.getEncoder().encodeToString(bytes));
    }

    private static ObjectNode read(JsonNode given) throws Exception {
        byte[] bytes = given.get("bytes").isNull() ? null : Base64.getDecoder().decode(given.get("bytes").textValue());
        return data(converter(given).toConnectData("t", bytes));
    }

    private static ObjectNode data(SchemaAndValue found) throws Exception {
        ObjectNode result = MAPPER.createObjectNode();
        if (found == null) return result;
        if (found.schema() == null) {
            result.set("plain", plain(found.value()));
        } else {
            try {
                result.set("envelope", MAPPER.readTree(ENVELOPE.fromConnectData("t", found.schema(), found.value())));
            } catch (Exception error) {
                result.set("schema", ENVELOPE.asJsonSchema(found.schema()));
                result.set("plain", plain(found.value()));
            }
        }
        return result;
    }

    private static JsonNode plain(Object value) {
        if (value instanceof java.util.Date) return MAPPER.createObjectNode().put("$date", ((java.util.Date) value).getTime());
        if (value instanceof byte[]) return MAPPER.createObjectNode().put("$bytes", Base64.getEncoder().encodeToString((byte[]) value));
        if (value instanceof BigDecimal) return MAPPER.createObjectNode().put("$decimal", value.toString());
        if (value instanceof List) {
            ArrayNode array = MAPPER.createArrayNode();
            for (Object one : (List<?>) value) array.add(plain(one));
            return array;
        }
        if (value instanceof Map) {
            ObjectNode object = MAPPER.createObjectNode();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) object.set(String.valueOf(entry.getKey()), plain(entry.getValue()));
            return object;
        }
        return MAPPER.valueToTree(value);
    }
}
