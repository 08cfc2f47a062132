import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;

import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Reads lines of a key in hex and a number of partitions, and answers each with the partition of the key. */
public class KeyPartitions {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] key = HexFormat.of().parseHex(parts[0]);
            System.out.println(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(parts[1])));
        }
    }
}
