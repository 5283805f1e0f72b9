package broker;

import broker.Wire.Epoch;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.*;

/** What this broker serves, and the traffic of its topics; asked by any thread. */
final class Served {
    private final Lease lease;
    private final Map<String, Epoch> tokens = new ConcurrentHashMap<>();
    private final Map<String, Traffic> traffic = new ConcurrentHashMap<>();
    private final ReadWriteLock requests = new ReentrantReadWriteLock();
    private volatile boolean agreed;

    Served(Lease lease) {
        this.lease = lease;
    }

    /** What a topic has received since the start. */
    record Traffic(long messages, long bytes) {
        Traffic plus(Traffic more) {
            return new Traffic(messages + more.messages, bytes + more.bytes);
        }
    }

    /** The bundles that may be served at this moment, each with its fencing token. */
    Map<String, Epoch> now() {
        return agreed && lease.isHeld() ? new TreeMap<>(tokens) : Map.of();
    }

    /** Takes a message, or says no: the topic is not served here. */
    boolean publish(String topic, int bytes) {
        requests.readLock().lock();
        try {
            boolean here = now().keySet().stream().anyMatch(bundle -> Bundle.parse(bundle).has(topic));
            if (here) {
                traffic.merge(topic, new Traffic(1, bytes), Traffic::plus);
            }
            return here;
        } finally {
            requests.readLock().unlock();
        }
    }

    Map<String, Traffic> traffic() {
        return Map.copyOf(traffic);
    }

    Set<String> loaded() {
        return tokens.keySet();
    }

    /** Serve it; the token stays that of the epoch since which it is served. */
    void give(String bundle, Epoch epoch) {
        tokens.merge(bundle, epoch, (before, after) -> agreed ? before : after);
    }

    /** Serve it no more; no request for it is under way when this returns. */
    void take(String bundle) {
        requests.writeLock().lock();
        tokens.remove(bundle);
        requests.writeLock().unlock();
    }

    /** Whether the store has confirmed what is loaded since the lease last lapsed: else nothing is served. */
    void agree(boolean confirmed) {
        agreed = confirmed;
    }

    boolean isAgreed() {
        return agreed;
    }
}
