package broker;

import broker.Wire.Ownership;
import java.util.*;

/** The newest record that this broker has seen of each bundle; it believes no older one. */
final class Seen {
    private final Map<String, Ownership> newest = new TreeMap<>();
    private long changes;

    /** Keeps a record, unless a newer one was seen. */
    boolean note(String bundle, Ownership record) {
        Ownership known = newest.get(bundle);
        boolean believed = known == null || known.epoch().compareTo(record.epoch()) <= 0;
        if (believed && !record.equals(known)) {
            newest.put(bundle, record);
            changes++;
        }
        return believed;
    }

    Set<String> bundles() {
        return newest.keySet();
    }

    /** How often something was seen: an assertion is sent again once this has changed. */
    long changes() {
        return changes;
    }

    String assertion() {
        return Wire.JSON.toJson(Map.of("records", newest, "v", 1));
    }
}
