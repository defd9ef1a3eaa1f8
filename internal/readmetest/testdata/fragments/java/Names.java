import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.millracejobs.Client;
import io.github.millracejobs.Worker;
import java.util.List;
import java.util.UUID;
import javax.net.ssl.SSLContext;

/** The names that the fragments in the Java client's README use. */
abstract class Names {
    interface Vault {
        String currentPassword();
    }

    Client client;
    Worker worker;
    String url;
    SSLContext context;
    Vault vault;
    UUID order;
    String file;
    ObjectMapper objectMapper;

    abstract void send(String to, List<String> files);
}
