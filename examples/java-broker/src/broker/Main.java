package broker;

import broker.Wire.Self;
import com.sun.net.httpserver.*;
import java.io.IOException;
import java.net.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.StringSerializer;

/** A broker whose bundles count what they receive: POST /bundles/tenant/namespace/range. */
final class Main {
    private static final long INTERVAL_MS = 5000;

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
                new Timer(true).schedule(reports(setting("KAFKA"), self, agent), 0, INTERVAL_MS);
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
            int bytes = request.getRequestBody().readAllBytes().length;
            answer(request, agent.publish(bundle, bytes) ? 200 : 503, "\n");
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

    /** Tells the job through Kafka, in Pulsar's words, what the bundles received since the last time. */
    private static TimerTask reports(String bootstrap, Self self, Agent agent) {
        StringSerializer text = new StringSerializer();
        var kafka = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), text, text);
        return new TimerTask() {
            private long sequence;

            @Override
            public void run() {
                Map<String, LongSummaryStatistics> traffic = agent.takeTraffic();
                Map<String, Object> stats = new TreeMap<>();
                agent.served().keySet().forEach(bundle -> stats.put(bundle, rates(traffic.get(bundle))));
                LongSummaryStatistics all = new LongSummaryStatistics();
                traffic.values().forEach(all::combine);
                Map<String, Object> report = new HashMap<>(rates(all));
                report.putAll(Map.of("lastStats", stats, "bundles", stats.keySet(), "numBundles", stats.size(),
                        "bandwidthIn", Map.of("usage", all.getSum() * 8.0 / INTERVAL_MS, "limit", 10_000),
                        "startTimestamp", Long.valueOf(self.session()),
                        "lastUpdate", System.currentTimeMillis()));
                String key = self.cluster() + "/" + self.broker();
                var message = new ProducerRecord<>("trimtab.load-reports", key, Wire.JSON.toJson(report));
                message.headers().add("trimtab-session", self.session().getBytes());
                message.headers().add("trimtab-sequence", Long.toString(++sequence).getBytes());
                kafka.send(message);
            }
        };
    }

    private static Map<String, Double> rates(LongSummaryStatistics sizes) {
        double seconds = INTERVAL_MS / 1000.0;
        return sizes == null ? Map.of()
                : Map.of("msgRateIn", sizes.getCount() / seconds, "msgThroughputIn", sizes.getSum() / seconds);
    }

    private static String setting(String name) {
        return Objects.requireNonNull(System.getenv("TRIMTAB_" + name), () -> "set TRIMTAB_" + name);
    }
}
