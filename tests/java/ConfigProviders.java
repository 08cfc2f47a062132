import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.config.provider.DirectoryConfigProvider;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;
import ottla.Json;

/** Replaces variables in values as Kafka does, given the allowed paths, an environment and a pattern for it. */
public class ConfigProviders {
    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            Map<String, String> environment = new HashMap<>();
            question.get("environment").properties().forEach(one -> environment.put(one.getKey(), one.getValue().asText()));
            String allowed = question.get("allowed").asText();
            Map<String, ConfigProvider> providers = new HashMap<>();
            providers.put("file", configured(new FileConfigProvider(), "allowed.paths", allowed));
            providers.put("dir", configured(new DirectoryConfigProvider(), "allowed.paths", allowed));
            providers.put("env", configured(new EnvVarConfigProvider(environment), "allowlist.pattern", question.get("pattern").asText()));
            ConfigTransformer transformer = new ConfigTransformer(providers);
            ArrayNode results = answer.putArray("results");
            for (JsonNode value : question.get("values")) {
                try {
                    results.add("=" + transformer.transform(Map.of("key", value.asText())).data().get("key"));
                } catch (ConfigException error) {
                    results.add("!" + error.getMessage());
                }
            }
        });
    }

    private static ConfigProvider configured(ConfigProvider provider, String name, String value) {
        Map<String, String> parameters = new LinkedHashMap<>();
        parameters.put(name, value);
        provider.configure(parameters);
        return provider;
    }
}
