// W3 with Flink: counts per page in windows of ten seconds of event time, final results, exactly once. Ends at the ends of the input.

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public class FlinkW3 {
    @JsonIgnoreProperties(ignoreUnknown = true)
    public static class View {
        public String page;
        public long ts;
    }

    public static class Pane {
        public String page;
        public long start;
        public long count;
    }

    public static class Views extends AbstractDeserializationSchema<View> {
        private transient ObjectReader json;

        @Override
        public void open(InitializationContext context) {
            json = new ObjectMapper().readerFor(View.class);
        }

        @Override
        public View deserialize(byte[] value) throws IOException {
            return json.readValue(value);
        }
    }

    public static class Panes implements SerializationSchema<Pane> {
        private transient ObjectMapper json;

        @Override
        public void open(InitializationContext context) {
            json = new ObjectMapper();
        }

        @Override
        public byte[] serialize(Pane pane) {
            try {
                return json.writeValueAsBytes(pane);
            } catch (IOException error) {
                throw new RuntimeException(error);
            }
        }
    }

    public static class Count implements AggregateFunction<View, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(View view, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }

    public static class Named extends ProcessWindowFunction<Long, Pane, String, TimeWindow> {
        @Override
        public void process(String page, Context context, Iterable<Long> counts, Collector<Pane> out) {
            Pane pane = new Pane();
            pane.page = page;
            pane.start = context.window().getStart();
            pane.count = counts.iterator().next();
            out.collect(pane);
        }
    }

    public static void main(String[] given) throws Exception {
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + given[3]);
        settings.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(given[4]), settings);
        flink.enableCheckpointing(1000, CheckpointingMode.EXACTLY_ONCE);
        flink.getConfig().enableObjectReuse();
        KafkaSource<View> source = KafkaSource.<View>builder().setBootstrapServers(given[0]).setTopics(given[1]).setGroupId(given[2])
                .setStartingOffsets(OffsetsInitializer.earliest()).setBounded(OffsetsInitializer.latest()).setValueOnlyDeserializer(new Views()).build();
        KafkaSink<Pane> sink = KafkaSink.<Pane>builder().setBootstrapServers(given[0])
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(given[2]).setProperty("transaction.timeout.ms", "600000")
                .setRecordSerializer(KafkaRecordSerializationSchema.<Pane>builder().setTopic(given[2])
                        .setKeySerializationSchema(pane -> pane.page.getBytes(StandardCharsets.UTF_8)).setValueSerializationSchema(new Panes()).build())
                .build();
        WatermarkStrategy<View> watermarks = WatermarkStrategy.<View>forBoundedOutOfOrderness(Duration.ofSeconds(1)).withTimestampAssigner((view, at) -> view.ts);
        flink.fromSource(source, watermarks, "views").keyBy(view -> view.page).window(TumblingEventTimeWindows.of(Duration.ofSeconds(10)))
                .aggregate(new Count(), new Named()).sinkTo(sink);
        flink.execute("w3");
    }
}
