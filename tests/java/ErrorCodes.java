import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import ottla.Json;

/** Tells Apache Kafka's error codes: number, name, whether retriable, whether metadata is refreshed. */
public final class ErrorCodes {
    public static String answer(String ignored) throws Exception {
        return Json.answer("{}", (question, answer) -> {
            StringBuilder table = new StringBuilder();
            for (Errors error : Errors.values()) {
                ApiException exception = error.exception();
                boolean retriable = exception instanceof RetriableException;
                boolean refreshes = exception instanceof RefreshRetriableException;
                table.append(error.code() + "\t" + error.name() + "\t" + yesNo(retriable) + "\t" + yesNo(refreshes) + "\n");
            }
            answer.put("table", table.toString());
        });
    }

    private static String yesNo(boolean is) {
        return is ? "yes" : "no";
    }
}
