import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads messages with Apache Kafka's generated classes and writes them again, maybe in another version.
 *
 * A question: name, version to read, version to write, and bytes in hex, with spaces between.
 * An answer: the bytes as Kafka writes them, a space, and the values (as read) as JSON;
 *             or "!" and what went wrong.
 */
public final class GeneratedMessages {
    private static final HexFormat HEX = HexFormat.of();
    private static final List<String> PACKAGES = List.of(
        "common.message", "common.metadata", "coordinator.group.generated", "coordinator.share.generated",
        "coordinator.transaction.generated", "raft.generated", "server.log.remote.metadata.storage.generated");
    private static final Map<String, Class<?>> TYPES = new HashMap<>();
    private static final Map<Class<?>, Method> CONVERTERS = new HashMap<>();

    public static String answer(String line) {
        return answer(line.split(" ", -1));
    }

    private static String answer(String[] question) {
        try {
            short readVersion = Short.parseShort(question[1]);
            short writeVersion = Short.parseShort(question[2]);
            return readAndWrite(question[0], readVersion, writeVersion, HEX.parseHex(question[3]));
        } catch (InvocationTargetException error) {
            return "!" + oneLine(error.getCause());
        } catch (Exception error) {
            return "!" + oneLine(error);
        }
    }

    private static String readAndWrite(String name, short readVersion, short writeVersion, byte[] bytes)
            throws Exception {
        Class<?> type = type(name);
        Message message = (Message) type.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), readVersion);
        if (buffer.hasRemaining()) {
            return "!" + buffer.remaining() + " bytes are left over";
        }
        var sizes = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(sizes, writeVersion));
        message.write(new ByteBufferAccessor(written), sizes, writeVersion);
        JsonNode values = (JsonNode) converter(type).invoke(null, message, readVersion, false);
        return HEX.formatHex(written.array()) + " " + values;
    }

    /** Requests, responses and headers have `Data` after their name. */
    private static Class<?> type(String name) throws ClassNotFoundException {
        Class<?> type = TYPES.get(name);
        if (type != null) return type;
        for (String candidate : List.of(name + "Data", name)) {
            for (String place : PACKAGES) {
                try {
                    type = Class.forName("org.apache.kafka." + place + "." + candidate);
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
                TYPES.put(name, type);
                return type;
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static Method converter(Class<?> type) throws Exception {
        Method method = CONVERTERS.get(type);
        if (method == null) {
            Class<?> converter = Class.forName(type.getName() + "JsonConverter");
            method = converter.getMethod("write", type, short.class, boolean.class);
            CONVERTERS.put(type, method);
        }
        return method;
    }

    private static String oneLine(Throwable error) {
        return error.toString().replace('\n', ' ').replace('\r', ' ');
    }
}
