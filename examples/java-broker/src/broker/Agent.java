package broker;

import broker.Wire.*;
import java.net.URI;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.resps.StreamEntry;

/** Holds the lease, agrees with the store on what is owned, and obeys commands: one thread, one loop. */
final class Agent {
    private final Self self;
    private final Store store;
    private final Lease lease;
    private final Map<String, Ownership> seen = new HashMap<>();
    private final Map<String, long[]> tokens = new ConcurrentHashMap<>();
    private final Map<String, LongSummaryStatistics> traffic = new HashMap<>();
    private boolean lookAgain;
    volatile boolean stopping;

    Agent(URI redis, Self self) {
        this.self = self;
        this.store = new Store(redis, self);
        this.lease = new Lease(store, self, () -> Wire.JSON.toJson(Map.of("records", seen, "v", 1)));
    }

    /** The bundles that may be served at this moment, each with its fencing token; for any thread. */
    Map<String, long[]> served() { return lease.lets() ? new TreeMap<>(tokens) : Map.of(); }

    /** Takes a message of so many bytes, or says no: the bundle is not served here. */
    synchronized boolean publish(String bundle, int bytes) {
        boolean here = lease.lets() && tokens.containsKey(bundle);
        if (here) {
            traffic.computeIfAbsent(bundle, first -> new LongSummaryStatistics()).accept(bytes);
        }
        return here;
    }

    /** The sizes of the messages of each bundle since the last call. */
    synchronized Map<String, LongSummaryStatistics> takeTraffic() {
        Map<String, LongSummaryStatistics> taken = Map.copyOf(traffic);
        traffic.clear();
        return taken;
    }

    /** No message is being taken for the bundle when this returns. */
    private synchronized void stop(String bundle) { tokens.remove(bundle); }

    /** Runs until it is told to stop, or a later process has this broker's name. */
    void run() throws InterruptedException {
        long pause = 100;
        while (!stopping && !lease.superseded) {
            try {
                step();
                pause = 100;
            } catch (JedisException trouble) { // the server's, or it must not be asked yet
                System.err.println(trouble);
                lookAgain = true;
                store.reconnect();
                Thread.sleep(pause);
                pause = Math.min(2 * pause, 1000);
            }
        }
        try {
            lease.leave();
        } catch (JedisException trouble) {
            System.err.println("the lease runs out by itself: " + trouble);
        }
    }

    private void step() {
        if (lease.untilDue() <= 0) {
            lease.renew();
        }
        if (lookAgain || !lease.agreed) {
            agree();
        }
        lease.require(true);
        for (StreamEntry entry : store.commands(Math.max(1, Math.min(500, lease.untilDue())))) {
            // A deleted entry has no fields.
            String text = entry.getFields() == null ? null : entry.getFields().get("command");
            Command command = Wire.read(text, Command.class);
            if (command != null && command.isFor(self)) {
                obey(command);
            }
            store.acknowledge(entry);
        }
    }

    /** Claims after a gap all that is loaded or names this broker, else what is its own and not loaded. */
    private void agree() {
        lease.renew();
        boolean seeding = !lease.agreed;
        Map<String, Ownership> records = store.records();
        Set<String> names = new TreeSet<>(records.keySet());
        names.addAll(seen.keySet());
        for (String bundle : names) {
            lease.require(lease.untilDue() > 0 || lease.renew());
            Ownership record = records.get(bundle);
            boolean named = record != null && self.broker().equals(record.owner());
            if (seeding && (named || tokens.containsKey(bundle))) {
                claim(bundle, record);
            } else if (named) {
                takeBack(bundle, record);
            } else if (seen.containsKey(bundle) && note(bundle, record)) {
                stop(bundle);
            }
        }
        lease.require(!seeding || lease.renew());
        lease.agreed = true;
        lookAgain = false;
    }

    /** Claims what the record says is served here, and is not: a command or an answer was lost. */
    private void takeBack(String bundle, Ownership record) {
        if (note(bundle, record) && record.isOwnedBy(self.broker()) && !tokens.containsKey(bundle)) {
            claim(bundle, record);
        }
    }

    /** Carries a command out if it is still valid. An exception keeps it in the stream. */
    private void obey(Command command) {
        String bundle = command.bundle();
        Ownership record = store.record(bundle);
        boolean valid = note(bundle, record) && Arrays.equals(record.epoch(), command.epoch());
        boolean halfDone = record != null && Wire.parent(record.by()).equals(command.id());
        switch (valid || halfDone ? command.kind() : "late") {
            case "unload" -> giveAway(command, null);
            case "transfer" -> giveAway(command, command.destination());
            case "own" -> own(command, record);
            case "split", "merge" -> decline(command, record);
            case "late" -> takeBack(bundle, record);
            default -> { } // prepare: there is nothing to warm up
        }
    }

    private void giveAway(Command command, String destination) {
        stop(command.bundle());
        if (destination == null) {
            ask(report(command, "release"));
            return;
        }
        String own = Wire.JSON.toJson(Map.of("id", command.id() + "/own", "kind", "own",
                "bundle", command.bundle(), "cluster", self.cluster(), "broker", destination,
                "source", self.broker(), "reason", command.reason(), "plan", command.plan()));
        Map<String, Object> handOver = report(command, "hand-over");
        handOver.put("commands", List.of(List.of(13, destination, own)));
        if ("no-lease".equals(ask(handOver, destination).reason())) {
            ask(report(command, "decline"));
        }
    }

    private void own(Command command, Ownership record) {
        if (!record.isServedBy(self.broker())) {
            ask(report(command, "serve"));
        } else if (tokens.containsKey(command.bundle())) {
            follow(command.bundle(), record);
        } else {
            claim(command.bundle(), record);
        }
    }

    /** Keeps the bundle as it is; so the neighbour, which waits at an epoch of its own. */
    private void decline(Command command, Ownership record) {
        ask(report(command, "decline"));
        Ownership above = command.neighbour() == null ? null : store.record(command.neighbour());
        if (above != null && above.by().equals(Wire.parent(command.id()))) {
            ask(request(command.id() + "/decline", command.neighbour(), "decline", above.epoch()));
        }
    }

    private void claim(String bundle, Ownership record) {
        long[] epoch = record == null ? new long[2] : record.epoch();
        String id = "%s/%s/%s/%d.%d/claim".formatted(self.broker(), self.session(), bundle, epoch[0], epoch[1]);
        Map<String, Object> claim = request(id, bundle, "claim", epoch);
        claim.put("broker", self.broker());
        ask(claim);
    }

    private Map<String, Object> report(Command command, String event) {
        String id = command.id() + "/" + event;
        Map<String, Object> report = request(id, command.bundle(), event, command.epoch());
        if (command.deadline() > command.issuedAt()) {
            report.put("within", command.deadline() - command.issuedAt());
        }
        return report;
    }

    private Map<String, Object> request(String id, String bundle, String event, long[] expect) {
        return new HashMap<>(Map.of("id", id, "bundle", bundle, "event", event, "expect", expect,
                "actor", self.broker(), "session", self.session()));
    }

    private Outcome ask(Map<String, Object> request, String... told) {
        Outcome outcome = store.ask(request, told);
        follow(outcome.bundle(), Wire.read(outcome.record(), Ownership.class));
        return outcome;
    }

    /** Serves the bundle if its record says so, and is not of a store that lost newer ones. */
    private void follow(String bundle, Ownership record) {
        if (note(bundle, record) && record.isServedBy(self.broker())) {
            tokens.put(bundle, record.epoch());
        } else {
            stop(bundle);
        }
    }

    /** Keeps a record; false if there is none, or a newer one was seen. */
    private boolean note(String bundle, Ownership record) {
        Ownership newest = record == null ? null : seen.merge(bundle, record, Ownership::newer);
        return record != null && newest == record;
    }
}
