package broker;

import broker.Wire.*;
import java.net.URI;
import java.util.*;
import java.util.stream.Stream;
import redis.clients.jedis.*;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.*;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntry;

/** The ownership store as one broker sees it: two scripts, the records, and its stream. For one thread. */
final class Store {
    private static final ResourceBundle SCRIPTS = ResourceBundle.getBundle("scripts");
    final Self self;
    private final URI address;
    private final String stream;
    private RedisClient redis;
    private boolean pending = true;

    Store(URI address, Self self) {
        this.address = address;
        this.self = self;
        this.stream = key("commands:" + self.broker());
        this.redis = RedisClient.create(address);
    }

    /** The next call connects anew, to wherever the address then leads; unfinished commands come again. */
    void reconnect() {
        redis.close();
        redis = RedisClient.create(address);
        pending = true;
    }

    Grant lease(long ms, String assertion, long askedFor) {
        var keys = Stream.of("open", "lease:" + self.broker(), "successor:" + self.broker(), "sessions",
                "clock", "replicas", "assertion:", "ownership", "bundles");
        var answer = run("lease", keys, self.session(), "" + ms, self.broker(), assertion, "" + askedFor);
        return new Grant(answer.get(0), answer.get(1), Long.parseLong(answer.get(2)), answer.get(4),
                Long.parseLong(answer.get(5)));
    }

    /** What became of a request; a command's stream is the 13th key. */
    Outcome ask(Request request) {
        var keys = Stream.of("open", "ownership", "journal", "applied", "bundles", "placed", "lease:", "owned:",
                "unjournalled", "replicas", "sessions", "tallies");
        var streams = request.commands().stream().map(command -> "commands:" + command.get(1));
        String requests = Wire.JSON.toJson(List.of(request));
        var answer = run("transition", Stream.concat(keys, streams), self.cluster(), "", "", "", requests, "");
        if (!answer.get(0).equals("applied")) {
            throw new JedisException(String.join(": ", answer));
        }
        return Wire.JSON.fromJson(answer.get(1), Outcome[].class)[0];
    }

    private List<String> run(String script, Stream<String> keys, String... args) {
        Object answer = redis.evalsha(SCRIPTS.getString(script), keys.map(this::key).toList(), List.of(args));
        return ((List<?>) answer).stream().map(String::valueOf).toList();
    }

    /** A bundle's record, or null. */
    Ownership record(String bundle) { return Wire.read(redis.hget(key("ownership"), bundle), Ownership.class); }

    /** All bundles' records. */
    Map<String, Ownership> records() {
        Map<String, Ownership> records = new HashMap<>();
        redis.hgetAll(key("ownership"))
                .forEach((name, text) -> records.put(name, Wire.read(text, Ownership.class)));
        return records;
    }

    /** First the entries that were delivered and not acknowledged, then new ones. */
    List<StreamEntry> commands(long waitMs) {
        if (pending) {
            try {
                redis.xgroupCreate(stream, "agent", new StreamEntryID(), true);
                redis.expire(stream, 86400, ExpiryOption.NX);
            } catch (JedisDataException exists) {
                // Any other error comes again with the next read.
            }
        }
        var from = pending ? new StreamEntryID() : StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY;
        var how = XReadGroupParams.xReadGroupParams().count(100).block((int) waitMs);
        var streams = redis.xreadGroup("agent", self.broker(), how, Map.of(stream, from));
        List<StreamEntry> entries = streams == null ? List.of() : streams.get(0).getValue();
        pending = pending && !entries.isEmpty();
        return entries;
    }

    void acknowledge(StreamEntry entry) {
        try (AbstractTransaction both = redis.multi()) {
            both.xack(stream, "agent", entry.getID());
            both.xdel(stream, entry.getID());
            both.exec();
        }
    }

    private String key(String name) { return "trimtab:{" + self.cluster() + "}:" + name; }
}
