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

    boolean isHeld() { return now() < end - MARGIN_MS; }

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
            case "assert" -> {
                if (open) {
                    open = false;
                    return renew(assertion);
                }
            }
            case "waiting" -> await(grant, now());
            case "superseded" -> {
                end = 0;
                superseded = true;
            }
            default -> { }
        }
        throw new TryLater(grant.status() + " " + grant.detail());
    }

    private boolean hold(Grant grant, long asked, long answered) {
        boolean moved = !grant.history().equals(history);
        boolean forgotten = moved && grant.status().equals("asserted") && grant.detail().isEmpty();
        boolean unbroken = end - answered > (moved ? grant.mustHaveLeft() : 0)
                && (forgotten || grant.detail().equals(session));
        history = grant.history();
        open = grant.status().equals("held");
        olderEnds = grant.detail().equals("0") ? 0 : olderEnds;
        refusedAt = 0;
        renewAt = asked + grant.ms() / 3;
        end = asked + grant.ms();
        return unbroken;
    }

    private void await(Grant grant, long answered) {
        end = 0;
        olderEnds = answered < olderEnds ? olderEnds : answered + grant.ms();
        refusedAt = refusedAt == 0 || !grant.detail().isEmpty() ? answered : refusedAt;
    }

    /** Serve nothing more; the rest of the lease is for the next process of this name. */
    void leave() {
        boolean held = isHeld();
        end = 0;
        if (held) {
            store.lease(-1, "", 0);
        }
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
