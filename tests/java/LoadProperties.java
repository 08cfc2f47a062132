import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;
import java.nio.charset.StandardCharsets;

/** Reads properties files, a line of hexadecimal digits each, and prints the pairs of each as a line: key=value,… in hexadecimal UTF-16. */
public class LoadProperties {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder output = new StringBuilder();
        for (String line; (line = input.readLine()) != null; ) {
            Properties properties = new Properties();
            try {
                properties.load(new ByteArrayInputStream(HexFormat.of().parseHex(line)));
                TreeMap<String, String> pairs = new TreeMap<>();
                properties.stringPropertyNames().forEach(key -> pairs.put(hex(key), hex(properties.getProperty(key))));
                pairs.forEach((key, value) -> output.append(key).append('=').append(value).append(','));
            } catch (IllegalArgumentException malformed) {
                output.append("malformed");
            }
            output.append('\n');
        }
        System.out.print(output);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
