package broker;

import broker.Wire.*;
import java.io.*;
import java.nio.file.*;
import java.util.Map;
import redis.clients.jedis.exceptions.JedisException;

/** This process's lease, in ms of a clock that cannot be set and goes on while the machine sleeps. */
final class Lease {
    private final Self self;
    private final Map<String, Ownership> seen;
    private String history = "";
    private volatile long end;
    private long renewAt, olderEnds, refusedAt;
    /** Whether the store is known to be open. */
    boolean open;
    /** Whether the broker agrees with the store on what it owns, since the lease last lapsed. */
    volatile boolean agreed;
    /** Whether a later process has this broker's name. */
    volatile boolean superseded;

    Lease(Self self, Map<String, Ownership> seen) {
        this.self = self;
        this.seen = seen;
    }

    /** Whether what is owned here may be served at this moment. */
    boolean lets() { return agreed && !superseded && now() < end; }

    long untilDue() { return renewAt - now(); }

    /** Renews it when due. Raises JedisException while nothing may be claimed or obeyed. */
    void keep(Store store) {
        if (!open || untilDue() <= 0) {
            renew(store);
        }
    }

    private void renew(Store store) {
        String assertion = open ? "" : Wire.JSON.toJson(Map.of("records", seen));
        long asked = now();
        Grant grant = store.lease(10_000, assertion, refusedAt == 0 ? 0 : asked - refusedAt);
        open = grant.status().equals("held");
        superseded = grant.status().equals("superseded");
        if (open || grant.status().equals("asserted")) {
            hold(grant, asked);
        } else if (grant.status().equals("waiting")) {
            waitForOlder(grant);
        } else if (superseded) {
            leave(store);
        } // else what was granted before still counts
        if (!open || now() < olderEnds) {
            throw new JedisException("the lease: " + grant.status() + " " + grant.detail());
        }
    }

    private void hold(Grant grant, long asked) {
        boolean moved = !grant.history().equals(history);
        boolean lost = moved && !open && grant.detail().isEmpty();
        boolean own = grant.detail().equals(self.session());
        // Before `end`: what is no longer sure must not be served.
        agreed &= (own || lost) && now() + (moved ? grant.mustHaveLeft() : 0) < end;
        history = grant.history();
        olderEnds = grant.detail().equals("0") ? 0 : olderEnds;
        refusedAt = 0;
        renewAt = asked + grant.ms() / 3;
        end = asked + grant.ms() - 1000;
    }

    /** Counted by this clock, from its first answer: the server's may jump. */
    private void waitForOlder(Grant grant) {
        agreed = false;
        boolean begins = !grant.detail().isEmpty() && now() >= olderEnds;
        olderEnds = begins ? now() + grant.ms() : olderEnds;
        refusedAt = begins || refusedAt == 0 ? now() : refusedAt;
    }

    /** Serves nothing more; the next process of this name may have the rest of the lease. */
    void leave(Store store) {
        agreed = false;
        store.lease(superseded ? 0 : -1, "", 0);
    }

    /** CLOCK_BOOTTIME, as Linux shows it to a JVM. */
    static long now() {
        try {
            String seconds = Files.readString(Path.of("/proc/uptime")).split(" ")[0];
            return (long) (1000 * Double.parseDouble(seconds));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
