/**
 * Asks Apache Kafka's client-side assignors and its codec for the blobs inside JoinGroup and SyncGroup.
 * Blobs travel as hexadecimal text.
 */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import ottla.Json;

public class ConsumerAssignors {
    private static final Node NODE = new Node(0, "localhost", 9092);

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            if (question.has("assigned")) note(question, answer); else assign(question, answer);
        });
    }

    /** What an assignor writes into the next subscription after it was given an assignment. */
    private static void note(JsonNode question, ObjectNode answer) {
        ConsumerPartitionAssignor assignor = assignor(question.get("strategy").asText());
        Assignment assignment = ConsumerProtocol.deserializeAssignment(bytes(question.get("assigned")));
        ConsumerGroupMetadata metadata =
            new ConsumerGroupMetadata("group", question.get("generation").asInt(), "member", Optional.empty());
        assignor.onAssignment(assignment, metadata);
        ByteBuffer note = assignor.subscriptionUserData(Set.of());
        answer.put("note", note == null ? null : hex(note));
    }

    private static void assign(JsonNode question, ObjectNode answer) {
        List<PartitionInfo> partitions = new ArrayList<>();
        question.get("partitions").properties().forEach(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++)
                partitions.add(new PartitionInfo(topic.getKey(), number, NODE, new Node[] {NODE}, new Node[] {NODE}));
        });
        Cluster cluster = new Cluster("cluster", List.of(NODE), partitions, Set.of(), Set.of());
        Map<String, Subscription> members = new HashMap<>();
        ObjectNode again = answer.putObject("subscriptions");
        question.get("members").properties().forEach(member -> {
            Subscription subscription =
                ConsumerProtocol.deserializeSubscription(bytes(member.getValue().get("subscription")));
            again.put(member.getKey(), hex(ConsumerProtocol.serializeSubscription(subscription)));
            JsonNode instance = member.getValue().get("instance");
            if (!instance.isNull()) subscription.setGroupInstanceId(Optional.of(instance.asText()));
            members.put(member.getKey(), subscription);
        });
        ObjectNode shares = answer.putObject("shares");
        assignor(question.get("strategy").asText())
            .assign(cluster, new GroupSubscription(members))
            .groupAssignment()
            .forEach((member, share) -> shares.put(member, hex(ConsumerProtocol.serializeAssignment(share))));
    }

    private static ConsumerPartitionAssignor assignor(String strategy) {
        return switch (strategy) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(strategy);
        };
    }

    private static ByteBuffer bytes(JsonNode text) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(text.asText()));
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
