/**
 * Asks Avro's own classes whether one schema can read what another one wrote, and how they print schemas.
 */
import com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.Incompatibility;
import ottla.Json;

public class AvroSchemas {

    public static String answer(String line) throws Exception {
        return Json.answer(line, (question, answer) -> {
            try {
                answer.put("verdict", "compatible");
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
                answer.removeAll().put("verdict", "invalid");
            }
        });
    }
}
