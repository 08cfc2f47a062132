import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM.
 *
 * A request is a line: what the tool reads (base64), its class and its arguments, with tabs between. An answer
 * is a line: the exit code and what the tool wrote (base64).
 */
public class Tools {
    private static Integer firstCode;

    private static class Ended extends RuntimeException {
    }

    /** Tools catch what is thrown here and end once more, with an error: the first code is the one meant. */
    private static void end(int code) {
        if (firstCode == null) firstCode = code;
        throw new Ended();
    }

    public static void main(String[] ignored) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] parts = line.split("\t", -1);
            ByteArrayOutputStream written = new ByteArrayOutputStream();
            PrintStream output = new PrintStream(written, true);
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(parts[0])));
            System.setOut(output);
            System.setErr(output);
            firstCode = null;
            int code = run(parts[1], Arrays.copyOfRange(parts, 2, parts.length), output);
            output.flush();
            answers.println(code + "\t" + Base64.getEncoder().encodeToString(written.toByteArray()));
            answers.flush();
        }
    }

    private static int run(String name, String[] arguments, PrintStream output) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (firstCode == null) {
                thrown.getCause().printStackTrace(output);
                return 1;
            }
        } catch (ReflectiveOperationException error) {
            error.printStackTrace(output);
            return 1;
        }
        return firstCode == null ? 0 : firstCode;
    }
}
