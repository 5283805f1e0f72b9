package broker;

import broker.Wire.Ownership;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/** What this broker has seen of bundles, which of them it serves, and what their topics received; for any thread. */
final class Bundles {
    private final String broker;
    private final Lease lease;
    private final Map<String, Ownership> seen = new HashMap<>();
    private final Map<String, long[]> tokens = new ConcurrentHashMap<>();
    private Map<String, LongSummaryStatistics> traffic = new HashMap<>();

    Bundles(String broker, Lease lease) {
        this.broker = broker;
        this.lease = lease;
    }

    /** The bundles that may be served at this moment, each with its fencing token. */
    Map<String, long[]> served() { return lease.lets() ? new TreeMap<>(tokens) : Map.of(); }

    /** Takes a message of so many bytes, or says no: the topic is not served here. */
    synchronized boolean publish(String topic, int bytes) {
        boolean here = served().keySet().stream().anyMatch(bundle -> Bundle.parse(bundle).has(topic));
        if (here) {
            traffic.computeIfAbsent(topic, first -> new LongSummaryStatistics()).accept(bytes);
        }
        return here;
    }

    /** The sizes of the messages of each topic since the last call. */
    synchronized Map<String, LongSummaryStatistics> takeTraffic() {
        Map<String, LongSummaryStatistics> taken = traffic;
        traffic = new HashMap<>();
        return taken;
    }

    /** Serve it no more. No message is being taken when this returns. */
    synchronized void stop(String bundle) { tokens.remove(bundle); }

    /** Serve the bundle if its record says so. An older record than was seen comes from a store that lost data. */
    void follow(String bundle, Ownership record) {
        if (note(bundle, record) && record.isServedBy(broker)) {
            tokens.put(bundle, record.epoch());
        } else {
            stop(bundle);
        }
    }

    /** Keeps a record; false if there is none, or a newer one was seen. */
    boolean note(String bundle, Ownership record) {
        boolean newest = record != null && !(seen.containsKey(bundle) && record.isOlderThan(seen.get(bundle)));
        if (newest) {
            seen.put(bundle, record);
        }
        return newest;
    }

    Set<String> loaded() { return Set.copyOf(tokens.keySet()); }

    Set<String> seen() { return seen.keySet(); }

    String assertion() { return Wire.JSON.toJson(Map.of("records", seen, "v", 1)); }
}
