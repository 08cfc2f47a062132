import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads messages with Apache Kafka's generated classes and writes them again, maybe in another version.
 *
 * A line in:  class, version to read, version to write, and bytes in hex, with spaces between.
 * A line out: the bytes as Kafka writes them, a space, and the values (as read) as JSON;
 *             or "!" and what went wrong.
 */
public final class GeneratedMessages {
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, Method> CONVERTERS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ", -1)));
            out.flush();
        }
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
        Message message = (Message) Class.forName(name).getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), readVersion);
        if (buffer.hasRemaining()) {
            return "!" + buffer.remaining() + " bytes are left over";
        }
        var sizes = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(sizes, writeVersion));
        message.write(new ByteBufferAccessor(written), sizes, writeVersion);
        JsonNode values = (JsonNode) converter(name).invoke(null, message, readVersion, false);
        return HEX.formatHex(written.array()) + " " + values;
    }

    private static Method converter(String name) throws Exception {
        Method method = CONVERTERS.get(name);
        if (method == null) {
            Class<?> converter = Class.forName(name + "JsonConverter");
            method = converter.getMethod("write", Class.forName(name), short.class, boolean.class);
            CONVERTERS.put(name, method);
        }
        return method;
    }

    private static String oneLine(Throwable error) {
        return error.toString().replace('\n', ' ').replace('\r', ' ');
    }
}
