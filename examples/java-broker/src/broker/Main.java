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
        Self self = new Self(URI.create(setting("REDIS_URL")), setting("CLUSTER"), setting("BROKER"),
                "" + System.currentTimeMillis());
        Agent agent = new Agent(self);
        CompletableFuture<Void> ended = new CompletableFuture<>();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            agent.stopping = true;
            ended.join();
        }));
        HttpServer pages = pages(URI.create("http://" + setting("SERVED")), agent);
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(1);
        try {
            if (System.getenv("TRIMTAB_KAFKA") != null) {
                StringSerializer text = new StringSerializer();
                var kafka = new KafkaProducer<>(Map.of("bootstrap.servers", setting("KAFKA")), text, text);
                Runnable send = () -> kafka.send(report(self, agent.served().keySet()));
                clock.scheduleAtFixedRate(send, 0, (long) INTERVAL_S, TimeUnit.SECONDS);
            }
            agent.run();
        } finally {
            clock.shutdownNow();
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
            boolean here = agent.serve(bundle, () -> TRAFFIC.merge(bundle, more, Rates::plus) != null);
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

    /** In Pulsar's words, what the bundles got since the last report. */
    private static ProducerRecord<String, String> report(Self self, Set<String> bundles) {
        Rates none = new Rates(0, 0);
        Map<String, Rates> stats = new TreeMap<>();
        bundles.forEach(it -> stats.put(it, Objects.requireNonNullElse(TRAFFIC.remove(it), none)));
        Rates all = stats.values().stream().reduce(none, Rates::plus);
        String value = Wire.JSON.toJson(Map.of(
                "lastStats", stats, "bundles", stats.keySet(), "numBundles", stats.size(),
                "msgRateIn", all.msgRateIn(), "msgThroughputIn", all.msgThroughputIn(),
                "bandwidthIn", Map.of("usage", all.msgThroughputIn() * 8 / 1000, "limit", 10_000),
                "startTimestamp", Long.valueOf(self.session()), "lastUpdate", System.currentTimeMillis()));
        String key = self.cluster() + "/" + self.broker();
        var report = new ProducerRecord<>("trimtab.load-reports", key, value);
        report.headers().add("trimtab-session", self.session().getBytes());
        report.headers().add("trimtab-sequence", Long.toString(Lease.now()).getBytes());
        return report;
    }

    private static String setting(String name) {
        return Objects.requireNonNull(System.getenv("TRIMTAB_" + name), () -> "set TRIMTAB_" + name);
    }
}
