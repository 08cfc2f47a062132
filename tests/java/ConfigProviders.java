import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.config.provider.DirectoryConfigProvider;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;

/** Replaces variables as Kafka does: arguments are allowed paths and a pattern, lines are values in base64. */
public class ConfigProviders {
    public static void main(String[] arguments) {
        Map<String, ConfigProvider> providers = new HashMap<>();
        providers.put("file", configured(new FileConfigProvider(), "allowed.paths", arguments[0]));
        providers.put("dir", configured(new DirectoryConfigProvider(), "allowed.paths", arguments[0]));
        providers.put("env", configured(new EnvVarConfigProvider(), "allowlist.pattern", arguments[1]));
        ConfigTransformer transformer = new ConfigTransformer(providers);
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            String value = new String(Base64.getDecoder().decode(lines.nextLine()), StandardCharsets.UTF_8);
            String result;
            try {
                result = "=" + transformer.transform(Map.of("key", value)).data().get("key");
            } catch (ConfigException error) {
                result = "!" + error.getMessage();
            }
            System.out.println("> " + Base64.getEncoder().encodeToString(result.getBytes(StandardCharsets.UTF_8)));
        }
    }

    private static ConfigProvider configured(ConfigProvider provider, String name, String value) {
        Map<String, String> parameters = new LinkedHashMap<>();
        parameters.put(name, value);
        provider.configure(parameters);
        return provider;
    }
}
