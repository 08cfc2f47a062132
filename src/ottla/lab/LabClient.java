import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * An actor of the lab, written with Apache Kafka's Java client. What it does is what member.py and writing.py say.
 *
 *   LabClient member TOPICS COMMITS WORK_MS ASSIGNS key=value ...
 *   LabClient writer TOPIC key=value ...
 *
 * A member obeys the lines of its input and prints a line for each record. A writer reads a line for each record
 * (partition, timestamp, key, value; the last two in base 64, `-` is none) and prints how many are acknowledged.
 */
public class LabClient {
    private static final ConcurrentLinkedQueue<String> ORDERS = new ConcurrentLinkedQueue<>();
    private static PrintStream said;

    public static void main(String[] arguments) throws Exception {
        said = System.out;
        // Some loggers write to it, and the lab reads it.
        System.setOut(System.err);
        if (arguments[0].equals("member")) {
            new Thread(LabClient::listen).start();
            member(arguments);
            System.exit(0);
        }
        writer(arguments);
    }

    private static Properties settings(String[] arguments, int from) {
        Properties settings = new Properties();
        for (int place = from; place < arguments.length; place++) {
            String[] pair = arguments[place].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }

    private static void say(String line) {
        said.println(line);
        said.flush();
    }

    // A member

    private static void listen() {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                ORDERS.add(line);
            }
        } catch (java.io.IOException error) {
            say("# " + error);
        }
        // The lab is gone.
        Runtime.getRuntime().halt(1);
    }

    private static void member(String[] arguments) throws InterruptedException {
        List<String> topics = List.of(arguments[1].split(","));
        boolean commitsEach = arguments[2].equals("each");
        long workMs = (long) Double.parseDouble(arguments[3]);
        Properties settings = settings(arguments, 5);
        settings.put("max.poll.records", "1");
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        begin(consumer, topics, Boolean.parseBoolean(arguments[4]));
        say("# joined");
        ConsumerRecord<byte[], byte[]> last = null;
        while (true) {
            String order = ORDERS.poll();
            if (order != null && order.equals("close")) {
                consumer.close();
                return;
            }
            if (order != null) {
                obey(consumer, order, last);
            }
            for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                Thread.sleep(workMs);
                say(record.topic() + " " + record.partition() + " " + record.offset());
                last = record;
                if (commitsEach) {
                    commit(consumer, record);
                }
            }
        }
    }

    private static void begin(KafkaConsumer<byte[], byte[]> consumer, List<String> topics, boolean assigns) {
        if (assigns) {
            List<TopicPartition> partitions = new ArrayList<>();
            topics.forEach(topic -> partitions.add(new TopicPartition(topic, 0)));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
        } else if (topics.get(0).startsWith("^")) {
            consumer.subscribe(Pattern.compile(topics.get(0)));
        } else {
            consumer.subscribe(topics);
        }
    }

    private static void obey(
            KafkaConsumer<byte[], byte[]> consumer, String order, ConsumerRecord<byte[], byte[]> last)
            throws InterruptedException {
        String[] words = order.trim().split(" ");
        switch (words[0]) {
            case "pause" -> consumer.pause(consumer.assignment());
            case "hang" -> Thread.sleep(3_600_000);
            case "commit" -> commit(consumer, last);
            case "seek" -> consumer.assignment().forEach(where -> consumer.seek(where, Long.parseLong(words[1])));
            default -> say("# unknown order: " + order);
        }
    }

    private static Iterable<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer)
            throws InterruptedException {
        try {
            return consumer.poll(Duration.ofMillis(100));
        } catch (KafkaException error) {
            say("# poll failed: " + error.getMessage());
            Thread.sleep(100);
            return List.of();
        }
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer, ConsumerRecord<byte[], byte[]> record) {
        try {
            TopicPartition where = new TopicPartition(record.topic(), record.partition());
            consumer.commitSync(Map.of(where, new OffsetAndMetadata(record.offset() + 1)));
        } catch (KafkaException error) {
            say("# commit failed: " + error.getMessage());
        }
    }

    // A writer

    private static void writer(String[] arguments) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                settings(arguments, 2), new ByteArraySerializer(), new ByteArraySerializer());
                BufferedReader input = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                Integer partition = words[0].equals("-") ? null : Integer.valueOf(words[0]);
                Long timestamp = words[1].equals("-") ? null : Long.valueOf(words[1]);
                sent.add(producer.send(new ProducerRecord<>(
                    arguments[1], partition, timestamp, bytes(words[2]), bytes(words[3]))));
            }
            producer.flush();
        }
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        say(String.valueOf(sent.size()));
    }

    private static byte[] bytes(String word) {
        return word.equals("-") ? null : Base64.getDecoder().decode(word);
    }
}
