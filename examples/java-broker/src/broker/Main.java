package broker;

import broker.Wire.*;
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

/** A broker whose bundles count what they receive: POST /bundles/tenant/namespace/range. */
final class Main {
    private static final double INTERVAL_S = 5;
    private static final Map<String, Rates> TRAFFIC = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        Self self = new Self(setting("CLUSTER"), setting("BROKER"), "" + System.currentTimeMillis());
        Agent agent = new Agent(URI.create(setting("REDIS_URL")), self);
        CompletableFuture<Void> ended = new CompletableFuture<>();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            agent.stopping = true;
            ended.join();
        }));
        HttpServer pages = pages(URI.create("http://" + setting("SERVED")), agent);
        try {
            if (System.getenv("TRIMTAB_KAFKA") != null) {
                new Timer(true).schedule(reports(setting("KAFKA"), self, agent), 0, (long) (1000 * INTERVAL_S));
            }
            agent.run();
        } finally {
            pages.stop(0);
            ended.complete(null);
        }
    }

    private static HttpServer pages(URI at, Agent agent) throws IOException {
        HttpServer pages = HttpServer.create(new InetSocketAddress(at.getHost(), at.getPort()), 0);
        pages.createContext("/served", request -> answer(request, 200, Wire.JSON.toJson(agent.served())));
        pages.createContext("/bundles/", request -> {
            String bundle = request.getRequestURI().getPath().substring("/bundles/".length());
            byte[] message = request.getRequestBody().readAllBytes();
            Rates more = new Rates(1 / INTERVAL_S, message.length / INTERVAL_S);
            boolean here = agent.serve(bundle, () -> TRAFFIC.merge(bundle, more, Rates::plus));
            answer(request, here ? 200 : 503, "\n");
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

    /** Tells the job through Kafka, in Pulsar's words, what the bundles got since the last time. */
    private static TimerTask reports(String bootstrap, Self self, Agent agent) {
        StringSerializer text = new StringSerializer();
        var kafka = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), text, text);
        return new TimerTask() {
            @Override
            public void run() {
                Rates none = new Rates(0, 0);
                Map<String, Rates> stats = new TreeMap<>();
                agent.served().forEach((bundle, token) -> stats.put(bundle,
                        Objects.requireNonNullElse(TRAFFIC.remove(bundle), none)));
                Rates all = stats.values().stream().reduce(none, Rates::plus);
                var report = Map.of("lastStats", stats, "bundles", stats.keySet(), "numBundles", stats.size(),
                        "msgRateIn", all.msgRateIn(), "msgThroughputIn", all.msgThroughputIn(),
                        "bandwidthIn", Map.of("usage", all.msgThroughputIn() * 8 / 1000, "limit", 10_000),
                        "startTimestamp", Long.valueOf(self.session()),
                        "lastUpdate", System.currentTimeMillis());
                var message = new ProducerRecord<>("trimtab.load-reports", self.cluster() + "/" + self.broker(),
                        Wire.JSON.toJson(report));
                message.headers().add("trimtab-session", self.session().getBytes());
                message.headers().add("trimtab-sequence", Long.toString(Lease.now()).getBytes());
                kafka.send(message);
            }
        };
    }

    private static String setting(String name) {
        return Objects.requireNonNull(System.getenv("TRIMTAB_" + name), () -> "set TRIMTAB_" + name);
    }
}
