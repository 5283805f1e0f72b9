package broker;

import com.google.gson.*;
import java.util.*;
import java.util.stream.*;

/** What travels, less what this broker does not use; docs/wire.md has the rest. An epoch is a pair. */
final class Wire {
    static final Gson JSON = new GsonBuilder().setStrictness(Strictness.STRICT).create();

    /** Who this process is; the session is the time at which it started. */
    record Self(String cluster, String broker, String session) {}

    /** The lease script's answer. */
    record Grant(String status, String detail, long ms, String history, long mustHaveLeft) {}

    /** What the transition script is asked for; null is not sent. A command is [13, its broker, its JSON]. */
    record Request(String id, String bundle, String event, long[] expect, String actor, String session,
            Long within, List<? extends List<?>> commands) {}

    /** What became of a request; the record is JSON in a JSON string. */
    record Outcome(String bundle, String reason, String record) {}

    /** Who owns a bundle. */
    record Ownership(String state, long[] epoch, String owner, String destination, long since, String by,
            int falls) {
        Ownership {
            Objects.requireNonNull(state);
            Objects.checkFromToIndex(0, 2, epoch.length);
            by = Objects.requireNonNullElse(by, "");
        }

        boolean names(String broker) { return broker.equals(owner); }

        boolean isServedBy(String broker) {
            return names(broker) && List.of("Owned", "Releasing", "Splitting", "Merging").contains(state);
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
    }

    /** What the destination of a hand-over gets; the script adds the epoch and the times. */
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
