package broker;

import com.google.gson.*;
import java.util.*;
import java.util.stream.LongStream;

/** What travels, less the members that this broker does not use; docs/wire.md has the rest. An epoch is a pair. */
final class Wire {
    static final Gson JSON = new GsonBuilder().setStrictness(Strictness.STRICT).disableHtmlEscaping().create();

    /** Who this process is; the session is the time at which it started. */
    record Self(String cluster, String broker, String session) {}

    /** Who owns a bundle. */
    record Ownership(String state, long[] epoch, String owner, String destination, long since, String by, int falls) {
        private static final Set<String> SERVED = Set.of("Owned", "Releasing", "Splitting", "Merging");

        Ownership {
            require(epoch.length == 2);
        }

        boolean isServedBy(String broker) { return broker.equals(owner) && SERVED.contains(state); }

        boolean isOwnedBy(String broker) { return broker.equals(owner) && state.equals("Owned"); }

        /** Whether it is a part that waits for this merge. */
        boolean isPartOf(Command merge) { return state.equals("Merging") && parent(merge.id).equals(by); }

        boolean isOlderThan(Ownership other) { return Arrays.compare(epoch, other.epoch) < 0; }
    }

    /** What became of a request; a record is JSON in a JSON string. */
    record Outcome(String bundle, boolean accepted, String reason, String record, Map<String, String> others) {
        /** The records now of all bundles that the request names; null where there is none. */
        Map<String, Ownership> records() {
            Map<String, Ownership> records = new HashMap<>();
            records.put(bundle, read(record, Ownership.class));
            if (others != null) {
                others.forEach((name, text) -> records.put(name, read(text, Ownership.class)));
            }
            return records;
        }
    }

    /** What a broker must do. */
    record Command(String id, String cluster, String broker, String kind, String bundle, long[] epoch,
            String destination, String neighbour, Division division, String reason, String plan,
            long generation, long issuedAt, long deadline) {
        private static final Set<String> KINDS = Set.of("unload", "transfer", "prepare", "own", "split", "merge");

        Command {
            Bundle range = Bundle.parse(bundle);
            epoch = epoch == null ? new long[2] : epoch;
            require(id != null && KINDS.contains(kind) && epoch.length == 2);
            require(neighbour == null ? !kind.equals("merge") : range.isBelow(Bundle.parse(neighbour)));
            require(LongStream.of(epoch[0], epoch[1], generation, issuedAt, deadline)
                    .allMatch(number -> 0 <= number && number < 1L << 53));
        }

        boolean isFor(Self self) { return self.cluster.equals(cluster) && self.broker.equals(broker); }

        boolean expects(Ownership record) { return Arrays.equals(record.epoch, epoch); }

        /** Whether a request for this very command wrote the record: it was half done. */
        boolean wrote(Ownership record) { return record != null && parent(record.by).equals(id); }

        /** Whether it is answered with `retire`: half done, it waits for a store that lost data. */
        boolean retires() { return kind.equals("split") || kind.equals("merge"); }

        /** The command of a hand-over; the script adds epoch and times. */
        Map<String, String> forNextOwner() {
            return Map.of("id", id + "/own", "cluster", cluster, "broker", destination, "kind", "own", "bundle", bundle,
                    "source", broker, "reason", Objects.toString(reason, ""), "plan", Objects.toString(plan, ""));
        }
    }

    record Division(String algorithm) {}

    /** What a text says; null if there is none, or it is not of this form. */
    static <T> T read(String json, Class<T> form) {
        try {
            return JSON.fromJson(json, form);
        } catch (RuntimeException unreadable) { // Gson wraps what a record's constructor throws.
            return null;
        }
    }

    /** An id without its last part: what the request was made for. */
    static String parent(String id) {
        return id == null ? "" : id.substring(0, Math.max(0, id.lastIndexOf('/')));
    }

    private static void require(boolean kept) {
        if (!kept) {
            throw new JsonParseException("not as the wire says");
        }
    }
}
