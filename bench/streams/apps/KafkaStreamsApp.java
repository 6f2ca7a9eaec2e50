import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The jobs on Kafka Streams: java KafkaStreamsApp JOB BOOTSTRAP FOLDER. */
public class KafkaStreamsApp {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<byte[]> RAW = Serdes.ByteArray();
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final Set<String> UNCACHED = Set.of("count", "windowed-count");

    public static void main(String[] arguments) {
        String job = arguments[0];
        Properties config = new Properties();
        config.put("application.id", "kafka-streams-" + job);
        config.put("bootstrap.servers", arguments[1]);
        config.put("state.dir", arguments[2]);
        config.put("auto.offset.reset", "earliest");
        config.put("num.stream.threads", "2");
        config.put("commit.interval.ms", job.endsWith("-eos") ? "100" : "1000");
        if (UNCACHED.contains(job))
            config.put("statestore.cache.max.bytes", "0");
        if (job.endsWith("-eos"))
            config.put("processing.guarantee", "exactly_once_v2");
        KafkaStreams streams = new KafkaStreams(topology(job), config);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(5))));
        streams.start();
    }

    private static Topology topology(String job) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (job) {
            case "copy", "copy-eos" -> builder.stream("input", Consumed.with(RAW, RAW)).to("output", Produced.with(RAW, RAW));
            case "count", "count-cached", "count-eos" -> builder.stream("input", Consumed.with(TEXT, RAW)).groupByKey()
                .count().toStream().to("output", Produced.with(TEXT, Serdes.Long()));
            case "word-count" -> builder.stream("input", Consumed.with(TEXT, TEXT))
                .flatMapValues(line -> Arrays.asList(line.split(" "))).groupBy((key, word) -> word, Grouped.with(TEXT, TEXT))
                .count(Materialized.with(TEXT, Serdes.Long())).toStream().to("output", Produced.with(TEXT, Serdes.Long()));
            case "windowed-count" -> builder.stream("input", Consumed.with(TEXT, RAW)).groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW)).count().toStream()
                .to("output", Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), Serdes.Long()));
            case "join" -> {
                KStream<String, String> lines = builder.stream("input", Consumed.with(TEXT, TEXT));
                lines.join(builder.table("table", Consumed.with(TEXT, TEXT)), (line, row) -> line + row)
                    .to("output", Produced.with(TEXT, TEXT));
            }
            default -> throw new IllegalArgumentException(job);
        }
        return builder.build();
    }
}
