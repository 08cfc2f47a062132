/**
 * Asks Avro's own classes whether one schema can read what another one wrote, and how they print schemas. Reads one
 * JSON object per line and answers each with one.
 */
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;

public class AvroSchemas {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.put("verdict", "compatible");
                JsonNode question = JSON.readTree(line);
                Schema reader = new Schema.Parser().parse(question.get("reader").asText());
                Schema writer = new Schema.Parser().parse(question.get("writer").asText());
                answer.put("text", reader.toString());
                ArrayNode found = answer.putArray("incompatibilities");
                for (Incompatibility one : SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
                        .getResult().getIncompatibilities()) {
                    answer.put("verdict", "incompatible");
                    found.addArray().add(one.getType().name()).add(one.getLocation());
                }
            } catch (RuntimeException error) {
                error.printStackTrace();
                answer.removeAll().put("verdict", "invalid");
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }
}
