/**
 * Opens the directories of partitions with Apache Kafka's own log classes, says what it found there, lets
 * Kafka's own cleaner compact them, and runs Kafka's own DumpLogSegments. If asked
 * to, it tells what has become of the files: their contents in hex, or null for those that are gone.
 *
 * Lies in Kafka's package because what decides how far a log may be cleaned is not public.
 */
package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import org.apache.kafka.tools.DumpLogSegments;
import ottla.Json;

public class PartitionLogs {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double LOAD_FACTOR = 0.5;
    private static final int BYTES_PER_SLOT = 24;

    public static String answer(String line) throws Exception {
        return Json.answer(line, PartitionLogs::answer);
    }

    private static void answer(JsonNode question, ObjectNode answer) throws Exception {
        if (question.has("dump")) {
            answer.put("output", dump(question.get("dump")));
            return;
        }
        Path directory = Path.of(question.get("directory").asText());
        Map<String, String> before = contents(directory);
        UnifiedLog log = open(question);
        try {
            log.updateHighWatermark(log.logEndOffset());
            if (question.has("clean"))
                clean(log, question.get("clean"), answer.putObject("cleaned"));
            describe(log, answer);
        } finally {
            log.close();
        }
        if (question.get("tells_files").asBoolean()) tellChanges(before, contents(directory), answer.putObject("files"));
    }

    private static Map<String, String> contents(Path directory) throws IOException {
        Map<String, String> found = new TreeMap<>();
        try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory, Files::isRegularFile)) {
            for (Path path : paths) found.put(path.getFileName().toString(), HexFormat.of().formatHex(Files.readAllBytes(path)));
        }
        return found;
    }

    private static void tellChanges(Map<String, String> before, Map<String, String> after, ObjectNode files) {
        before.keySet().stream().filter(name -> !after.containsKey(name)).forEach(files::putNull);
        after.forEach((name, content) -> {
            if (!content.equals(before.get(name))) files.put(name, content);
        });
    }

    private static String dump(JsonNode arguments) throws IOException {
        // What it finds wrong it says on the error stream.
        PrintStream before = System.out;
        PrintStream beforeErrors = System.err;
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        PrintStream printed = new PrintStream(output, true, StandardCharsets.UTF_8);
        System.setOut(printed);
        System.setErr(printed);
        try {
            DumpLogSegments.main(JSON.convertValue(arguments, String[].class));
        } finally {
            System.setOut(before);
            System.setErr(beforeErrors);
        }
        return output.toString(StandardCharsets.UTF_8);
    }

    private static UnifiedLog open(JsonNode question) throws IOException {
        Map<String, String> config = new HashMap<>();
        question.get("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        File directory = new File(question.get("directory").asText());
        return UnifiedLog.create(
            directory,
            new LogConfig(config),
            question.get("log_start_offset").asLong(),
            question.get("recovery_point").asLong(),
            new NoScheduler(),
            new BrokerTopicStats(),
            new FixedTime(question.get("now_ms").asLong()),
            900_000,
            new ProducerStateManagerConfig(86_400_000, true),
            600_000,
            new LogDirFailureChannel(1),
            question.get("is_clean").asBoolean(),
            Optional.empty());
    }

    private static void clean(UnifiedLog log, JsonNode ask, ObjectNode answer) throws Exception {
        long now = ask.get("now_ms").asLong();
        Optional<Long> checkpoint = ask.hasNonNull("checkpoint") ? Optional.of(ask.get("checkpoint").asLong()) : Optional.empty();
        LogCleanerManager.OffsetsToClean offsets = LogCleanerManager.cleanableOffsets(log, checkpoint, now);
        LogToClean candidate = new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
        answer.put("first_dirty_offset", candidate.firstDirtyOffset());
        answer.put("end_offset", candidate.firstUncleanableOffset());
        answer.put("clean_bytes", candidate.cleanBytes());
        answer.put("cleanable_bytes", candidate.cleanableBytes());
        answer.put("checkpoint_is_stale", offsets.forceUpdateCheckpoint());
        if (candidate.firstUncleanableOffset() <= candidate.firstDirtyOffset())
            return;
        int slots = (int) (ask.get("map_entries").asInt() / LOAD_FACTOR);
        Time time = new FixedTime(now);
        Cleaner cleaner = new Cleaner(
            0,
            new SkimpyOffsetMap(slots * BYTES_PER_SLOT),
            1 << 16,
            1 << 20,
            LOAD_FACTOR,
            new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "throttler", "entries", time),
            time,
            partition -> { });
        answer.put("next_dirty_offset", cleaner.doClean(candidate, now).getKey());
    }

    private static void describe(UnifiedLog log, ObjectNode answer) {
        answer.put("log_start_offset", log.logStartOffset());
        answer.put("log_end_offset", log.logEndOffset());
        answer.put("last_stable_offset", log.lastStableOffset());
        ArrayNode segments = answer.putArray("segments");
        log.logSegments().forEach(segment -> segments.addArray().add(segment.baseOffset()).add(segment.size()));
        ArrayNode epochs = answer.putArray("leader_epochs");
        log.leaderEpochCache().epochEntries().forEach(entry -> epochs.addArray().add(entry.epoch()).add(entry.startOffset()));
        ArrayNode aborted = answer.putArray("aborted");
        log.collectAbortedTransactions(log.logStartOffset(), log.logEndOffset()).forEach(transaction ->
            aborted.addArray()
                .add(transaction.producerId())
                .add(transaction.firstOffset())
                .add(transaction.lastOffset())
                .add(transaction.lastStableOffset()));
        ArrayNode producers = answer.putArray("producers");
        log.producerStateManager().activeProducers().values().stream()
            .sorted(Comparator.comparingLong(ProducerStateEntry::producerId))
            .forEach(producer -> describe(producer, producers.addObject()));
    }

    private static void describe(ProducerStateEntry producer, ObjectNode answer) {
        answer.put("producer_id", producer.producerId());
        answer.put("epoch", producer.producerEpoch());
        answer.put("coordinator_epoch", producer.coordinatorEpoch());
        answer.put("timestamp_ms", producer.lastTimestamp());
        answer.put("transaction_first_offset", producer.currentTxnFirstOffset().orElse(-1));
        ArrayNode batches = answer.putArray("batches");
        producer.batchMetadata().forEach(batch ->
            batches.addArray().add(batch.lastSeq()).add(batch.lastOffset()).add(batch.offsetDelta()).add(batch.timestamp()));
    }

    /** A clock that stands still. */
    private record FixedTime(long now) implements Time {
        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long milliseconds) {
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    /** Nothing happens later: files that are to be deleted stay. */
    private static class NoScheduler implements Scheduler {
        private static final ScheduledExecutorService IDLE = Executors.newScheduledThreadPool(1, task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) {
            return IDLE.schedule(() -> { }, 0, TimeUnit.MILLISECONDS);
        }

        @Override
        public void resizeThreadPool(int threads) {
        }
    }
}
