import java.lang.reflect.Field;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints every config that Apache Kafka defines, a line each: scope, name, type, default, what is valid, how it is
 * updated, importance, whether it is internal, and which config of the broker a topic takes it from.
 */
public class ConfigDefinitions {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> modes = new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes());
        // A plugin's own: no definition says more than their names.
        for (String name : new TreeSet<>(Set.of(StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, StandardAuthorizer.SUPER_USERS_CONFIG))) {
            System.out.println(String.join("\t", "authorizer", name, "", "", "", "", "", "", ""));
        }
        print("broker", kafka.server.KafkaConfig.configDef(), modes, "read-only");
        print("broker-throttle", QuotaConfig.brokerQuotaConfigs(), Map.of(), "per-broker");
        print("client-metrics", ClientMetricsConfigs.configDef(), Map.of(), "dynamic");
        print("group", GroupConfig.CONFIG_DEF, Map.of(), "dynamic");
        print("ip-quota", QuotaConfig.ipConfigs(), Map.of(), "dynamic");
        print("topic", LogConfig.configDefCopy(), Map.of(), "dynamic");
        print("user-quota", QuotaConfig.userAndClientQuotaConfigs(), Map.of(), "dynamic");
    }

    private static void print(String scope, ConfigDef definitions, Map<String, String> modes, String mode) throws Exception {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            System.out.println(String.join("\t", scope, key.name, key.type.toString(), defaultOf(key), validOf(key),
                modes.getOrDefault(key.name, mode), key.importance.toString(), Boolean.toString(key.internalConfig),
                scope.equals("topic") ? ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, "") : ""));
        }
    }

    private static String defaultOf(ConfigDef.ConfigKey key) {
        if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE) return "<required>";
        return key.defaultValue == null ? "<null>" : ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static String validOf(ConfigDef.ConfigKey key) throws Exception {
        if (key.validator == null) return "";
        if (!(key.validator instanceof ConfigDef.ValidList)) return key.validator.toString();
        Object strings = read(key.validator, "validString");
        Field values = strings.getClass().getDeclaredField("validStrings");
        values.setAccessible(true);
        return "distinct " + values.get(strings)
            + ((boolean) read(key.validator, "isEmptyAllowed") ? " or empty" : "")
            + ((boolean) read(key.validator, "isNullAllowed") ? " or null" : "");
    }

    private static Object read(Object from, String name) throws Exception {
        Field field = ConfigDef.ValidList.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(from);
    }
}
