import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group that acknowledges each record by itself: bootstrap, group, topic, and how many of a
 * hundred records it releases, so that they are delivered again.
 *
 * It writes a line for each delivery (D, value, delivery count) and one for each record whose acknowledgement the
 * broker has confirmed (A or R, value). If an answer is missing or an error, nobody knows: then it is U. It ends
 * when its input has something.
 */
public class ShareConsumers {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "50");
        settings.put("reconnect.backoff.max.ms", "200");
        int releasedOfHundred = Integer.parseInt(arguments[3]);
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(arguments[2]));
            System.out.println("ready");
            while (System.in.available() == 0) {
                poll(consumer, releasedOfHundred);
            }
        }
    }

    private static void poll(KafkaShareConsumer<String, String> consumer, int releasedOfHundred) {
        List<String> said = new ArrayList<>();
        try {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                System.out.println("D " + record.value() + " " + record.deliveryCount().orElse((short) 0));
                boolean releases = record.deliveryCount().orElse((short) 0) == 1
                    && record.value().hashCode() % 100 < releasedOfHundred;
                consumer.acknowledge(record, releases ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                said.add((releases ? "R " : "A ") + record.value());
            }
            Map<TopicIdPartition, Optional<KafkaException>> outcome = consumer.commitSync();
            boolean isConfirmed = outcome.values().stream().allMatch(Optional::isEmpty);
            said.forEach(line -> System.out.println(isConfirmed ? line : "U" + line.substring(1)));
        } catch (KafkaException error) {
            said.forEach(line -> System.out.println("U" + line.substring(1)));
            System.out.println("E " + error);
        }
        System.out.flush();
    }
}
