package broker;

import broker.Wire.Self;
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;

/** A broker whose topics count what they receive: POST /topics/persistent/tenant/namespace/name. */
final class Main {
    public static void main(String[] args) throws IOException {
        Self self = new Self(setting("CLUSTER"), setting("BROKER"), "" + System.currentTimeMillis());
        Store store = new Store(URI.create(setting("REDIS_URL")), self);
        Lease lease = new Lease(store, self.session());
        Bundles bundles = new Bundles(self.broker(), lease);
        Agent agent = new Agent(self, store, lease, bundles);
        CompletableFuture<Void> ended = new CompletableFuture<>();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            agent.stop();
            ended.join();
        }));
        HttpServer pages = pages(URI.create("http://" + setting("SERVED")), bundles);
        String kafka = System.getenv("TRIMTAB_KAFKA");
        try {
            if (kafka != null) {
                new Timer(true).schedule(new Reporter(kafka, self, bundles), 0, Reporter.INTERVAL_MS);
            }
            agent.run();
        } finally {
            pages.stop(0);
            ended.complete(null);
        }
    }

    private static HttpServer pages(URI at, Bundles bundles) throws IOException {
        HttpServer pages = HttpServer.create(new InetSocketAddress(at.getHost(), at.getPort()), 0);
        pages.createContext("/served", request -> answer(request, 200, Wire.JSON.toJson(bundles.served())));
        pages.createContext("/topics/persistent/", request -> {
            String topic = request.getRequestURI().getPath().replace("/topics/persistent/", "persistent://");
            int bytes = request.getRequestBody().readAllBytes().length;
            answer(request, bundles.publish(topic, bytes) ? 200 : 503, "\n");
        });
        pages.start();
        return pages;
    }

    private static void answer(HttpExchange request, int status, String text) throws IOException {
        try (request) {
            request.sendResponseHeaders(status, text.length());
            request.getResponseBody().write(text.getBytes());
        }
    }

    private static String setting(String name) {
        return Objects.requireNonNull(System.getenv("TRIMTAB_" + name), () -> "set TRIMTAB_" + name);
    }
}
