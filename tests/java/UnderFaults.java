import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;

import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer and a consumer that do what lines of the input say. Each gets one line back, its fields apart by tabs. */
public class UnderFaults {
    private static final int FLUSH_LEFT_UNKNOWN = -1;
    private static final Map<String, Future<RecordMetadata>> SENT = new LinkedHashMap<>();
    private static KafkaProducer<String, String> producer;
    private static KafkaConsumer<String, String> consumer;

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String answer;
            try {
                answer = answer(lines.nextLine().split("\t", -1));
            } catch (Throwable error) {
                answer = "!" + said(error);
            }
            System.out.println(answer);
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "producer":
                producer = new KafkaProducer<>(settings(words), new StringSerializer(), new StringSerializer());
                return "";
            case "init":
                producer.initTransactions();
                return "";
            case "send":
                return send(words[1], words[2].isEmpty() ? null : Integer.valueOf(words[2]), words[3]);
            case "flush":
                return flush(Long.parseLong(words[1]));
            case "outcomes":
                return SENT.entrySet().stream().map(UnderFaults::outcome).collect(Collectors.joining("\t"));
            case "begin":
                producer.beginTransaction();
                return "";
            case "commit":
                producer.commitTransaction();
                return "";
            case "abort":
                producer.abortTransaction();
                return "";
            case "close producer":
                producer.close(Duration.ofSeconds(30));
                return "";
            case "consumer":
                consumer = new KafkaConsumer<>(settings(words), new StringDeserializer(), new StringDeserializer());
                consumer.subscribe(List.of(words[1]));
                return "";
            case "poll":
                return poll(Long.parseLong(words[1]));
            case "poll twice":
                return pollTwice();
            case "close consumer":
                consumer.close();
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static Properties settings(String[] words) {
        Properties settings = new Properties();
        for (String word : words) {
            int middle = word.indexOf('=');
            if (middle > 0) {
                settings.put(word.substring(0, middle), word.substring(middle + 1));
            }
        }
        return settings;
    }

    private static String send(String topic, Integer partition, String value) throws InterruptedException {
        long begin = System.nanoTime();
        String error = "";
        try {
            Future<RecordMetadata> sent = producer.send(new ProducerRecord<>(topic, partition, null, value));
            if (sent.isDone()) {
                // What the producer does not take in, it tells by a future that has failed already.
                sent.get();
            }
            SENT.put(value, sent);
        } catch (ExecutionException refused) {
            error = said(refused.getCause());
        } catch (RuntimeException refused) {
            error = said(refused);
        }
        return (System.nanoTime() - begin) / 1_000_000 + "\t" + error;
    }

    private static String flush(long timeoutMs) throws InterruptedException {
        Thread flushing = new Thread(() -> {
            try {
                producer.flush();
            } catch (RuntimeException interrupted) {
                // Whoever interrupted it goes on with something else.
            }
        });
        flushing.start();
        flushing.join(timeoutMs);
        boolean isLate = flushing.isAlive();
        flushing.interrupt();
        flushing.join();
        return isLate ? "" + FLUSH_LEFT_UNKNOWN : "0";
    }

    private static String outcome(Map.Entry<String, Future<RecordMetadata>> sent) {
        try {
            RecordMetadata found = sent.getValue().get(0, TimeUnit.SECONDS);
            return sent.getKey() + "=" + found.partition() + ":" + found.offset();
        } catch (ExecutionException error) {
            return sent.getKey() + "=!" + said(error.getCause());
        } catch (Exception error) {
            return sent.getKey() + "=?";
        }
    }

    private static String poll(long timeoutMs) {
        ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(timeoutMs));
        return StreamSupport.stream(found.spliterator(), false)
            .map(record -> record.value()).collect(Collectors.joining("\t"));
    }

    private static String pollTwice() throws InterruptedException {
        String[] outcomes = {"waits", "waits"};
        Thread[] threads = new Thread[2];
        for (int number = 0; number < 2; number++) {
            int mine = number;
            threads[number] = new Thread(() -> {
                try {
                    outcomes[mine] = consumer.poll(Duration.ofSeconds(3)).count() + " records";
                } catch (RuntimeException error) {
                    outcomes[mine] = said(error);
                }
            });
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return outcomes[0] + "\t" + outcomes[1];
    }

    private static String said(Throwable error) {
        String text = error.getClass().getSimpleName() + ": " + error.getMessage();
        return text.replace('\t', ' ').replace('\n', ' ');
    }
}
