package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;

/** Answers a question that is a JSON object with another one. What went wrong is its only field then: `error`. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public interface Program {
        void answer(JsonNode question, ObjectNode answer) throws Exception;
    }

    public static String answer(String line, Program program) throws IOException {
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            program.answer(MAPPER.readTree(line), answer);
        } catch (Throwable error) {
            answer.removeAll().put("error", String.valueOf(error));
            error.printStackTrace();
        }
        return MAPPER.writeValueAsString(answer);
    }
}
