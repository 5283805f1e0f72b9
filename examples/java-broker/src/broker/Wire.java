package broker;

import com.google.gson.*;
import java.util.*;

/** What travels: the forms of docs/wire.md, less the members that this broker does not use. */
final class Wire {
    static final Gson JSON = new GsonBuilder().setStrictness(Strictness.STRICT).disableHtmlEscaping()
            .registerTypeAdapter(Epoch.class, (JsonDeserializer<Epoch>) (json, type, context) -> new Epoch(
                    json.getAsJsonArray().get(0).getAsLong(), json.getAsJsonArray().get(1).getAsLong()))
            .registerTypeAdapter(Epoch.class, (JsonSerializer<Epoch>) (epoch, type, context) ->
                    context.serialize(List.of(epoch.generation, epoch.counter)))
            .create();

    /** The age of a record; also the token with which storage refuses an earlier owner. */
    record Epoch(long generation, long counter) implements Comparable<Epoch> {
        static final Epoch NONE = new Epoch(0, 0);
        private static final Comparator<Epoch> ORDER =
                Comparator.comparingLong(Epoch::generation).thenComparingLong(Epoch::counter);

        Epoch {
            require(generation, counter);
        }

        @Override
        public int compareTo(Epoch other) {
            return ORDER.compare(this, other);
        }
    }

    /** Who owns a bundle. */
    record Ownership(String state, Epoch epoch, String owner, String destination, long since, String by, int falls) {
        private static final Set<String> SERVED = Set.of("Owned", "Releasing", "Splitting", "Merging");

        boolean isServedBy(String broker) {
            return broker.equals(owner) && SERVED.contains(state);
        }

        /** Whether a request that carried out this command wrote it. */
        boolean wasWrittenFor(String id) {
            return parent(by).equals(id);
        }
    }

    /** The outcome of one request; a record is JSON in a JSON string. */
    record Outcome(String bundle, boolean accepted, String reason, String record, Map<String, String> others) {
        Map<String, Ownership> records() {
            Map<String, Ownership> records = new HashMap<>();
            (others == null ? Map.<String, String>of() : others).forEach((name, json) -> records.put(name, parse(json)));
            if (record != null) {
                records.put(bundle, parse(record));
            }
            return records;
        }
    }

    /** What a broker must do. Every one that exists keeps the rules of the wire. */
    record Command(String id, String cluster, String broker, String kind, String bundle, Epoch epoch, String destination,
            String neighbour, Division division, String reason, String plan, long generation, long issuedAt, long deadline) {
        private static final Set<String> KINDS = Set.of("unload", "transfer", "prepare", "own", "split", "merge");

        Command {
            epoch = epoch == null ? Epoch.NONE : epoch;
            require(generation, issuedAt, deadline);
            Bundle range = Bundle.parse(bundle);
            boolean neighbours = neighbour == null ? !kind.equals("merge") : range.isBelow(Bundle.parse(neighbour));
            if (id == null || !KINDS.contains(kind) || !neighbours) {
                throw new JsonParseException("no command of this version");
            }
        }

        /** The command of a hand-over; the script adds epoch and times. */
        Map<String, String> forNextOwner() {
            return Map.of("id", id + "/own", "cluster", cluster, "broker", destination, "kind", "own", "bundle", bundle,
                    "source", broker, "reason", Objects.toString(reason, ""), "plan", Objects.toString(plan, ""));
        }
    }

    record Division(String algorithm) {}

    /** The command in an entry of a broker's stream, or nothing. */
    static Optional<Command> command(String json) {
        try {
            return Optional.ofNullable(JSON.fromJson(json, Command.class));
        } catch (RuntimeException none) { // Gson wraps what a constructor throws.
            return Optional.empty();
        }
    }

    static Ownership parse(String record) {
        return JSON.fromJson(record, Ownership.class);
    }

    /** An id without its last part: what the request was made for. */
    static String parent(String id) {
        return id == null ? "" : id.substring(0, Math.max(0, id.lastIndexOf('/')));
    }

    private static void require(long... numbers) {
        if (Arrays.stream(numbers).anyMatch(number -> number < 0 || number >= 1L << 53)) {
            throw new JsonParseException("a number out of range");
        }
    }
}
