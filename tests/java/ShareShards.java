package org.apache.kafka.coordinator.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;
import ottla.Json;

/** A shard of Apache Kafka's share coordinator, one request after the other. */
public class ShareShards {
    private static final HexFormat HEX = HexFormat.of();

    private static ShareShards current;

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            if (question.has("topic")) current = new ShareShards(question); else current.answer(question, answer);
        });
    }

    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private final ToldTime time = new ToldTime();
    private final ShareCoordinatorShard shard;
    private long offset = 0;

    private ShareShards(JsonNode question) {
        time.now = question.get("now").asLong();
        Map<String, String> configs = Map.of(
            ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, question.get("updates").asText());
        shard = (ShareCoordinatorShard) new ShareCoordinatorShard.Builder(
                new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, configs, false)))
            .withLogContext(new LogContext())
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext()))
            .withTime(time)
            .withCoordinatorMetrics(new ShareCoordinatorMetrics())
            .withTopicPartition(new TopicPartition("__share_group_state", 0))
            .build();
        shard.onLoaded(new OneTopic(Uuid.fromString(question.get("topic").asText()), question.get("partitions").asInt()));
    }

    private void answer(JsonNode question, ObjectNode answer) {
        time.now = question.get("now").asLong();
        if (question.has("cold")) {
            write(shard.snapshotColdPartitions(), answer);
            return;
        }
        ApiKeys api = ApiKeys.forId(question.get("api").asInt());
        short version = (short) question.get("version").asInt();
        ByteBuffer body = ByteBuffer.wrap(HEX.parseHex(question.get("body").asText()));
        AbstractRequest request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request;
        CoordinatorResult<?, CoordinatorRecord> result = switch (api) {
            case INITIALIZE_SHARE_GROUP_STATE -> shard.initializeState((InitializeShareGroupStateRequestData) request.data());
            case WRITE_SHARE_GROUP_STATE -> shard.writeState((WriteShareGroupStateRequestData) request.data());
            case READ_SHARE_GROUP_STATE -> shard.readStateAndMaybeUpdateLeaderEpoch((ReadShareGroupStateRequestData) request.data());
            case READ_SHARE_GROUP_STATE_SUMMARY -> shard.readStateSummary((ReadShareGroupStateSummaryRequestData) request.data());
            case DELETE_SHARE_GROUP_STATE -> shard.deleteState((DeleteShareGroupStateRequestData) request.data());
            default -> throw new IllegalArgumentException(api.name);
        };
        write(result, answer);
        answer.put("reply", HEX.formatHex(MessageUtil.toByteBufferAccessor((ApiMessage) result.response(), version).buffer().array()));
    }

    private void write(CoordinatorResult<?, CoordinatorRecord> result, ObjectNode answer) {
        ArrayNode records = answer.putArray("records");
        for (CoordinatorRecord record : result.records()) {
            ArrayNode written = records.addArray();
            written.add(HEX.formatHex(serde.serializeKey(record)));
            byte[] value = serde.serializeValue(record);
            if (value == null) written.addNull(); else written.add(HEX.formatHex(value));
            shard.replay(offset++, -1L, (short) -1, record);
        }
    }

    private static final class ToldTime implements Time {
        private long now;

        @Override public long milliseconds() {
            return now;
        }

        @Override public long hiResClockMs() {
            return now;
        }

        @Override public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override public void sleep(long milliseconds) {
            now += milliseconds;
        }

        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }

        @Override public Timer timer(long timeout) {
            throw new UnsupportedOperationException();
        }
    }

    private record OneTopic(Uuid id, int partitionCount) implements CoordinatorMetadataImage, CoordinatorMetadataImage.TopicMetadata {
        @Override public String name() {
            return "orders";
        }

        @Override public List<String> partitionRacks(int partition) {
            return List.of();
        }

        @Override public Set<Uuid> topicIds() {
            return Set.of(id);
        }

        @Override public Set<String> topicNames() {
            return Set.of(name());
        }

        @Override public Optional<TopicMetadata> topicMetadata(String name) {
            return name.equals(name()) ? Optional.of(this) : Optional.empty();
        }

        @Override public Optional<TopicMetadata> topicMetadata(Uuid wanted) {
            return wanted.equals(id) ? Optional.of(this) : Optional.empty();
        }

        @Override public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override public long version() {
            return 1;
        }

        @Override public boolean isEmpty() {
            return false;
        }
    }
}
