package broker;

import broker.Store.*;
import java.io.*;
import java.nio.file.*;
import java.util.function.Supplier;

/** This process's lease, by a clock that cannot be set and goes on while the machine sleeps. */
final class Lease {
    private static final long ASKED_MS = 10_000;
    private static final long MARGIN_MS = 1_000;

    private final Store store;
    private final String session;
    private volatile long end;
    private volatile boolean agreed;
    private long renewAt;
    private long olderEnds;
    private long refusedAt;
    private String history = "";
    private boolean open = true;
    private boolean superseded;

    Lease(Store store, String session) {
        this.store = store;
        this.session = session;
    }

    /** Whether what is owned here may be served at this moment. */
    boolean lets() { return agreed && now() < end; }

    /** Whether the store has confirmed what is owned here since the lease last lapsed. */
    boolean isAgreed() { return agreed; }

    void agree() { agreed = true; }

    long msUntilDue() { return renewAt - now(); }

    /** Whether a later process has this broker's name. */
    boolean isSuperseded() { return superseded; }

    /** Raises TryLater unless the store is open and no older process of this name may still serve. */
    void requireOpen() {
        if (!open || now() < olderEnds) {
            throw new TryLater(open ? "an older process may serve" : "the store is closed");
        }
    }

    /** Whether the lease went on without a gap. Raises TryLater if it is not granted. */
    boolean renew(Supplier<String> assertion) {
        long asked = now();
        Grant grant = store.lease(ASKED_MS, open ? "" : assertion.get(), refusedAt == 0 ? 0 : asked - refusedAt);
        switch (grant.status()) {
            case "held", "asserted" -> {
                return hold(grant, asked, now());
            }
            case "waiting" -> await(grant, now());
            case "superseded" -> superseded = true;
            case "assert" -> {
                if (open) {
                    open = false;
                    return renew(assertion);
                }
            }
            default -> { } // isolated, replica, outdated: what is held still counts.
        }
        end = superseded ? 0 : end;
        throw new TryLater(grant.status() + " " + grant.detail());
    }

    private boolean hold(Grant grant, long asked, long answered) {
        boolean moved = !grant.history().equals(history);
        boolean known = grant.detail().equals(session);
        boolean lost = moved && grant.status().equals("asserted") && grant.detail().isEmpty();
        boolean unbroken = (known || lost) && answered + (moved ? grant.mustHaveLeft() : 0) < end;
        agreed &= unbroken; // before `end`: what is no longer sure must not be served
        history = grant.history();
        open = grant.status().equals("held");
        olderEnds = grant.detail().equals("0") ? 0 : olderEnds;
        refusedAt = 0;
        renewAt = asked + grant.ms() / 3;
        end = asked + grant.ms() - MARGIN_MS;
        return unbroken;
    }

    /** The wait counts by this clock, from its first answer: the server's may jump. */
    private void await(Grant grant, long answered) {
        end = 0;
        boolean begins = !grant.detail().isEmpty() && answered >= olderEnds;
        olderEnds = begins ? answered + grant.ms() : olderEnds;
        refusedAt = begins || refusedAt == 0 ? answered : refusedAt;
    }

    /** Serve nothing more; the next process of this name may have the rest of the lease. */
    void leave() {
        end = 0;
        store.lease(superseded ? 0 : -1, "", 0);
    }

    /** CLOCK_BOOTTIME in milliseconds, as Linux shows it to a JVM. */
    static long now() {
        try {
            return (long) (1000 * Double.parseDouble(Files.readString(Path.of("/proc/uptime")).split(" ", 2)[0]));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
