import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Apache Kafka's error codes: number, name, whether retriable, whether metadata is refreshed. */
public final class ErrorCodes {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            ApiException exception = error.exception();
            boolean retriable = exception instanceof RetriableException;
            boolean refreshes = exception instanceof RefreshRetriableException;
            System.out.println(error.code() + "\t" + error.name() + "\t" + yesNo(retriable) + "\t" + yesNo(refreshes));
        }
    }

    private static String yesNo(boolean is) {
        return is ? "yes" : "no";
    }
}
