/**
 * Runs the shard of Apache Kafka's group coordinator, request by request, with a clock, timers and an executor
 * that do what they are told. A question is:
 *
 *   new      begin a shard of a name, with configs, at a time
 *   topics   the topics of the cluster from now on
 *   ask      a request: api, version, client, body; answers with the records, and with what was answered
 *   advance  to a time: tasks run, timers fire
 *   replay   records that somebody else wrote: key and value of each
 *   load     tell a shard that everything is loaded
 *
 * Lies in Kafka's package because its shard is built by classes that are not public.
 */
package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeRequestData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ShareGroupHeartbeatResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.timeline.SnapshotRegistry;
import ottla.Json;

public class GroupShards {
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, GroupShards> SHARDS = new HashMap<>();

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            String name = question.get("shard").asText();
            if (question.get("op").asText().equals("new")) {
                SHARDS.put(name, new GroupShards(question));
            } else {
                SHARDS.get(name).answer(question, answer);
            }
        });
    }

    private final GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
    private final ToldTime time = new ToldTime();
    private final Timers timers = new Timers();
    private final Tasks tasks = new Tasks();
    private final GroupConfigManager groupConfigs;
    private final GroupCoordinatorShard shard;
    private Topics topics = new Topics(Map.of(), 0);
    private long offset = 0;
    private long asked = 0;
    private ArrayNode batches;
    private ArrayNode replies;
    private Optional<InitializeShareGroupStateParameters> uninitialized = Optional.empty();
    private ArrayNode creatable;

    private GroupShards(JsonNode question) {
        time.now = question.get("now").asLong();
        Map<String, String> configs = new HashMap<>();
        question.get("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        GroupCoordinatorConfig config = GroupCoordinatorConfig.fromProps(configs);
        ShareGroupConfig shareConfig = new ShareGroupConfig(new AbstractConfig(
            Utils.mergeConfigs(List.of(ShareGroupConfig.CONFIG_DEF, GroupCoordinatorConfig.CONFIG_DEF)), Map.of()));
        groupConfigs = new GroupConfigManager(Map.of(), config, shareConfig);
        shard = new GroupCoordinatorShard.Builder(config, groupConfigs)
            .withAuthorizerPlugin(Optional.empty())
            .withLogContext(new LogContext())
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext()))
            .withTime(time)
            .withTimer(timers)
            .withExecutor(tasks)
            .withCoordinatorMetrics(new GroupCoordinatorMetrics())
            .withTopicPartition(new TopicPartition("__consumer_offsets", 0))
            .build();
    }

    private void answer(JsonNode question, ObjectNode answer) throws Exception {
        batches = answer.putArray("batches");
        replies = answer.putArray("replies");
        creatable = answer.putArray("creatable");
        switch (question.get("op").asText()) {
            case "load" -> shard.onLoaded(topics);
            case "topics" -> useTopics(question);
            case "ask" -> ask(question);
            case "advance" -> advance(question.get("to").asLong());
            case "replay" -> {
                for (JsonNode record : question.get("records"))
                    shard.replay(offset++, -1L, (short) -1, read(record));
            }
            default -> throw new IllegalArgumentException(question.toString());
        }
    }

    private CoordinatorRecord read(JsonNode record) {
        ByteBuffer key = ByteBuffer.wrap(HEX.parseHex(record.get(0).asText()));
        ByteBuffer value = record.get(1).isNull() ? null : ByteBuffer.wrap(HEX.parseHex(record.get(1).asText()));
        return serde.deserialize(key, value);
    }

    private void useTopics(JsonNode question) {
        Map<String, Topic> named = new TreeMap<>();
        for (JsonNode topic : question.get("topics")) {
            List<List<String>> racks = new ArrayList<>();
            for (JsonNode partition : topic.get(3)) {
                List<String> some = new ArrayList<>();
                partition.forEach(rack -> some.add(rack.asText()));
                racks.add(some);
            }
            named.put(topic.get(0).asText(), new Topic(topic.get(0).asText(), Uuid.fromString(topic.get(1).asText()), topic.get(2).asInt(), racks));
        }
        Topics before = topics;
        topics = new Topics(named, question.get("version").asLong());
        shard.onMetadataUpdate(new Changes(before, topics), topics);
    }

    private void advance(long to) {
        // What is due without delay is done before time goes on.
        tasks.run();
        while (timers.fire()) { }
        time.now = to;
        while (timers.fire()) { }
    }

    private void write(Supplier<CoordinatorResult<?, CoordinatorRecord>> operation) {
        CoordinatorResult<?, CoordinatorRecord> result = operation.get();
        if (!result.records().isEmpty()) {
            ArrayNode batch = batches.addArray();
            for (CoordinatorRecord record : result.records()) {
                ArrayNode written = batch.addArray();
                written.add(HEX.formatHex(serde.serializeKey(record)));
                byte[] value = serde.serializeValue(record);
                if (value == null) written.addNull(); else written.add(HEX.formatHex(value));
                if (result.replayRecords())
                    shard.replay(offset++, -1L, (short) -1, record);
            }
        }
        if (result.appendFuture() != null)
            result.appendFuture().complete(null);
    }

    private void ask(JsonNode question) throws Exception {
        ApiKeys api = ApiKeys.forId(question.get("api").asInt());
        short version = (short) question.get("version").asInt();
        ByteBuffer body = ByteBuffer.wrap(HEX.parseHex(question.get("body").asText()));
        AbstractRequest request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request;
        RequestContext context = new RequestContext(
            new RequestHeader(api, version, question.get("client").asText(), 0),
            "", InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        long id = asked++;
        switch (api) {
            case CONSUMER_GROUP_HEARTBEAT -> serve(id, version,
                () -> shard.consumerGroupHeartbeat(context, (ConsumerGroupHeartbeatRequestData) request.data()),
                error -> new ConsumerGroupHeartbeatResponseData().setErrorCode(error.code()));
            case SHARE_GROUP_HEARTBEAT -> {
                uninitialized = Optional.empty();
                serve(id, version, () -> shareHeartbeat(context, (ShareGroupHeartbeatRequestData) request.data()),
                    error -> new ShareGroupHeartbeatResponseData().setErrorCode(error.code()));
                uninitialized.ifPresent(this::initialize);
            }
            case STREAMS_GROUP_HEARTBEAT -> serve(id, version,
                () -> streamsHeartbeat(context, (StreamsGroupHeartbeatRequestData) request.data()),
                error -> new StreamsGroupHeartbeatResponseData().setErrorCode(error.code()));
            case STREAMS_GROUP_DESCRIBE -> reply(id, version, new StreamsGroupDescribeResponseData().setGroups(
                shard.streamsGroupDescribe(((StreamsGroupDescribeRequestData) request.data()).groupIds(), Long.MAX_VALUE)));
            case HEARTBEAT -> serve(id, version,
                () -> shard.classicGroupHeartbeat(context, (HeartbeatRequestData) request.data()),
                error -> new HeartbeatResponseData().setErrorCode(error.code()));
            case LEAVE_GROUP -> serve(id, version,
                () -> shard.classicGroupLeave(context, (LeaveGroupRequestData) request.data()),
                error -> new LeaveGroupResponseData().setErrorCode(error.code()));
            case OFFSET_COMMIT -> serve(id, version,
                () -> shard.commitOffset(context, withIds((OffsetCommitRequestData) request.data())),
                error -> OffsetCommitRequest.getErrorResponse((OffsetCommitRequestData) request.data(), error));
            case JOIN_GROUP -> {
                CompletableFuture<JoinGroupResponseData> future = new CompletableFuture<>();
                future.thenAccept(response -> reply(id, version, response));
                servePromised(future, () -> shard.classicGroupJoin(context, (JoinGroupRequestData) request.data(), future),
                    error -> new JoinGroupResponseData().setErrorCode(error.code()));
            }
            case SYNC_GROUP -> {
                CompletableFuture<SyncGroupResponseData> future = new CompletableFuture<>();
                future.thenAccept(response -> reply(id, version, response));
                servePromised(future, () -> shard.classicGroupSync(context, (SyncGroupRequestData) request.data(), future),
                    error -> new SyncGroupResponseData().setErrorCode(error.code()));
            }
            case OFFSET_FETCH -> reply(id, version, fetch((OffsetFetchRequestData) request.data()));
            case CONSUMER_GROUP_DESCRIBE -> reply(id, version, new ConsumerGroupDescribeResponseData().setGroups(
                shard.consumerGroupDescribe(((ConsumerGroupDescribeRequestData) request.data()).groupIds(), Long.MAX_VALUE)));
            case DESCRIBE_GROUPS -> reply(id, version, new DescribeGroupsResponseData().setGroups(
                shard.describeGroups(context, ((DescribeGroupsRequestData) request.data()).groups(), Long.MAX_VALUE)));
            case LIST_GROUPS -> {
                ListGroupsRequestData data = (ListGroupsRequestData) request.data();
                reply(id, version, new ListGroupsResponseData().setGroups(
                    shard.listGroups(data.statesFilter(), data.typesFilter(), Long.MAX_VALUE)));
            }
            default -> throw new IllegalArgumentException(api.name);
        }
    }

    /** The broker gets what needs a state beside the answer. */
    private CoordinatorResult<ShareGroupHeartbeatResponseData, CoordinatorRecord> shareHeartbeat(
        RequestContext context, ShareGroupHeartbeatRequestData data
    ) {
        CoordinatorResult<Map.Entry<ShareGroupHeartbeatResponseData, Optional<InitializeShareGroupStateParameters>>, CoordinatorRecord> result =
            shard.shareGroupHeartbeat(context, data);
        uninitialized = result.response().getValue();
        return new CoordinatorResult<>(result.records(), result.response().getKey(), result.appendFuture(), result.replayRecords());
    }

    /** The share coordinators answer at once. */
    private void initialize(InitializeShareGroupStateParameters wanted) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        wanted.groupTopicPartitionData().topicsData().forEach(topic -> partitions.put(
            topic.topicId(), topic.partitions().stream().map(one -> one.partition()).collect(Collectors.toSet())));
        write(() -> shard.initializeShareGroupState(wanted.groupTopicPartitionData().groupId(), partitions));
    }

    /** The broker gets the topics that are to be created beside the answer. */
    private CoordinatorResult<StreamsGroupHeartbeatResponseData, CoordinatorRecord> streamsHeartbeat(
        RequestContext context, StreamsGroupHeartbeatRequestData data
    ) {
        CoordinatorResult<StreamsGroupHeartbeatResult, CoordinatorRecord> result = shard.streamsGroupHeartbeat(context, data);
        result.response().creatableTopics().values().forEach(topic -> {
            ArrayNode shown = creatable.addArray();
            shown.add(topic.name()).add(topic.numPartitions()).add(topic.replicationFactor());
            ObjectNode configs = shown.addObject();
            topic.configs().forEach(config -> configs.put(config.name(), config.value()));
        });
        return new CoordinatorResult<>(result.records(), result.response().data(), result.appendFuture(), result.replayRecords());
    }

    /** The broker fills in the ids that a request does not have, before it asks the coordinator. */
    private OffsetCommitRequestData withIds(OffsetCommitRequestData data) {
        data.topics().forEach(topic -> topics.topicMetadata(topic.name()).ifPresent(known -> topic.setTopicId(known.id())));
        return data;
    }

    private OffsetFetchResponseData fetch(OffsetFetchRequestData data) {
        OffsetFetchResponseData answer = new OffsetFetchResponseData();
        for (OffsetFetchRequestData.OffsetFetchRequestGroup group : data.groups()) {
            try {
                answer.groups().add(shard.fetchOffsets(group, Long.MAX_VALUE));
            } catch (Exception error) {
                answer.groups().add(new OffsetFetchResponseData.OffsetFetchResponseGroup()
                    .setGroupId(group.groupId()).setErrorCode(Errors.forException(error).code()));
            }
        }
        return answer;
    }

    private <T extends ApiMessage> void serve(
        long id, short version, Supplier<CoordinatorResult<T, CoordinatorRecord>> operation, Function<Errors, ApiMessage> refused
    ) {
        try {
            write(() -> {
                CoordinatorResult<T, CoordinatorRecord> result = operation.get();
                reply(id, version, result.response());
                return result;
            });
        } catch (Exception error) {
            reply(id, version, refused.apply(Errors.forException(error)));
        }
    }

    private <T> void servePromised(
        CompletableFuture<T> future, Supplier<CoordinatorResult<Void, CoordinatorRecord>> operation, Function<Errors, T> refused
    ) {
        try {
            write(operation::get);
        } catch (Exception error) {
            future.complete(refused.apply(Errors.forException(error)));
        }
    }

    private void reply(long id, short version, ApiMessage message) {
        ArrayNode reply = replies.addArray();
        reply.add(id);
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] written = new byte[bytes.remaining()];
        bytes.get(written);
        reply.add(HEX.formatHex(written));
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

    private record Scheduled(long deadline, long sequence, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> operation) { }

    private final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        private final Map<String, Scheduled> scheduled = new HashMap<>();
        private long sequence = 0;

        @Override public void schedule(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            scheduled.put(key, new Scheduled(time.now + unit.toMillis(delay), sequence++, operation));
        }

        @Override public void schedule(
            String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation
        ) {
            schedule(key, delay, unit, retry, operation);
        }

        @Override public void scheduleIfAbsent(
            String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation
        ) {
            if (!scheduled.containsKey(key)) schedule(key, delay, unit, retry, operation);
        }

        @Override public void cancel(String key) {
            scheduled.remove(key);
        }

        @Override public boolean isScheduled(String key) {
            return scheduled.containsKey(key);
        }

        private boolean fire() {
            List<Map.Entry<String, Scheduled>> due = scheduled.entrySet().stream()
                .filter(entry -> entry.getValue().deadline <= time.now)
                .map(entry -> Map.entry(entry.getKey(), entry.getValue()))
                .sorted(Comparator.comparing((Map.Entry<String, Scheduled> entry) -> entry.getValue().deadline)
                    .thenComparing(entry -> entry.getValue().sequence))
                .collect(Collectors.toList());
            for (Map.Entry<String, Scheduled> entry : due) {
                if (scheduled.remove(entry.getKey(), entry.getValue()))
                    write(() -> entry.getValue().operation.generateRecords());
            }
            return !due.isEmpty();
        }
    }

    private final class Tasks implements CoordinatorExecutor<CoordinatorRecord> {
        private final Map<String, Runnable> waiting = new LinkedHashMap<>();

        @Override public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
            return waiting.putIfAbsent(key, () -> {
                R result = null;
                Throwable error = null;
                try {
                    result = task.run();
                } catch (Throwable thrown) {
                    error = thrown;
                }
                R found = result;
                Throwable failed = error;
                write(() -> operation.onComplete(found, failed));
            }) == null;
        }

        @Override public boolean isScheduled(String key) {
            return waiting.containsKey(key);
        }

        @Override public void cancel(String key) {
            waiting.remove(key);
        }

        private void run() {
            List<Runnable> all = new ArrayList<>(waiting.values());
            waiting.clear();
            all.forEach(Runnable::run);
        }
    }

    private record Topic(String name, Uuid id, int partitionCount, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        @Override public List<String> partitionRacks(int partition) {
            return racks.isEmpty() ? new ArrayList<>() : new ArrayList<>(racks.get(partition));
        }
    }

    private record Topics(Map<String, Topic> named, long version) implements CoordinatorMetadataImage {
        @Override public Set<Uuid> topicIds() {
            return named.values().stream().map(Topic::id).collect(Collectors.toSet());
        }

        @Override public Set<String> topicNames() {
            return named.keySet();
        }

        @Override public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(named.get(name));
        }

        @Override public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return named.values().stream().filter(topic -> topic.id.equals(id)).map(topic -> (TopicMetadata) topic).findFirst();
        }

        @Override public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override public boolean isEmpty() {
            return named.isEmpty();
        }
    }

    private record Changes(Topics before, Topics after) implements CoordinatorMetadataDelta {
        @Override public Collection<Uuid> createdTopicIds() {
            return after.topicIds().stream().filter(id -> before.topicMetadata(id).isEmpty()).toList();
        }

        @Override public Collection<Uuid> changedTopicIds() {
            return after.named.values().stream()
                .filter(topic -> !topic.equals(before.named.get(topic.name)))
                .map(Topic::id).toList();
        }

        @Override public Set<Uuid> deletedTopicIds() {
            return before.topicIds().stream().filter(id -> after.topicMetadata(id).isEmpty()).collect(Collectors.toSet());
        }

        @Override public CoordinatorMetadataImage image() {
            return before;
        }
    }
}
