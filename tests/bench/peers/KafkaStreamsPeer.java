// With Kafka Streams, exactly once, an update for each record. w2: count and sum of each user; ends when nothing came for eight seconds.
// latency: a count of each key, with the time that the record carries, and a commit every 100 ms; runs until it is ended.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

public class KafkaStreamsPeer {
    static final ObjectMapper JSON = new ObjectMapper();
    static final AtomicLong LAST = new AtomicLong(0);

    static String add(String value, String totals) {
        try {
            JsonNode record = JSON.readTree(value);
            JsonNode before = totals == null ? null : JSON.readTree(totals);
            long count = before == null ? 0 : before.get("c").asLong();
            double sum = before == null ? 0.0 : before.get("s").asDouble();
            LAST.set(System.nanoTime());
            return JSON.createObjectNode().put("user", record.get("user").asText()).put("c", count + 1)
                    .put("s", sum + record.get("amount").asDouble()).toString();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static String count(String value, String totals) {
        try {
            JsonNode before = totals == null ? null : JSON.readTree(totals);
            long count = before == null ? 0 : before.get("c").asLong();
            return JSON.createObjectNode().put("c", count + 1).put("t", JSON.readTree(value).get("t").asDouble()).toString();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] all) throws Exception {
        boolean isW2 = all[0].equals("w2");
        String[] given = java.util.Arrays.copyOfRange(all, 1, all.length);
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, given[4]);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, isW2 ? 1000 : 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put("auto.offset.reset", "earliest");
        settings.put("replication.factor", 1);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(given[1], Consumed.with(Serdes.String(), Serdes.String()))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .aggregate(() -> null, (key, value, totals) -> isW2 ? add(value, totals) : count(value, totals),
                        Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("sums").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
                .toStream().to(given[2], Produced.with(Serdes.String(), Serdes.String()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.start();
            while (!isW2 || LAST.get() == 0 || System.nanoTime() - LAST.get() < 8_000_000_000L) {
                Thread.sleep(200);
            }
        }
    }
}
