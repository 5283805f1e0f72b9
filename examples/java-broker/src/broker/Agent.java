package broker;

import broker.Wire.*;
import java.net.URI;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.resps.StreamEntry;

/** Holds the lease, agrees with the store on what is owned, and obeys commands: one thread, one loop. */
final class Agent {
    private final Self self;
    private final Store store;
    private final Lease lease;
    private final Map<String, Ownership> seen = new HashMap<>();
    private final Map<String, long[]> tokens = new ConcurrentHashMap<>();
    private boolean lookAgain;
    volatile boolean stopping;

    Agent(URI redis, Self self) {
        this.self = self;
        this.store = new Store(redis, self);
        this.lease = new Lease(store, seen);
    }

    /** The bundles that may be served at this moment, each with its fencing token; for any thread. */
    Map<String, long[]> served() { return lease.lets() ? new TreeMap<>(tokens) : Map.of(); }

    /** Does a client's work if the bundle is served here; whether it is. */
    synchronized boolean serve(String bundle, Runnable work) {
        boolean here = lease.lets() && tokens.containsKey(bundle);
        if (here) {
            work.run();
        }
        return here;
    }

    /** No work is being done for the bundle when this returns. */
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

    /** Claims after a gap all that is loaded or names this broker; else settles what is its own or was. */
    private void agree() {
        lease.renew();
        boolean seeding = !lease.agreed;
        Map<String, Ownership> records = store.records();
        Set<String> bundles = new TreeSet<>(records.keySet());
        bundles.addAll(seen.keySet());
        for (String bundle : bundles) {
            lease.require(lease.untilDue() > 0 || lease.renew());
            Ownership record = records.get(bundle);
            boolean named = record != null && record.names(self.broker());
            if (seeding && (named || tokens.containsKey(bundle))) {
                claim(bundle, record);
            } else if (named || seen.containsKey(bundle)) {
                settle(bundle, record);
            }
        }
        lease.require(!seeding || lease.renew());
        lease.agreed = true;
        lookAgain = false;
    }

    /** Follows it where the bundle is served; claims what is Owned here and not served: an answer was lost. */
    private void settle(String bundle, Ownership record) {
        if (note(bundle, record) && tokens.containsKey(bundle)) {
            follow(bundle, record);
        } else if (note(bundle, record) && record.names(self.broker()) && record.state().equals("Owned")) {
            claim(bundle, record);
        }
    }

    /** Carries a command out if it is still valid. An exception keeps it in the stream. */
    private void obey(Command command) {
        Ownership record = store.record(command.bundle());
        boolean valid = note(command.bundle(), record) && Arrays.equals(record.epoch(), command.epoch());
        boolean halfDone = record != null && command.id().equals(Wire.parent(record.by()));
        switch (valid || halfDone ? command.kind() : "late") {
            case "unload" -> giveAway(command, null);
            case "transfer" -> giveAway(command, command.destination());
            case "own" -> own(command, record);
            case "split", "merge" -> decline(command);
            case "late" -> settle(command.bundle(), record);
            default -> { } // prepare: there is nothing to warm up
        }
    }

    private void giveAway(Command command, String destination) {
        stop(command.bundle());
        if (destination == null) {
            report(command, "release");
            return;
        }
        Own own = new Own(command.id() + "/own", self.cluster(), destination, "own", command.bundle(),
                self.broker(), command.reason(), command.plan());
        if ("no-lease".equals(report(command, "hand-over", own).reason())) {
            report(command, "decline");
        }
    }

    private void own(Command command, Ownership record) {
        if (record.state().equals("Assigning")) {
            report(command, "serve");
        } else {
            settle(command.bundle(), record);
        }
    }

    /** Keeps the bundle as it is; so the neighbour, which waits at an epoch of its own. */
    private void decline(Command command) {
        report(command, "decline");
        Ownership above = command.neighbour() == null ? null : store.record(command.neighbour());
        if (above != null && above.by().equals(Wire.parent(command.id()))) {
            ask(command.id() + "/decline", command.neighbour(), "decline", above.epoch(), null);
        }
    }

    private void claim(String bundle, Ownership record) {
        long[] epoch = record == null ? new long[2] : record.epoch();
        String id = "%s/%s/%s/%d.%d/claim".formatted(self.broker(), self.session(), bundle, epoch[0], epoch[1]);
        ask(id, bundle, "claim", epoch, null);
    }

    private Outcome report(Command command, String event, Own... told) {
        String id = command.id() + "/" + event;
        return ask(id, command.bundle(), event, command.epoch(), command.within(), told);
    }

    private Outcome ask(String id, String bundle, String event, long[] expect, Long within, Own... told) {
        var commands = Stream.of(told).map(own -> List.of(13, own.broker(), Wire.JSON.toJson(own))).toList();
        Outcome outcome = store.ask(
                new Request(id, bundle, event, expect, self.broker(), self.session(), within, commands));
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
        return record != null && seen.merge(bundle, record, Ownership::newer) == record;
    }
}
