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
import ottla.Json;

/**
 * Tells every config that Apache Kafka defines, a line each: scope, name, type, default, what is valid, how it is
 * updated, importance, whether it is internal, and which config of the broker a topic takes it from.
 */
public class ConfigDefinitions {
    public static String answer(String ignored) throws Exception {
        return Json.answer("{}", (question, answer) -> answer.put("table", table()));
    }

    private static String table() throws Exception {
        StringBuilder table = new StringBuilder();
        Map<String, String> modes = new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes());
        // A plugin's own: no definition says more than their names.
        for (String name : new TreeSet<>(Set.of(StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, StandardAuthorizer.SUPER_USERS_CONFIG))) {
            table.append(String.join("\t", "authorizer", name, "", "", "", "", "", "", "")).append("\n");
        }
        add(table, "broker", kafka.server.KafkaConfig.configDef(), modes, "read-only");
        add(table, "broker-throttle", QuotaConfig.brokerQuotaConfigs(), Map.of(), "per-broker");
        add(table, "client-metrics", ClientMetricsConfigs.configDef(), Map.of(), "dynamic");
        add(table, "group", GroupConfig.CONFIG_DEF, Map.of(), "dynamic");
        add(table, "ip-quota", QuotaConfig.ipConfigs(), Map.of(), "dynamic");
        add(table, "topic", LogConfig.configDefCopy(), Map.of(), "dynamic");
        add(table, "user-quota", QuotaConfig.userAndClientQuotaConfigs(), Map.of(), "dynamic");
        return table.toString();
    }

    private static void add(StringBuilder table, String scope, ConfigDef definitions, Map<String, String> modes, String mode) throws Exception {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            table.append(String.join("\t", scope, key.name, key.type.toString(), defaultOf(key), validOf(key),
                modes.getOrDefault(key.name, mode), key.importance.toString(), Boolean.toString(key.internalConfig),
                scope.equals("topic") ? ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, "") : "")).append("\n");
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
