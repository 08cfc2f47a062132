import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Set;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import ottla.Json;

/**
 * Reads, writes and filters record batches with Apache Kafka's own classes.
 *
 * The "op" of a question is "read", "write", "marker" or "filter"; bytes are hex. Of many records or bytes an answer
 * has the SHA-256 alone, if that is asked for.
 */
public final class RecordBatches {
    private static final HexFormat HEX = HexFormat.of();

    public static String answer(String line) throws Exception {
        return Json.answer(line, (ask, answer) -> {
            switch (ask.get("op").asText()) {
                case "read" -> read(HEX.parseHex(ask.get("data").asText()), answer);
                case "write" -> written(write(ask), answer);
                case "marker" -> written(marker(ask), answer);
                case "filter" -> written(filter(ask), answer);
                default -> throw new IllegalArgumentException("unknown op");
            }
            if (ask.has("briefly")) shorten(answer);
        });
    }

    private static void shorten(ObjectNode answer) throws Exception {
        if (answer.has("data")) answer.put("data", sha256(HEX.parseHex(answer.get("data").asText())));
        for (JsonNode batch : answer.path("batches")) {
            byte[] records = batch.get("records").toString().getBytes(StandardCharsets.UTF_8);
            ((ObjectNode) batch).put("records", sha256(records));
        }
    }

    private static String sha256(byte[] content) throws Exception {
        return HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(content));
    }

    private static void written(ByteBuffer buffer, ObjectNode answer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        answer.put("data", HEX.formatHex(bytes));
    }

    private static void read(byte[] bytes, ObjectNode answer) {
        ArrayNode batches = answer.putArray("batches");
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            ObjectNode seen = batches.addObject();
            seen.put("base_offset", batch.baseOffset());
            seen.put("last_offset", batch.lastOffset());
            seen.put("size_bytes", batch.sizeInBytes());
            seen.put("leader_epoch", batch.partitionLeaderEpoch());
            seen.put("magic", batch.magic());
            seen.put("crc", batch.checksum());
            seen.put("max_timestamp", batch.maxTimestamp());
            seen.put("timestamp_type", batch.timestampType().id);
            seen.put("codec", batch.compressionType().id);
            seen.put("is_transactional", batch.isTransactional());
            seen.put("is_control", batch.isControlBatch());
            seen.put("producer_id", batch.producerId());
            seen.put("producer_epoch", batch.producerEpoch());
            seen.put("base_sequence", batch.baseSequence());
            seen.put("last_sequence", batch.lastSequence());
            batch.deleteHorizonMs().ifPresent(horizon -> seen.put("delete_horizon_ms", horizon));
            ArrayNode records = seen.putArray("records");
            try (var iterator = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (iterator.hasNext()) {
                    Record record = iterator.next();
                    record.ensureValid();
                    describe(records.addObject(), batch, record);
                }
            }
        }
    }

    private static void describe(ObjectNode seen, RecordBatch batch, Record record) {
        seen.put("offset", record.offset());
        seen.put("timestamp", record.timestamp());
        seen.put("sequence", record.sequence());
        seen.put("key", hex(record.hasKey() ? record.key() : null));
        seen.put("value", hex(record.hasValue() ? record.value() : null));
        ArrayNode headers = seen.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
        }
        if (batch.isControlBatch()) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            seen.put("control_type", type.name());
            if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
                seen.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
    }

    private static ByteBuffer write(JsonNode ask) {
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024),
                RecordBatch.MAGIC_VALUE_V2,
                compression(ask.get("codec").asText(), ask.get("level")),
                ask.get("append_time").isNull() ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME,
                ask.get("base_offset").asLong(),
                ask.get("append_time").isNull() ? RecordBatch.NO_TIMESTAMP : ask.get("append_time").asLong(),
                ask.get("producer_id").asLong(),
                (short) ask.get("producer_epoch").asInt(),
                ask.get("base_sequence").asInt(),
                ask.get("is_transactional").asBoolean(),
                ask.get("is_control").asBoolean(),
                ask.get("leader_epoch").asInt(),
                Integer.MAX_VALUE,
                ask.get("delete_horizon_ms").isNull()
                    ? RecordBatch.NO_TIMESTAMP : ask.get("delete_horizon_ms").asLong())) {
            for (JsonNode record : ask.get("records")) {
                var simple = new SimpleRecord(
                    record.get("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")),
                    headers(record.get("headers")));
                if (ask.get("is_control").asBoolean()) {
                    builder.appendControlRecordWithOffset(record.get("offset").asLong(), simple);
                } else {
                    builder.appendWithOffset(record.get("offset").asLong(), simple);
                }
            }
            return builder.build().buffer();
        }
    }

    private static Compression compression(String codec, JsonNode level) {
        if (level.isNull()) {
            return Compression.of(codec).build();
        }
        return switch (codec) {
            case "gzip" -> Compression.gzip().level(level.asInt()).build();
            case "lz4" -> Compression.lz4().level(level.asInt()).build();
            case "zstd" -> Compression.zstd().level(level.asInt()).build();
            default -> throw new IllegalArgumentException(codec + " has no levels");
        };
    }

    private static ByteBuffer marker(JsonNode ask) {
        var type = ask.get("is_commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return MemoryRecords.withEndTransactionMarker(
            ask.get("base_offset").asLong(), ask.get("timestamp").asLong(), ask.get("leader_epoch").asInt(),
            ask.get("producer_id").asLong(), (short) ask.get("producer_epoch").asInt(),
            new EndTransactionMarker(type, ask.get("coordinator_epoch").asInt())).buffer();
    }

    /** Keeps the records with the offsets in "kept", and batches that become empty if "retain_empty". */
    private static ByteBuffer filter(JsonNode ask) {
        Set<Long> kept = new HashSet<>();
        ask.get("kept").forEach(offset -> kept.add(offset.asLong()));
        var retention = ask.get("retain_empty").asBoolean()
            ? MemoryRecords.RecordFilter.BatchRetention.RETAIN_EMPTY
            : MemoryRecords.RecordFilter.BatchRetention.DELETE_EMPTY;
        var filter = new MemoryRecords.RecordFilter(ask.get("now").asLong(), ask.get("delete_retention").asLong()) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(retention, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return kept.contains(record.offset());
            }
        };
        byte[] data = HEX.parseHex(ask.get("data").asText());
        return MemoryRecords.readableRecords(ByteBuffer.wrap(data))
            .filterTo(filter, ByteBuffer.allocate(1024), BufferSupplier.NO_CACHING)
            .outputBuffer().flip();
    }

    private static Header[] headers(JsonNode pairs) {
        Header[] headers = new Header[pairs.size()];
        for (int index = 0; index < headers.length; index++) {
            headers[index] = new RecordHeader(pairs.get(index).get(0).asText(), bytes(pairs.get(index).get(1)));
        }
        return headers;
    }

    private static byte[] bytes(JsonNode hex) {
        return hex.isNull() ? null : HEX.parseHex(hex.asText());
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
