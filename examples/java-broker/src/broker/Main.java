package broker;

import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.*;

/** A broker whose topics count what they receive: POST /topics/persistent/tenant/namespace/name. */
final class Main {
    public static void main(String[] args) throws IOException {
        Self self = new Self(env("CLUSTER"), env("BROKER"), Long.toString(System.currentTimeMillis()));
        Store store = new Store(URI.create(env("REDIS_URL")), self);
        Seen seen = new Seen();
        Lease lease = new Lease(store, seen, self);
        Served served = new Served(lease);
        Agent agent = new Agent(self, store, seen, lease, served);
        HttpServer pages = pages(URI.create("http://" + env("SERVED")), served);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            agent.stop();
            join(main);
        }));
        agent.run();
        pages.stop(0);
    }

    private static HttpServer pages(URI at, Served served) throws IOException {
        HttpServer pages = HttpServer.create(new InetSocketAddress(at.getHost(), at.getPort()), 0);
        pages.createContext("/served", request -> answer(request, 200, Wire.JSON.toJson(served.now())));
        pages.createContext("/topics/", request -> {
            String topic = request.getRequestURI().getPath().replaceFirst("/topics/persistent/", "persistent://");
            int bytes = request.getRequestBody().readAllBytes().length;
            answer(request, served.publish(topic, bytes) ? 200 : 503, "");
        });
        pages.start();
        return pages;
    }

    private static void answer(HttpExchange request, int status, String text) throws IOException {
        try (request) {
            byte[] body = text.getBytes();
            request.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            request.getResponseBody().write(body);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(5000);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private static String env(String name) {
        String value = System.getenv("TRIMTAB_" + name);
        if (value == null) {
            throw new IllegalArgumentException("TRIMTAB_" + name + " is not set");
        }
        return value;
    }
}
