package org.apache.kafka.connect.mirror;

import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * MirrorMaker 2's own classes, asked line by line. A question is words separated by tabs.
 */
public class MirrorMakerClasses {
    private static final HexFormat HEX = HexFormat.of();

    public static String answer(String line) throws Exception {
        return answer(line.split("\t", -1));
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "heartbeat": {
                Heartbeat it = new Heartbeat(words[1], words[2], Long.parseLong(words[3]));
                return HEX.formatHex(it.recordKey()) + " " + HEX.formatHex(it.recordValue());
            }
            case "checkpoint": {
                TopicPartition where = new TopicPartition(words[2], Integer.parseInt(words[3]));
                Checkpoint it = new Checkpoint(words[1], where, Long.parseLong(words[4]), Long.parseLong(words[5]), words[6]);
                return HEX.formatHex(it.recordKey()) + " " + HEX.formatHex(it.recordValue());
            }
            case "sync": {
                TopicPartition where = new TopicPartition(words[1], Integer.parseInt(words[2]));
                OffsetSync it = new OffsetSync(where, Long.parseLong(words[3]), Long.parseLong(words[4]));
                return HEX.formatHex(it.recordKey()) + " " + HEX.formatHex(it.recordValue());
            }
            case "read-sync": {
                OffsetSync it = OffsetSync.deserializeRecord(new ConsumerRecord<>("t", 0, 0, HEX.parseHex(words[1]), HEX.parseHex(words[2])));
                return it.topicPartition() + " " + it.upstreamOffset() + " " + it.downstreamOffset();
            }
            case "names": {
                return names(words);
            }
            case "upstream": {
                Map<String, Object> properties = Map.of("bootstrap.servers", words[1]);
                return new TreeSet<>(RemoteClusterUtils.upstreamClusters(properties))
                    + " " + RemoteClusterUtils.replicationHops(properties, words[2])
                    + " " + new TreeSet<>(RemoteClusterUtils.checkpointTopics(properties))
                    + " " + new TreeSet<>(RemoteClusterUtils.heartbeatTopics(properties));
            }
            case "translate": {
                Map<String, Object> properties = Map.of("bootstrap.servers", words[1]);
                Map<String, Long> found = new TreeMap<>();
                RemoteClusterUtils.translateOffsets(properties, words[2], words[3], Duration.ofSeconds(30))
                    .forEach((where, offset) -> found.put(where.toString(), offset.offset()));
                return found.toString();
            }
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String names(String[] words) {
        DefaultReplicationPolicy policy =
            words[1].equals("identity") ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
        policy.configure(Map.of("replication.policy.separator", words[2], "source.cluster.alias", words[3]));
        String topic = words[5];
        MirrorSourceConnector connector =
            new MirrorSourceConnector(new SourceAndTarget(words[3], words[4]), policy, x -> true, x -> true);
        return policy.formatRemoteTopic(words[3], topic) + " " + policy.topicSource(topic) + " "
            + policy.upstreamTopic(topic) + " " + policy.isInternalTopic(topic) + " " + policy.isHeartbeatsTopic(topic)
            + " " + connector.isCycle(topic) + " " + policy.checkpointsTopic(words[3]) + " "
            + policy.offsetSyncsTopic(words[4]);
    }
}
