package broker;

import broker.Store.Grant;
import broker.Store.TryLater;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.*;

/** This process's lease, counted with a clock that cannot be set and goes on while the machine sleeps. */
final class Lease {
    private static final long ASKED_MS = 10_000;
    private static final long MARGIN_MS = 1_000;

    private final Store store;
    private final Seen seen;
    private final String session;
    private volatile long end;
    private long renewAt;
    private long olderEnds;
    private long refusedAt;
    private String history = "";
    private boolean open = true;
    private long told;

    Lease(Store store, Seen seen, Self self) {
        this.store = store;
        this.seen = seen;
        this.session = self.session();
    }

    /** A later process has this broker's name: this one ends. */
    static final class Superseded extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    boolean isHeld() {
        return now() < end - MARGIN_MS;
    }

    long msUntilDue() {
        return renewAt - now();
    }

    /** Raises TryLater unless the store is open and no older process of this name may still serve. */
    void requireOpen() {
        if (!open || now() < olderEnds) {
            throw new TryLater(open ? "an older process may serve" : "the store is closed");
        }
    }

    /** Whether the lease went on without a gap. Raises TryLater if it is not granted. */
    boolean renew() {
        return renew(open || told == seen.changes() ? "" : seen.assertion());
    }

    private boolean renew(String assertion) {
        long asked = now();
        Grant grant = store.lease(ASKED_MS, assertion, refusedAt == 0 ? 0 : asked - refusedAt);
        long answered = now();
        told = assertion.isEmpty() ? told : seen.changes();
        switch (grant.status()) {
            case "held", "asserted":
                return hold(grant, asked, answered);
            case "waiting":
                await(grant, answered);
                break;
            case "superseded":
                end = 0;
                throw new Superseded();
            case "assert":
                if (assertion.isEmpty()) {
                    return renew(seen.assertion());
                }
                break;
            default:
        }
        throw new TryLater(grant.status() + " " + grant.detail());
    }

    private boolean hold(Grant grant, long asked, long answered) {
        boolean moved = !grant.history().equals(history);
        boolean forgotten = grant.status().equals("asserted") && grant.detail().isEmpty() && moved;
        boolean unbroken = end - answered > (moved ? grant.mustHaveLeft() : 0)
                && (grant.detail().equals(session) || forgotten);
        history = grant.history();
        open = grant.status().equals("held");
        refusedAt = 0;
        olderEnds = grant.detail().equals("0") ? 0 : olderEnds;
        renewAt = asked + grant.ms() / 3;
        end = asked + grant.ms();
        return unbroken;
    }

    private void await(Grant grant, long answered) {
        end = 0;
        olderEnds = answered < olderEnds ? olderEnds : answered + grant.ms();
        refusedAt = refusedAt == 0 || !grant.detail().isEmpty() ? answered : refusedAt;
    }

    /** Serve nothing more, and leave the rest of the lease to the next process of this name. */
    void leave() {
        boolean held = isHeld();
        end = 0;
        if (held) {
            store.lease(-1, "", 0);
        }
    }

    /** Milliseconds of CLOCK_BOOTTIME. */
    static long now() {
        try {
            String uptime = Files.readString(Path.of("/proc/uptime"));
            return Math.round(1000 * Double.parseDouble(uptime.split(" ", 2)[0]));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
