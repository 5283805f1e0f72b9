package broker;

import broker.Wire.*;
import java.net.URI;
import java.util.*;
import java.util.stream.Stream;
import redis.clients.jedis.*;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.*;

/** The ownership store as one broker sees it: two scripts, the records, and the broker's stream. For one thread. */
final class Store {
    private static final ResourceBundle SCRIPTS = ResourceBundle.getBundle("scripts");
    private static final StreamEntryID START = new StreamEntryID();
    private static final StreamEntryID NEW = StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY;
    private static final String GROUP = "agent";
    static final int FIRST_STREAM = 13;

    private final URI address;
    private final Self self;
    private final String stream;
    private Jedis connection;
    private StreamEntryID after = START;

    Store(URI address, Self self) {
        this.address = address;
        this.self = self;
        this.stream = key("commands:" + self.broker());
    }

    /** The store is closed, or must not be asked yet: what is to be done stays to be done. */
    static final class TryLater extends RuntimeException {
        private static final long serialVersionUID = 1;

        TryLater(String why) { super(why); }
    }

    /** The lease script's answer. */
    record Grant(String status, String detail, long ms, String history, long mustHaveLeft) {}

    Grant lease(long ms, String assertion, long askedFor) {
        List<String> keys = keys("open", "lease:" + self.broker(), "successor:" + self.broker(), "sessions", "clock",
                "replicas", "assertion:", "ownership", "bundles");
        List<String> answer = run("lease", keys, self.session(), "" + ms, self.broker(), assertion, "" + askedFor);
        return new Grant(answer.get(0), answer.get(1), Long.parseLong(answer.get(2)), answer.get(4),
                Long.parseLong(answer.get(5)));
    }

    /** What became of one request; the streams of `brokers` are the keys from FIRST_STREAM on. */
    Outcome ask(Map<String, Object> request, String... brokers) {
        List<String> keys = keys("open", "ownership", "journal", "applied", "bundles", "placed", "lease:", "owned:",
                "unjournalled", "replicas", "sessions", "tallies");
        Stream.of(brokers).map(broker -> key("commands:" + broker)).forEach(keys::add);
        String json = Wire.JSON.toJson(List.of(request));
        List<String> answer = run("transition", keys, self.cluster(), "", "", "", json, "");
        if (!answer.get(0).equals("applied")) {
            throw new TryLater(String.join(": ", answer));
        }
        return Wire.JSON.fromJson(answer.get(1), Outcome[].class)[0];
    }

    /** A bundle's record, or null. */
    Ownership record(String bundle) {
        return Wire.read(redis().hget(key("ownership"), bundle), Ownership.class);
    }

    /** The bundles whose records may name this broker. */
    Set<String> owned() {
        Set<String> bundles = new TreeSet<>();
        ScanResult<String> page = new ScanResult<>("0", List.of());
        do {
            page = redis().sscan(key("owned:" + self.broker()), page.getCursor());
            bundles.addAll(page.getResult());
        } while (!page.isCompleteIteration());
        bundles.remove("");
        return bundles;
    }

    /** First the entries that were delivered and not acknowledged, then new ones; waits for these only. */
    List<StreamEntry> commands(long waitMs) {
        XReadGroupParams how = XReadGroupParams.xReadGroupParams().count(100).block((int) waitMs);
        if (after == START) {
            createStream();
        }
        var streams = redis().xreadGroup(GROUP, self.broker(), how, Map.of(stream, after));
        List<StreamEntry> entries = streams == null ? List.of() : streams.get(0).getValue();
        if (after != NEW) {
            after = entries.isEmpty() ? NEW : entries.get(entries.size() - 1).getID();
        }
        return entries;
    }

    void acknowledge(StreamEntry entry) {
        try (Transaction both = redis().multi()) {
            both.xack(stream, GROUP, entry.getID());
            both.xdel(stream, entry.getID());
            both.exec();
        }
    }

    /** The next call connects anew, to wherever the address then leads, and reads the stream from its start. */
    void disconnect() {
        if (connection != null) {
            connection.close();
        }
        connection = null;
        after = START;
    }

    private Jedis redis() {
        if (connection == null) {
            connection = new Jedis(address);
        }
        return connection;
    }

    private void createStream() {
        try {
            redis().xgroupCreate(stream, GROUP, START, true);
        } catch (JedisDataException exists) { // Any other error comes again with the next read.
            return;
        }
        redis().expire(stream, 86400, ExpiryOption.NX);
    }

    private List<String> run(String script, List<String> keys, String... args) {
        try {
            List<?> answer = (List<?>) redis().evalsha(SCRIPTS.getString(script), keys, List.of(args));
            return answer.stream().map(String::valueOf).toList();
        } catch (JedisDataException error) {
            throw error.getMessage().startsWith("NOSCRIPT") ? new TryLater("no job has used this server") : error;
        }
    }

    private List<String> keys(String... names) { return new ArrayList<>(Stream.of(names).map(this::key).toList()); }

    private String key(String name) { return "trimtab:{" + self.cluster() + "}:" + name; }
}
