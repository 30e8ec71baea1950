// SPDX-License-Identifier: Apache-2.0
import com.google.gson.JsonObject;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.MetadataUtils;
import io.grpc.xds.XdsChannelCredentials;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** Calls its targets with grpc-java without end, and prints which backend answered, as JSON lines. It ends with its standard input. */
public final class Client {
    /** The pause between two calls of all targets together, in milliseconds. */
    private static final long CALL_EVERY = Long.parseLong(System.getenv().getOrDefault("INTEROP_CALL_EVERY", "10"));
    private static final long CALL_TIMEOUT_SECONDS = 20;
    private static final Metadata.Key<String> BACKEND = Metadata.Key.of("backend", Metadata.ASCII_STRING_MARSHALLER);

    private Client() {}

    public static void main(String[] targets) throws Exception {
        for (String target : targets) {
            Thread calls = new Thread(() -> callForEver(target, CALL_EVERY * targets.length));
            calls.setDaemon(true);
            calls.start();
        }
        while (System.in.read() >= 0) {}
        System.exit(0);
    }

    private static void callForEver(String target, long pause) {
        // Plaintext, unless the cluster says otherwise (A29).
        var credentials = XdsChannelCredentials.create(InsecureChannelCredentials.create());
        ManagedChannel channel = Grpc.newChannelBuilder(target, credentials).build();
        for (boolean started = false; ; ) {
            JsonObject answer = new JsonObject();
            answer.addProperty("target", target);
            AtomicReference<Metadata> headers = new AtomicReference<>();
            HealthGrpc.HealthBlockingStub stub = HealthGrpc.newBlockingStub(channel)
                .withInterceptors(MetadataUtils.newCaptureMetadataInterceptor(headers, new AtomicReference<>()))
                .withDeadlineAfter(CALL_TIMEOUT_SECONDS, TimeUnit.SECONDS);
            try {
                // Waiting for the first configuration is not a failure; later nothing may have to wait.
                (started ? stub : stub.withWaitForReady()).check(HealthCheckRequest.getDefaultInstance());
                answer.addProperty("backend", headers.get().get(BACKEND));
                started = true;
            } catch (StatusRuntimeException error) {
                answer.addProperty("error", error.getStatus().toString());
            }
            synchronized (Client.class) {
                System.out.println(answer);
            }
            try {
                Thread.sleep(pause);
            } catch (InterruptedException end) {
                return;
            }
        }
    }
}
