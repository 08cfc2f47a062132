package ottla;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs the programs that lie beside it in one JVM, whoever of them is asked. A question is a line: the class of the
 * program, a tab, and what its method `answer` is to be told. An answer is a line, too.
 */
public final class Host {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        // Kafka's logging writes to standard output.
        System.setOut(System.err);
        Map<String, Method> programs = new HashMap<>();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            int tab = line.indexOf('\t');
            String name = line.substring(0, tab);
            Method program = programs.get(name);
            if (program == null) {
                program = Class.forName(name).getMethod("answer", String.class);
                programs.put(name, program);
            }
            answers.println((String) program.invoke(null, line.substring(tab + 1)));
            answers.flush();
        }
    }
}
