import java.util.HexFormat;

import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Answers a key in hex and a number of partitions with the partition of the key. */
public class KeyPartitions {
    public static String answer(String line) {
        String[] parts = line.split(" ", -1);
        byte[] key = HexFormat.of().parseHex(parts[0]);
        return String.valueOf(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(parts[1])));
    }
}
