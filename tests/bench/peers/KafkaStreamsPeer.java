// With Kafka Streams, exactly once, an update for each record. w2: count and sum of each user; ends when nothing came for eight seconds.
// latency: a count of each key, with the time that the record carries, and a commit every 100 ms; runs until it is ended.
// restore: the changelog of a store into an empty RocksDB; says on the last line of its output how long that took, and how many keys the store has then.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.Stores;

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

    /** From the first partition's start to the last one's end. */
    static class Restores implements StateRestoreListener {
        final CountDownLatch open;
        final AtomicLong records = new AtomicLong(0);
        long first = 0;
        volatile long last = 0;

        Restores(int partitions) {
            open = new CountDownLatch(partitions);
        }

        @Override
        public synchronized void onRestoreStart(TopicPartition partition, String store, long start, long end) {
            first = first == 0 ? System.nanoTime() : first;
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

        @Override
        public synchronized void onRestoreEnd(TopicPartition partition, String store, long count) {
            records.addAndGet(count);
            last = System.nanoTime();
            open.countDown();
        }
    }

    static void restore(String input, int partitions, Properties settings) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("kept"), Serdes.ByteArray(), Serdes.ByteArray())
                .withLoggingEnabled(Map.of()));
        builder.stream(input, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).process(() -> new Processor<byte[], byte[], Void, Void>() {
            @Override
            public void process(Record<byte[], byte[]> record) {}
        }, "kept");
        Restores restores = new Restores(partitions);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setGlobalStateRestoreListener(restores);
            streams.start();
            if (!restores.open.await(300, TimeUnit.SECONDS)) {
                throw new RuntimeException("not restored within 300 s");
            }
            while (streams.state() != KafkaStreams.State.RUNNING) {
                Thread.sleep(20);
            }
            ReadOnlyKeyValueStore<byte[], byte[]> store =
                    streams.store(StoreQueryParameters.fromNameAndType("kept", QueryableStoreTypes.<byte[], byte[]>keyValueStore()));
            long keys = 0;
            try (KeyValueIterator<byte[], byte[]> entries = store.all()) {
                for (; entries.hasNext(); entries.next()) {
                    keys++;
                }
            }
            System.out.printf("%n{\"seconds\": %d.%09d, \"records\": %d, \"keys\": %d}%n", (restores.last - restores.first) / 1_000_000_000,
                    (restores.last - restores.first) % 1_000_000_000, restores.records.get(), keys);
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
        if (all[0].equals("restore")) {
            restore(given[1], Integer.parseInt(given[5]), settings);
            return;
        }
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
