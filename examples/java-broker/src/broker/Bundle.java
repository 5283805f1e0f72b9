package broker;

import java.util.List;
import java.util.regex.*;
import java.util.zip.CRC32;

/** A range of a namespace's hash ring. */
record Bundle(String namespace, long low, long high) {
    private static final Pattern NAME = Pattern.compile("([^/]+/[^/]+)/0x([0-9a-f]{8})_0x([0-9a-f]{8})");
    private static final long END = 0xffffffffL;

    static Bundle parse(String name) {
        Matcher parts = NAME.matcher(name);
        if (!parts.matches() || parts.group(2).compareTo(parts.group(3)) >= 0) {
            throw new IllegalArgumentException("not a bundle: " + name);
        }
        return new Bundle(parts.group(1), Long.parseLong(parts.group(2), 16), Long.parseLong(parts.group(3), 16));
    }

    /** Whether it has a topic, persistent://tenant/namespace/name. */
    boolean has(String topic) {
        CRC32 position = new CRC32();
        position.update(topic.getBytes());
        return topic.startsWith("persistent://" + namespace + "/")
                && low <= position.getValue() && (position.getValue() < high || high == END);
    }

    boolean isBelow(Bundle other) { return namespace.equals(other.namespace) && high == other.low; }

    Bundle mergedWith(Bundle above) { return new Bundle(namespace, low, above.high); }

    /** Its halves; none if it is a single position. */
    List<Bundle> halves() {
        long middle = low + (high - low) / 2;
        return middle == low ? List.of()
                : List.of(new Bundle(namespace, low, middle), new Bundle(namespace, middle, high));
    }

    @Override
    public String toString() { return String.format("%s/0x%08x_0x%08x", namespace, low, high); }
}
