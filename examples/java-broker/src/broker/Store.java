package broker;

import static redis.clients.jedis.StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY;

import broker.Wire.*;
import java.net.URI;
import java.util.*;
import java.util.stream.Stream;
import redis.clients.jedis.*;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.*;

/** The ownership store as one broker's thread sees it: two scripts, the records, and the broker's stream. */
final class Store {
    private static final ResourceBundle SCRIPTS = ResourceBundle.getBundle("scripts");
    private static final StreamEntryID START = new StreamEntryID();
    private static final String GROUP = "agent";

    private final URI address;
    private final Self self;
    private Jedis connection;
    private StreamEntryID read = START;

    Store(URI address, Self self) {
        this.address = address;
        this.self = self;
    }

    /** The store is closed, or cannot judge now: keep what is to be done and ask again. */
    static final class TryLater extends RuntimeException {
        private static final long serialVersionUID = 1;

        TryLater(String why) {
            super(why);
        }
    }

    record Grant(String status, String detail, long ms, String history, long mustHaveLeft) {}

    Grant lease(long ms, String assertion, long askedFor) {
        List<String> answer = run("lease", keys("open", "lease:" + self.broker(), "successor:" + self.broker(), "sessions",
                "clock", "replicas", "assertion:", "ownership", "bundles"),
                self.session(), Long.toString(ms), self.broker(), assertion, Long.toString(askedFor));
        return new Grant(answer.get(0), answer.get(1), Long.parseLong(answer.get(2)), answer.get(4), Long.parseLong(answer.get(5)));
    }

    /** The outcomes of at most 16 requests; `brokers` may be sent commands, by their place from 13 on. */
    List<Outcome> ask(List<Map<String, Object>> requests, String... brokers) {
        List<String> keys = keys("open", "ownership", "journal", "applied", "bundles", "placed", "lease:", "owned:",
                "unjournalled", "replicas", "sessions", "tallies");
        List<String> streams = Stream.of(brokers).map(broker -> key("commands:" + broker)).toList();
        List<String> answer = run("transition", Stream.of(keys, streams).flatMap(List::stream).toList(),
                self.cluster(), "", "", "", Wire.JSON.toJson(requests), "");
        if (!answer.get(0).equals("applied")) {
            throw new TryLater(String.join(": ", answer));
        }
        return List.of(Wire.JSON.fromJson(answer.get(1), Outcome[].class));
    }

    /** The records that there are of these bundles. */
    Map<String, Ownership> records(Collection<String> bundles) {
        Map<String, Ownership> records = new HashMap<>();
        if (!bundles.isEmpty()) {
            String[] names = bundles.toArray(String[]::new);
            List<String> texts = redis().hmget(key("ownership"), names);
            for (int i = 0; i < names.length; i++) {
                records.put(names[i], Wire.parse(texts.get(i)));
            }
        }
        records.values().removeIf(Objects::isNull);
        return records;
    }

    /** The bundles whose records may name this broker. */
    Set<String> owned() {
        Set<String> bundles = new HashSet<>();
        String cursor = "0";
        do {
            ScanResult<String> page = redis().sscan(key("owned:" + self.broker()), cursor);
            bundles.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals("0"));
        return bundles;
    }

    /** The next entries of the stream: after an error those that were delivered and not acknowledged, then new ones. */
    List<StreamEntry> commands(int waitMs) {
        XReadGroupParams how = XReadGroupParams.xReadGroupParams().count(100).block(waitMs);
        try {
            List<Map.Entry<String, List<StreamEntry>>> streams =
                    redis().xreadGroup(GROUP, self.broker(), how, Map.of(stream(), read));
            List<StreamEntry> entries = streams == null ? List.of() : streams.get(0).getValue();
            if (read != XREADGROUP_UNDELIVERED_ENTRY) {
                read = entries.isEmpty() ? XREADGROUP_UNDELIVERED_ENTRY : entries.get(entries.size() - 1).getID();
            }
            return entries;
        } catch (JedisDataException error) {
            if (!error.getMessage().matches("(NOGROUP|UNBLOCKED).*")) {
                throw error;
            }
            createGroup();
            return List.of();
        }
    }

    private void createGroup() {
        try {
            redis().xgroupCreate(stream(), GROUP, START, true);
        } catch (JedisDataException error) {
            if (!error.getMessage().startsWith("BUSYGROUP")) {
                throw error;
            }
        }
        redis().expire(stream(), 86400, ExpiryOption.NX);
    }

    void acknowledge(StreamEntry entry) {
        try (Transaction both = redis().multi()) {
            both.xack(stream(), GROUP, entry.getID());
            both.xdel(stream(), entry.getID());
            both.exec();
        }
    }

    /** Drops the connection: the next call resolves the address again and reads the stream from its start. */
    void disconnect() {
        if (connection != null) {
            connection.close();
        }
        connection = null;
        read = START;
    }

    private Jedis redis() {
        connection = connection == null ? new Jedis(address) : connection;
        return connection;
    }

    private List<String> run(String script, List<String> keys, String... args) {
        try {
            List<?> answer = (List<?>) redis().evalsha(SCRIPTS.getString(script), keys, List.of(args));
            return answer.stream().map(String::valueOf).toList();
        } catch (JedisDataException error) {
            if (error.getMessage().startsWith("NOSCRIPT")) {
                throw new TryLater("no job of this version has used this server");
            }
            throw error;
        }
    }

    private String stream() {
        return key("commands:" + self.broker());
    }

    private List<String> keys(String... names) {
        return Stream.of(names).map(this::key).toList();
    }

    private String key(String name) {
        return "trimtab:{" + self.cluster() + "}:" + name;
    }
}
