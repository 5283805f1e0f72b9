package broker;

import broker.Wire.*;
import java.io.*;
import java.nio.file.*;
import java.util.Map;
import redis.clients.jedis.exceptions.JedisException;

/** This process's lease, in ms of a clock that cannot be set and goes on while the machine sleeps. */
final class Lease {
    private final Store store;
    private final Map<String, Ownership> seen;
    private String history = "";
    private boolean open = true;
    private volatile long end;
    private long renewAt, olderEnds, refusedAt;
    /** Whether the store has confirmed what is owned here since the lease last lapsed. */
    volatile boolean agreed;
    /** Whether a later process has this broker's name. */
    boolean superseded;

    Lease(Store store, Map<String, Ownership> seen) {
        this.store = store;
        this.seen = seen;
    }

    /** Whether what is owned here may be served at this moment. */
    boolean lets() { return agreed && now() < end; }

    long untilDue() { return renewAt - now(); }

    /** Raises JedisException unless so, the store is open, and no older process of this name may serve. */
    void require(boolean unbroken) {
        if (!unbroken || !open || now() < olderEnds) {
            throw new JedisException(open ? "the lease had a gap" : "the store is closed");
        }
    }

    /** Whether the lease went on without a gap. Raises JedisException if it is not granted. */
    boolean renew() {
        String assertion = open ? "" : Wire.JSON.toJson(Map.of("records", seen));
        long asked = now();
        Grant grant = store.lease(10_000, assertion, refusedAt == 0 ? 0 : asked - refusedAt);
        long answered = now();
        boolean waits = grant.status().equals("waiting");
        superseded = grant.status().equals("superseded");
        if (grant.status().equals("held") || grant.status().equals("asserted")) {
            return hold(grant, asked, answered);
        }
        end = waits || superseded ? 0 : end; // else what is held still counts
        open &= !grant.status().equals("assert"); // the next request has it
        if (waits) { // counted by this clock, from its first answer: the server's may jump
            boolean begins = !grant.detail().isEmpty() && answered >= olderEnds;
            olderEnds = begins ? answered + grant.ms() : olderEnds;
            refusedAt = begins || refusedAt == 0 ? answered : refusedAt;
        }
        throw new JedisException(grant.status() + " " + grant.detail());
    }

    private boolean hold(Grant grant, long asked, long answered) {
        boolean moved = !grant.history().equals(history);
        boolean lost = moved && grant.status().equals("asserted") && grant.detail().isEmpty();
        boolean sure = answered + (moved ? grant.mustHaveLeft() : 0) < end;
        boolean unbroken = sure && (lost || grant.detail().equals(store.self.session()));
        agreed &= unbroken; // before `end`: what is no longer sure must not be served
        history = grant.history();
        open = grant.status().equals("held");
        olderEnds = grant.detail().equals("0") ? 0 : olderEnds;
        refusedAt = 0;
        renewAt = asked + grant.ms() / 3;
        end = asked + grant.ms() - 1000;
        return unbroken;
    }

    /** Serve nothing more; the next process of this name may have the rest of the lease. */
    void leave() {
        end = 0;
        store.lease(superseded ? 0 : -1, "", 0);
    }

    /** CLOCK_BOOTTIME, as Linux shows it to a JVM. */
    static long now() {
        try {
            return (long) (1000 * Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ")[0]));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
