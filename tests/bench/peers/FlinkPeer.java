// W2 and W3 with Flink, exactly once. Ends at the ends of the input.
// w2: count and sum of each user, an update for each record. w3: counts per page in windows of ten seconds of event time, final results.

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
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

public class FlinkPeer {
    @JsonIgnoreProperties(ignoreUnknown = true)
    public static class View {
        public String user;
        public double amount;
    }

    public static class Totals {
        public String user;
        public long c;
        public double s;
    }

    @JsonIgnoreProperties(ignoreUnknown = true)
    public static class PageView {
        public String page;
        public long ts;
    }

    public static class Pane {
        public String page;
        public long start;
        public long count;
    }

    public static class Read<T> extends AbstractDeserializationSchema<T> {
        private final Class<T> type;
        private transient ObjectReader json;

        Read(Class<T> type) {
            super(type);
            this.type = type;
        }

        @Override
        public void open(InitializationContext context) {
            json = new ObjectMapper().readerFor(type);
        }

        @Override
        public T deserialize(byte[] value) throws IOException {
            return json.readValue(value);
        }
    }

    public static class Written<T> implements SerializationSchema<T> {
        private transient ObjectMapper json;

        @Override
        public void open(InitializationContext context) {
            json = new ObjectMapper();
        }

        @Override
        public byte[] serialize(T value) {
            try {
                return json.writeValueAsBytes(value);
            } catch (IOException error) {
                throw new RuntimeException(error);
            }
        }
    }

    public static class Add extends RichMapFunction<View, Totals> {
        private transient ValueState<Totals> totals;

        @Override
        public void open(OpenContext context) {
            totals = getRuntimeContext().getState(new ValueStateDescriptor<>("totals", Totals.class));
        }

        @Override
        public Totals map(View view) throws Exception {
            Totals before = totals.value();
            Totals after = new Totals();
            after.user = view.user;
            after.c = (before == null ? 0 : before.c) + 1;
            after.s = (before == null ? 0.0 : before.s) + view.amount;
            totals.update(after);
            return after;
        }
    }

    public static class Count implements AggregateFunction<PageView, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(PageView view, Long count) {
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

    static <T> KafkaSource<T> source(String servers, String topic, String group, Class<T> type) {
        return KafkaSource.<T>builder().setBootstrapServers(servers).setTopics(topic).setGroupId(group).setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest()).setValueOnlyDeserializer(new Read<>(type)).build();
    }

    static <T> KafkaSink<T> sink(String servers, String topic, SerializationSchema<T> key) {
        return KafkaSink.<T>builder().setBootstrapServers(servers).setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(topic).setProperty("transaction.timeout.ms", "600000")
                .setRecordSerializer(KafkaRecordSerializationSchema.<T>builder().setTopic(topic)
                        .setKeySerializationSchema(key).setValueSerializationSchema(new Written<T>()).build())
                .build();
    }

    public static void main(String[] given) throws Exception {
        String servers = given[1], input = given[2], output = given[3];
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + given[4]);
        settings.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(given[5]), settings);
        flink.enableCheckpointing(1000, CheckpointingMode.EXACTLY_ONCE);
        flink.getConfig().enableObjectReuse();
        if (given[0].equals("w2")) {
            flink.fromSource(source(servers, input, output, View.class), WatermarkStrategy.noWatermarks(), "views").keyBy(view -> view.user)
                    .map(new Add()).sinkTo(sink(servers, output, totals -> totals.user.getBytes(StandardCharsets.UTF_8)));
        } else {
            WatermarkStrategy<PageView> times = WatermarkStrategy.<PageView>forBoundedOutOfOrderness(Duration.ofSeconds(1))
                    .withTimestampAssigner((view, at) -> view.ts);
            flink.fromSource(source(servers, input, output, PageView.class), times, "views").keyBy(view -> view.page)
                    .window(TumblingEventTimeWindows.of(Duration.ofSeconds(10))).aggregate(new Count(), new Named())
                    .sinkTo(sink(servers, output, pane -> pane.page.getBytes(StandardCharsets.UTF_8)));
        }
        flink.execute(given[0]);
    }
}
