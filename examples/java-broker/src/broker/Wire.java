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

    /** What became of a request; the record is JSON in a JSON string. */
    record Outcome(String bundle, String reason, String record) {}

    /** Who owns a bundle. */
    record Ownership(String state, long[] epoch, String owner, String destination, long since, String by,
            int falls) {
        Ownership {
            require(state != null && epoch.length == 2);
            by = Objects.requireNonNullElse(by, "");
        }

        boolean isServedBy(String broker) {
            return broker.equals(owner) && List.of("Owned", "Releasing", "Splitting", "Merging").contains(state);
        }

        boolean isOwnedBy(String broker) { return broker.equals(owner) && state.equals("Owned"); }

        /** The newer of both; of equals the other. */
        Ownership newer(Ownership other) { return Arrays.compare(epoch, other.epoch) > 0 ? this : other; }
    }

    /** What a broker must do. */
    record Command(String id, String cluster, String broker, String kind, String bundle, long[] epoch,
            String destination, String neighbour, String reason, String plan, long issuedAt,
            long deadline) {
        Command {
            require(Stream.of(id, cluster, broker, kind, bundle).allMatch(Objects::nonNull));
            reason = Objects.requireNonNullElse(reason, "");
            plan = Objects.requireNonNullElse(plan, "");
            require(LongStream.of(issuedAt, deadline).allMatch(number -> number >>> 53 == 0));
        }

        boolean isFor(Self self) { return self.cluster().equals(cluster) && self.broker().equals(broker); }
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

    private static void require(boolean kept) {
        if (!kept) {
            throw new JsonParseException("not as the wire says");
        }
    }
}
