package broker;

import broker.Wire.*;
import java.util.*;
import java.util.stream.Stream;
import redis.clients.jedis.*;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntry;

/** A connection to the ownership store: two scripts, the records, the broker's stream. For one thread. */
final class Store implements AutoCloseable {
    private static final ResourceBundle SCRIPTS = ResourceBundle.getBundle("scripts");
    private final Self self;
    private final String stream;
    private final RedisClient redis;
    private boolean pending = true;

    Store(Self self) {
        this.self = self;
        this.stream = key("commands:" + self.broker());
        this.redis = RedisClient.create(self.redis());
        try {
            redis.xgroupCreate(stream, "agent", new StreamEntryID(), true);
            redis.expire(stream, 86400, ExpiryOption.NX);
        } catch (JedisException exists) {
            // Any other error comes again with the first request.
        }
    }

    Grant lease(long ms, String assertion, long askedFor) {
        var keys = Stream.of("open", "lease:" + self.broker(), "successor:" + self.broker(), "sessions",
                "clock", "replicas", "assertion:", "ownership", "bundles");
        var answer = run("lease", keys, self.session(), "" + ms, self.broker(), assertion, "" + askedFor);
        return new Grant(answer.get(0), answer.get(1), Long.parseLong(answer.get(2)), answer.get(4),
                Long.parseLong(answer.get(5)));
    }

    /** The outcome of a request. */
    Outcome ask(Request request) {
        var call = Wire.JSON.toJson(Map.of("requests", List.of(request)));
        var answer = run("transition", Stream.of("open"), call);
        if (!answer.get(0).equals("applied")) {
            throw new JedisException(String.join(": ", answer));
        }
        return Wire.read(answer.get(1), Outcome[].class)[0];
    }

    private List<String> run(String script, Stream<String> keys, String... args) {
        Object answer = redis.evalsha(SCRIPTS.getString(script), keys.map(this::key).toList(), List.of(args));
        return ((List<?>) answer).stream().map(String::valueOf).toList();
    }

    /** A bundle's record, or null. */
    Ownership record(String name) { return Wire.read(redis.hget(key("ownership"), name), Ownership.class); }

    /** All bundles' records, as JSON. */
    Map<String, String> records() { return redis.hgetAll(key("ownership")); }

    /** First the entries that were delivered and not acknowledged, then new ones. */
    List<StreamEntry> commands(long waitMs) {
        var from = pending ? new StreamEntryID() : StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY;
        var how = XReadGroupParams.xReadGroupParams().count(100).block((int) waitMs);
        var streams = redis.xreadGroup("agent", self.broker(), how, Map.of(stream, from));
        List<StreamEntry> entries = streams == null ? List.of() : streams.get(0).getValue();
        pending = pending && !entries.isEmpty();
        return entries;
    }

    /** What an entry says, if it is a command. A deleted entry has no fields. */
    static Optional<Command> command(StreamEntry entry) {
        var text = Optional.ofNullable(entry.getFields()).map(fields -> fields.get("command"));
        return text.map(json -> Wire.read(json, Command.class));
    }

    void acknowledge(StreamEntry entry) {
        try (AbstractTransaction both = redis.multi()) {
            both.xack(stream, "agent", entry.getID());
            both.xdel(stream, entry.getID());
            both.exec();
        }
    }

    @Override public void close() { redis.close(); }

    private String key(String name) { return "trimtab:{" + self.cluster() + "}:" + name; }
}
