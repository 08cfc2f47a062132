import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Many processes of a campaign in one JVM: a producer, with transactions or idempotent, and a consumer each.
 *
 * A line of input is the number of a process, a command and its arguments. A line of output is the number, "ok" or
 * "error", and what came of it. Each process has a thread, so that they do not wait for each other. Partitions are
 * written as topic:partition, with an offset as topic:partition:offset.
 */
public class GuaranteesProcesses {
    private static final long START_MS = 30_000;

    private final KafkaProducer<String, String> producer;
    private final KafkaConsumer<String, String> consumer;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private final long answerMs;
    private boolean isStarted;

    /** Without a transactional id, the producer is idempotent. */
    private GuaranteesProcesses(
        String bootstrap, String group, String timeoutMs, long answerMs, String transactionalId) {
        this.answerMs = answerMs;
        Properties common = new Properties();
        common.put("bootstrap.servers", bootstrap);
        common.put("reconnect.backoff.max.ms", "500");
        common.put("request.timeout.ms", String.valueOf(Math.min(4000, answerMs)));
        Properties producing = new Properties();
        producing.putAll(common);
        if (transactionalId != null) {
            producing.put("transactional.id", transactionalId);
            producing.put("transaction.timeout.ms", timeoutMs);
        }
        producing.put("linger.ms", "0");
        producing.put("delivery.timeout.ms", String.valueOf(answerMs));
        producing.put("max.block.ms", String.valueOf(answerMs));
        Properties consuming = new Properties();
        consuming.putAll(common);
        consuming.put("group.id", group);
        consuming.put("isolation.level", "read_committed");
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("enable.auto.commit", "false");
        consuming.put("fetch.max.wait.ms", "50");
        consuming.put("default.api.timeout.ms", String.valueOf(answerMs));
        isStarted = transactionalId == null;
        producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer());
        consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, ExecutorService> threads = new HashMap<>();
        Map<String, GuaranteesProcesses> processes = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[0], name -> Executors.newSingleThreadExecutor()).submit(() -> {
                String answer = answer(processes, arguments, words);
                synchronized (System.out) {
                    System.out.println(words[0] + " " + answer);
                    System.out.flush();
                }
            });
            if (words[1].equals("close")) {
                threads.remove(words[0]).shutdown();
            }
        }
        System.exit(0);
    }

    /** Carry out a command. Arguments of the program: bootstrap, group, and the time after which a transaction ends. */
    private static String answer(Map<String, GuaranteesProcesses> processes, String[] settings, String[] words) {
        try {
            GuaranteesProcesses process;
            synchronized (processes) {
                if (words[1].equals("start")) {
                    processes.put(words[0], new GuaranteesProcesses(
                        settings[0], settings[1], settings[2], Long.parseLong(words[2]),
                        words.length > 3 ? words[3] : null));
                }
                process = words[1].equals("close") ? processes.remove(words[0]) : processes.get(words[0]);
            }
            return process == null ? "ok" : "ok " + process.carryOut(words);
        } catch (Exception error) {
            return "error " + nameOf(error);
        }
    }

    private String carryOut(String[] words) throws Exception {
        List<String> rest = Arrays.asList(words).subList(2, words.length);
        switch (words[1]) {
            case "start" -> start();
            case "begin" -> {
                sent.clear();
                producer.beginTransaction();
            }
            case "send" -> sent.add(producer.send(
                new ProducerRecord<>(rest.get(0), Integer.parseInt(rest.get(1)), null, rest.get(2))));
            case "flush" -> {
                return flush();
            }
            case "poll" -> {
                return poll();
            }
            case "offsets" -> producer.sendOffsetsToTransaction(offsetsOf(rest), consumer.groupMetadata());
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "read" -> {
                Map<TopicPartition, OffsetAndMetadata> offsets = offsetsOf(rest);
                consumer.assign(offsets.keySet());
                offsets.forEach(consumer::seek);
            }
            case "committed" -> {
                return committed(rest);
            }
            case "close" -> {
                producer.close(Duration.ZERO);
                consumer.close(Duration.ofSeconds(2));
            }
            default -> throw new IllegalArgumentException(words[1]);
        }
        return "";
    }

    /** Begin. A timeout is no answer: it is asked again, for as long as other clients wait, too. */
    private void start() {
        long deadline = System.currentTimeMillis() + START_MS;
        while (!isStarted) {
            try {
                producer.initTransactions();
                isStarted = true;
            } catch (org.apache.kafka.common.errors.TimeoutException error) {
                if (System.currentTimeMillis() > deadline) {
                    throw error;
                }
            }
        }
    }

    /** Wait for all that was sent: the offset of each, or the name of its error. */
    private String flush() throws Exception {
        List<String> said = new ArrayList<>();
        for (Future<RecordMetadata> one : sent) {
            try {
                said.add(String.valueOf(one.get(answerMs + 2000, TimeUnit.MILLISECONDS).offset()));
            } catch (ExecutionException | TimeoutException error) {
                said.add(nameOf(error));
            }
        }
        sent.clear();
        return String.join(" ", said);
    }

    private String poll() {
        List<String> said = new ArrayList<>();
        for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(30))) {
            said.add(one.topic() + ":" + one.partition() + ":" + one.offset() + ":" + one.value());
        }
        return String.join(" ", said);
    }

    private String committed(List<String> places) {
        List<String> said = new ArrayList<>();
        consumer.committed(new HashSet<>(offsetsOf(places).keySet())).forEach((place, offset) -> said.add(
            place.topic() + ":" + place.partition() + ":" + (offset == null ? 0 : offset.offset())));
        return String.join(" ", said);
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsetsOf(List<String> places) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (String place : places) {
            String[] parts = place.split(":");
            long offset = parts.length > 2 ? Long.parseLong(parts[2]) : 0;
            offsets.put(new TopicPartition(parts[0], Integer.parseInt(parts[1])), new OffsetAndMetadata(offset));
        }
        return offsets;
    }

    /** Return the name by which an error is judged. */
    private static String nameOf(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null
            && (cause instanceof ExecutionException || cause.getClass() == KafkaException.class)) {
            cause = cause.getCause();
        }
        if (cause instanceof org.apache.kafka.common.errors.TimeoutException || cause instanceof TimeoutException) {
            return "_TIMED_OUT";
        }
        if (cause instanceof IllegalStateException) {
            return "_STATE";
        }
        Errors known = Errors.forException(cause);
        return known == Errors.UNKNOWN_SERVER_ERROR ? "UNKNOWN" : known.name();
    }
}
