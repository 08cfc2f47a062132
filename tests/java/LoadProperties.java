import java.io.ByteArrayInputStream;
import java.util.HexFormat;
import java.util.Properties;
import java.util.TreeMap;
import java.nio.charset.StandardCharsets;

/** Answers a properties file, in hexadecimal digits, with its pairs: key=value,… in hexadecimal UTF-16. */
public class LoadProperties {
    public static String answer(String line) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(HexFormat.of().parseHex(line)));
        } catch (IllegalArgumentException malformed) {
            return "malformed";
        }
        TreeMap<String, String> pairs = new TreeMap<>();
        properties.stringPropertyNames().forEach(key -> pairs.put(hex(key), hex(properties.getProperty(key))));
        StringBuilder output = new StringBuilder();
        pairs.forEach((key, value) -> output.append(key).append('=').append(value).append(','));
        return output.toString();
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
