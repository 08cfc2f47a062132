/**
 * Runs the parts of Apache Kafka's controller that decide about brokers and partitions, request by request,
 * with a clock that does what it is told. A question is:
 *
 *   new      begin a controller: finalized features, what the random source answers, session timeout, time
 *   ask      a request: api, version, body; answers with the records and with the response
 *   run      a periodic task: fence, balance, unclean
 *   replay   records that somebody else wrote
 *   advance  to a time
 *
 * Records are replayed as soon as they are made. Lies in Kafka's package because little of this is public.
 */
package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.timeline.SnapshotRegistry;
import ottla.Json;

public class ControlManagers {
    private static final HexFormat HEX = HexFormat.of();
    private static ControlManagers managers;

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            if (question.get("op").asText().equals("new")) {
                managers = new ControlManagers(question);
            } else {
                managers.answer(question, answer);
            }
        });
    }

    private final ToldTime time = new ToldTime();
    private final FeatureControlManager features;
    private final ClusterControlManager cluster;
    private final ConfigurationControlManager configs;
    private final ReplicationControlManager replication;
    private long nextOffset = 0;
    private ArrayNode written;

    private ControlManagers(JsonNode question) {
        time.now = question.get("now").asLong();
        LogContext log = new LogContext();
        SnapshotRegistry registry = new SnapshotRegistry(log);
        features = new FeatureControlManager.Builder()
            .setLogContext(log)
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0)))
            .build();
        cluster = new ClusterControlManager.Builder()
            .setLogContext(log)
            .setClusterId(question.get("cluster").asText())
            .setTime(time)
            .setSnapshotRegistry(registry)
            .setSessionTimeoutNs(TimeUnit.MILLISECONDS.toNanos(question.get("session").asLong()))
            .setReplicaPlacer(new StripedReplicaPlacer(new ToldRandom(question.get("random").asInt())))
            .setFeatureControlManager(features)
            .setBrokerShutdownHandler((id, isClean, records) -> handleShutdown(id, isClean, records))
            .build();
        configs = new ConfigurationControlManager.Builder()
            .setLogContext(log)
            .setSnapshotRegistry(registry)
            .setKafkaConfigSchema(KafkaRaftServer.configSchema())
            .setStaticConfig(Map.of())
            .setFeatureControl(features)
            .build();
        replication = new ReplicationControlManager.Builder()
            .setLogContext(log)
            .setSnapshotRegistry(registry)
            .setDefaultReplicationFactor((short) 1)
            .setDefaultNumPartitions(1)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
        question.get("features").fields().forEachRemaining(level -> replay(new ApiMessageAndVersion(
            new FeatureLevelRecord().setName(level.getKey()).setFeatureLevel((short) level.getValue().asInt()), (short) 0)));
        cluster.activate();
    }

    private void handleShutdown(int id, boolean isClean, List<ApiMessageAndVersion> records) {
        replication.handleBrokerShutdown(id, isClean, records);
    }

    private void answer(JsonNode question, ObjectNode answer) {
        written = answer.putArray("records");
        switch (question.get("op").asText()) {
            case "ask" -> ask(question, answer);
            case "run" -> answer.put("more", run(question.get("task").asText()));
            case "replay" -> {
                for (JsonNode record : question.get("records"))
                    replay(read(record));
            }
            case "advance" -> time.now = question.get("to").asLong();
            default -> throw new IllegalArgumentException(question.toString());
        }
        answer.put("next", nextOffset);
    }

    private boolean run(String task) {
        return switch (task) {
            case "fence" -> write(replication::maybeFenceOneStaleBroker);
            case "balance" -> write(replication::maybeBalancePartitionLeaders);
            case "unclean" -> write(replication::maybeElectUncleanLeaders);
            default -> throw new IllegalArgumentException(task);
        };
    }

    private void ask(JsonNode question, ObjectNode answer) {
        ApiKeys api = ApiKeys.forId(question.get("api").asInt());
        short version = (short) question.get("version").asInt();
        ByteBuffer body = ByteBuffer.wrap(HEX.parseHex(question.get("body").asText()));
        ApiMessage request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request.data();
        ApiMessage response;
        try {
            response = decide(api, version, request);
        } catch (ApiException error) {
            answer.put("refused", Errors.forException(error).code());
            return;
        }
        answer.put("reply", HEX.formatHex(MessageUtil.toByteBufferAccessor(response, version).buffer().array()));
    }

    private ApiMessage decide(ApiKeys api, short version, ApiMessage request) {
        ControllerRequestContext context = new ControllerRequestContext(
            new RequestHeaderData().setRequestApiKey(api.id).setRequestApiVersion(version),
            KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
        switch (api) {
            case BROKER_REGISTRATION: {
                Map<String, Short> finalized = new java.util.HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
                finalized.put(KRaftVersion.FEATURE_NAME, (short) 1);
                BrokerRegistrationReply reply = write(() -> cluster.registerBroker(
                    (BrokerRegistrationRequestData) request, nextOffset,
                    new FinalizedControllerFeatures(finalized, Long.MAX_VALUE), version >= 3));
                return new BrokerRegistrationResponseData().setBrokerEpoch(reply.epoch());
            }
            case BROKER_HEARTBEAT: {
                BrokerHeartbeatRequestData data = (BrokerHeartbeatRequestData) request;
                cluster.trackBrokerHeartbeat(data.brokerId(), data.brokerEpoch());
                OptionalLong registered = cluster.registerBrokerRecordOffset(data.brokerId());
                if (registered.isEmpty()) throw Errors.STALE_BROKER_EPOCH.exception();
                BrokerHeartbeatReply reply = write(() -> replication.processBrokerHeartbeat(data, registered.getAsLong()));
                if (reply.inControlledShutdown())
                    cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(data.brokerId(), nextOffset - 1);
                return new BrokerHeartbeatResponseData()
                    .setIsCaughtUp(reply.isCaughtUp())
                    .setIsFenced(reply.isFenced())
                    .setShouldShutDown(reply.shouldShutDown());
            }
            case UNREGISTER_BROKER:
                write(() -> replication.unregisterBroker(((UnregisterBrokerRequestData) request).brokerId()));
                return new UnregisterBrokerResponseData();
            case ALTER_PARTITION:
                return write(() -> replication.alterPartition(context, (AlterPartitionRequestData) request));
            case ALTER_PARTITION_REASSIGNMENTS:
                return write(() -> replication.alterPartitionReassignments((AlterPartitionReassignmentsRequestData) request));
            case LIST_PARTITION_REASSIGNMENTS:
                return replication.listPartitionReassignments(
                    ((ListPartitionReassignmentsRequestData) request).topics(), Long.MAX_VALUE);
            case ELECT_LEADERS:
                return write(() -> replication.electLeaders((ElectLeadersRequestData) request));
            case ASSIGN_REPLICAS_TO_DIRS:
                return write(() -> replication.handleAssignReplicasToDirs((AssignReplicasToDirsRequestData) request));
            case CREATE_TOPICS: {
                CreateTopicsRequestData data = (CreateTopicsRequestData) request;
                Set<String> names = new HashSet<>();
                data.topics().forEach(topic -> names.add(topic.name()));
                return write(() -> replication.createTopics(context, data, names, false));
            }
            case CREATE_PARTITIONS:
                return new CreatePartitionsResponseData().setResults(
                    write(() -> replication.createPartitions(context, ((CreatePartitionsRequestData) request).topics().stream().toList())));
            default:
                throw new IllegalArgumentException(api.name());
        }
    }

    private <T> T write(Supplier<ControllerResult<T>> operation) {
        ControllerResult<T> result = operation.get();
        for (ApiMessageAndVersion record : result.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
            written.add(HEX.formatHex(bytes.array()));
            replay(record);
        }
        return result.response();
    }

    private ApiMessageAndVersion read(JsonNode record) {
        byte[] bytes = HEX.parseHex(record.asText());
        return MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length);
    }

    private void replay(ApiMessageAndVersion record) {
        ApiMessage message = record.message();
        if (message instanceof FeatureLevelRecord one) features.replay(one);
        else if (message instanceof RegisterBrokerRecord one) cluster.replay(one, nextOffset);
        else if (message instanceof UnregisterBrokerRecord one) cluster.replay(one);
        else if (message instanceof BrokerRegistrationChangeRecord one) cluster.replay(one);
        else if (message instanceof ConfigRecord one) configs.replay(one);
        else if (message instanceof TopicRecord one) replication.replay(one);
        else if (message instanceof PartitionRecord one) replication.replay(one);
        else if (message instanceof PartitionChangeRecord one) replication.replay(one);
        else if (message instanceof RemoveTopicRecord one) replication.replay(one);
        else if (message instanceof ClearElrRecord one) replication.replay(one);
        else throw new IllegalArgumentException(message.toString());
        nextOffset++;
    }

    /** Answers every question for a number below a bound in the same way, so that their order does not matter. */
    private static class ToldRandom extends Random {
        private final int answer;

        ToldRandom(int answer) {
            this.answer = answer;
        }

        @Override
        public int nextInt(int bound) {
            return answer % bound;
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
            return TimeUnit.MILLISECONDS.toNanos(now);
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
}
