package broker;

import broker.Wire.Self;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Tells the job through Kafka, in Pulsar's words, what the bundles receive. */
final class Reporter extends TimerTask {
    static final long INTERVAL_MS = 5000;
    private static final String TOPIC = "trimtab.load-reports";
    private static final double LIMIT_KBITS = 10_000;

    private final Self self;
    private final Bundles bundles;
    private final Producer<String, String> kafka;
    private long sequence;
    private long sentAt = Lease.now();

    Reporter(String bootstrap, Self self, Bundles bundles) {
        this.self = self;
        this.bundles = bundles;
        StringSerializer text = new StringSerializer();
        this.kafka = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), text, text);
    }

    private record Usage(double usage, double limit) {}

    private record Stats(double msgRateIn, double msgThroughputIn, int topics) {
        Stats plus(Stats more) {
            return new Stats(msgRateIn + more.msgRateIn, msgThroughputIn + more.msgThroughputIn, topics + more.topics);
        }
    }

    private record Report(Usage bandwidthIn, double msgRateIn, double msgThroughputIn, Map<String, Stats> lastStats,
            Set<String> bundles, int numTopics, int numBundles, long lastUpdate, long startTimestamp) {}

    @Override
    public void run() {
        Map<String, LongSummaryStatistics> traffic = bundles.takeTraffic();
        double seconds = Math.max(1, Lease.now() - sentAt) / 1000.0;
        sentAt = Lease.now();
        Map<String, Stats> stats = new TreeMap<>();
        for (String name : bundles.served().keySet()) {
            Bundle bundle = Bundle.parse(name);
            stats.put(name, traffic.entrySet().stream().filter(topic -> bundle.has(topic.getKey()))
                    .map(topic -> rates(topic.getValue(), seconds)).reduce(new Stats(0, 0, 0), Stats::plus));
        }
        Stats all = stats.values().stream().reduce(new Stats(0, 0, 0), Stats::plus);
        Usage bandwidth = new Usage(all.msgThroughputIn * 8 / 1000, LIMIT_KBITS);
        Report report = new Report(bandwidth, all.msgRateIn, all.msgThroughputIn, stats, stats.keySet(), all.topics,
                stats.size(), System.currentTimeMillis(), Long.parseLong(self.session()));
        var message = new ProducerRecord<>(TOPIC, self.cluster() + "/" + self.broker(), Wire.JSON.toJson(report));
        message.headers().add("trimtab-session", self.session().getBytes());
        message.headers().add("trimtab-sequence", Long.toString(++sequence).getBytes());
        kafka.send(message);
    }

    private static Stats rates(LongSummaryStatistics sizes, double seconds) {
        return new Stats(sizes.getCount() / seconds, sizes.getSum() / seconds, 1);
    }
}
