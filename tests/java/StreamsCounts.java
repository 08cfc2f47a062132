/**
 * A Kafka Streams application that counts the values of a topic, exactly once, as a member of a streams group:
 *
 *   StreamsCounts BOOTSTRAP APPLICATION-ID STATE-DIRECTORY PROTOCOL SOURCE-TOPIC RESULT-TOPIC
 *
 * Grouping by value takes a repartition topic, and counting takes a changelog. Prints each state that it gets into.
 */
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

public class StreamsCounts {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[4], Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((key, value) -> value, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .mapValues(String::valueOf)
            .to(arguments[5], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams application = new KafkaStreams(builder.build(), settings);
        application.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        application.setStateListener((state, before) -> {
            System.out.println(state);
            System.out.flush();
        });
        application.start();
        // Until somebody closes standard input.
        System.in.read();
        application.close();
    }
}
