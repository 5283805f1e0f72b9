package broker;

import com.google.gson.*;
import java.net.URI;
import java.util.*;
import java.util.stream.*;

/** What travels, less what this broker does not use; docs/wire.md has the rest. An epoch is a pair. */
final class Wire {
    static final Gson JSON = new GsonBuilder().setStrictness(Strictness.STRICT).create();
    /** The states in which a bundle's owner serves it. */
    static final Set<String> SERVED = Set.of("Owned", "Releasing", "Splitting", "Merging");

    /** Who this process is, and where its store; the session is the time at which it started. */
    record Self(URI redis, String cluster, String broker, String session) {}

    /** The lease script's answer. */
    record Grant(String status, String detail, long ms, String history, long mustHaveLeft) {}

    /** What the transition script is asked for; null is not sent. A command is [its broker, its JSON]. */
    record Request(String id, String bundle, String event, long[] expect, String actor, String session,
            Long within, List<List<String>> commands) {}

    /** The outcome of a request; the record is JSON in a JSON string. */
    record Outcome(String reason, String record) {}

    /** Who owns a bundle. */
    record Ownership(String state, long[] epoch, String owner, String destination, long since, String by,
            int falls) {
        Ownership {
            Objects.requireNonNull(state);
            Objects.checkFromToIndex(0, 2, epoch.length);
            by = Objects.requireNonNullElse(by, "");
        }

        /** The newer of both; of equals the other. */
        Ownership newer(Ownership other) { return Arrays.compare(epoch, other.epoch) > 0 ? this : other; }
    }

    /** What a broker must do. */
    record Command(String id, String cluster, String broker, String kind, String bundle, long[] epoch,
            String destination, String neighbour, String reason, String plan, long issuedAt, long deadline) {
        Command {
            Stream.of(id, cluster, broker, kind, bundle).forEach(Objects::requireNonNull);
            LongStream.of(issuedAt, deadline).forEach(time -> Objects.checkIndex(time, 1L << 53));
        }

        boolean isFor(Self self) { return self.cluster().equals(cluster) && self.broker().equals(broker); }

        Long within() { return deadline > issuedAt ? deadline - issuedAt : null; }

        /** For the destination of a hand-over. */
        Own own() { return new Own(id + "/own", cluster, destination, "own", bundle, broker, reason, plan); }
    }

    /** What the new owner of a bundle gets; the script adds the epoch and the times. */
    record Own(String id, String cluster, String broker, String kind, String bundle, String source,
            String reason, String plan) {}

    /** What a bundle gets, in messages and bytes a second. */
    record Rates(double msgRateIn, double msgThroughputIn) {
        Rates plus(Rates other) {
            return new Rates(msgRateIn + other.msgRateIn, msgThroughputIn + other.msgThroughputIn);
        }
    }

    /** What a text says; null if there is none, or it is not of this form. */
    static <T> T read(String json, Class<T> form) {
        try {
            return JSON.fromJson(json, form);
        } catch (RuntimeException unreadable) { // Gson wraps what a record's constructor throws.
            return null;
        }
    }

    /** An id without its last part: what the request was made for. */
    static String parent(String id) { return id.substring(0, Math.max(0, id.lastIndexOf('/'))); }
}
