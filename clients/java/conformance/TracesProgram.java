import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.millracejobs.HandlerOptions;
import io.github.millracejobs.Tracing;
import io.github.millracejobs.Worker;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.SpanId;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Works a queue QUEUE, and writes the spans of its jobs to a file SPANS. Run by internal/readmetest. */
final class TracesProgram implements SpanExporter {
    private final Path file = Path.of(System.getenv("SPANS"));
    private final ObjectMapper json = new ObjectMapper();

    public static void main(String[] args) throws IOException {
        SdkTracerProvider provider = SdkTracerProvider.builder().addSpanProcessor(SimpleSpanProcessor.create(new TracesProgram())).build();
        Tracing tracing = new Tracing(OpenTelemetrySdk.builder().setTracerProvider(provider).build());
        Worker worker = Worker.builder(System.getenv("MILLRACE_AMQP_URL")).queues(System.getenv("QUEUE")).build().use(tracing::process);
        worker.handle("Order", job -> {
            if (job.args().equals(List.of("fails")) && job.attempt() == 1) {
                throw new IOException("no such order");
            }
        }, new HandlerOptions().retryIn((count, error, job) -> Duration.ofMillis(200)));
        worker.runWithSignals();
    }

    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
        for (SpanData span : spans) {
            Map<String, Object> attributes = new LinkedHashMap<>();
            span.getAttributes().forEach((AttributeKey<?> key, Object value) -> attributes.put(key.getKey(), value));
            Map<String, Object> members = new LinkedHashMap<>();
            members.put("name", span.getName());
            members.put("kind", span.getKind().name());
            members.put("trace", span.getTraceId());
            members.put("span", span.getSpanId());
            members.put("parent", span.getParentSpanId().equals(SpanId.getInvalid()) ? "" : span.getParentSpanId());
            members.put("links", span.getLinks().stream().map(link -> link.getSpanContext().getTraceId() + "-" + link.getSpanContext().getSpanId()).toList());
            members.put("attributes", attributes);
            members.put("failed", span.getStatus().getStatusCode() == StatusCode.ERROR);
            try {
                Files.writeString(file, json.writeValueAsString(members) + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode flush() {
        return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode shutdown() {
        return CompletableResultCode.ofSuccess();
    }
}
