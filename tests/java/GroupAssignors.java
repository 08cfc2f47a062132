/**
 * Asks Apache Kafka's server-side assignors, and the regular expressions that it takes subscriptions by.
 */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import ottla.Json;

public class GroupAssignors {

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            if (question.has("regex")) match(question, answer); else assign(question, answer);
        });
    }

    private static void match(JsonNode question, ObjectNode answer) {
        try {
            Pattern pattern = Pattern.compile(question.get("regex").asText());
            ArrayNode matches = answer.putArray("matches");
            for (JsonNode name : question.get("names"))
                if (pattern.matcher(name.asText()).matches()) matches.add(name.asText());
        } catch (PatternSyntaxException error) {
            answer.put("invalid", error.getDescription());
        }
    }

    private static void assign(JsonNode question, ObjectNode answer) {
        Map<Uuid, Integer> topics = new HashMap<>();
        question.get("topics").fields().forEachRemaining(entry -> topics.put(Uuid.fromString(entry.getKey()), entry.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : question.get("members")) {
            String memberId = member.get("id").asText();
            Set<Uuid> wanted = new HashSet<>();
            member.get("topics").forEach(topic -> wanted.add(Uuid.fromString(topic.asText())));
            subscriptions.add(wanted);
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get("assigned").fields().forEachRemaining(entry -> {
                Uuid topic = Uuid.fromString(entry.getKey());
                Set<Integer> numbers = new HashSet<>();
                entry.getValue().forEach(number -> numbers.add(number.asInt()));
                assigned.put(topic, numbers);
                numbers.forEach(number -> owners.computeIfAbsent(topic, key -> new HashMap<>()).put(number, memberId));
            });
            Optional<String> instance = member.get("instance").isNull() ? Optional.empty() : Optional.of(member.get("instance").asText());
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, wanted, new Assignment(Collections.unmodifiableMap(assigned))));
        }
        ConsumerGroupPartitionAssignor assignor =
            question.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type = subscriptions.size() <= 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<String, MemberAssignment> result = assignor.assign(
            new GroupSpecImpl(members, type, owners, Optional.empty()), new Described(topics)).members();
        ObjectNode assignment = answer.putObject("assignment");
        members.keySet().forEach(memberId -> {
            ObjectNode shown = assignment.putObject(memberId);
            if (result.containsKey(memberId))
                result.get(memberId).partitions().forEach((topic, numbers) -> {
                    ArrayNode list = shown.putArray(topic.toString());
                    numbers.forEach(list::add);
                });
        });
    }

    private record Described(Map<Uuid, Integer> topics) implements SubscribedTopicDescriber {
        @Override public int numPartitions(Uuid topic) {
            return topics.getOrDefault(topic, -1);
        }

        @Override public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}
