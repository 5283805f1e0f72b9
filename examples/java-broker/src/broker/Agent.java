package broker;

import broker.Wire.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.resps.StreamEntry;

/** Holds the lease, agrees with the store on what is owned, and obeys commands: one thread, one loop. */
final class Agent {
    private final Self self;
    private final Lease lease;
    private final Map<String, Ownership> seen = new HashMap<>();
    private final Map<String, long[]> tokens = new ConcurrentHashMap<>();
    private Store store;
    volatile boolean stopping;

    Agent(Self self) {
        this.self = self;
        this.lease = new Lease(self, seen);
    }

    /** The bundles that may be served at this moment, each with its fencing token; for any thread. */
    Map<String, long[]> served() { return lease.lets() ? Map.copyOf(tokens) : Map.of(); }

    /** Does a client's work if the bundle is served here; whether it was done. */
    synchronized boolean serve(String bundle, BooleanSupplier work) {
        return served().containsKey(bundle) && work.getAsBoolean();
    }

    /** No work is being done for the bundle when this returns. */
    private synchronized void stop(String bundle) { tokens.remove(bundle); }

    /** Runs until it is told to stop, or a later process has this broker's name. */
    void run() throws InterruptedException {
        for (long pause = 100; !stopping && !lease.superseded; pause = Math.min(2 * pause, 1000)) {
            try (Store connected = new Store(self)) {
                store = connected;
                while (!stopping) {
                    step();
                    pause = 100;
                }
                lease.leave(store);
            } catch (JedisException trouble) { // the server's, or it must not be asked yet
                System.err.println(trouble);
                lease.open = false;
                Thread.sleep(pause);
            }
        }
    }

    private void step() {
        boolean doubted = !lease.open;
        lease.keep(store);
        if (doubted || !lease.agreed) {
            agree();
        }
        for (StreamEntry entry : store.commands(Math.max(1, Math.min(500, lease.untilDue())))) {
            lease.keep(store);
            Store.command(entry).filter(command -> command.isFor(self)).ifPresent(this::obey);
            store.acknowledge(entry);
        }
    }

    /** Claims after a gap what is its own or was; else settles what may have changed. */
    private void agree() {
        Map<String, String> records = store.records();
        boolean seeding = !lease.agreed;
        if (seeding) {
            tokens.clear(); // first: each bundle is served again from its claim on
            lease.agreed = true;
        }
        Set<String> bundles = new TreeSet<>(records.keySet());
        bundles.addAll(seen.keySet());
        for (String bundle : bundles) {
            lease.keep(store);
            Ownership record = Wire.read(records.get(bundle), Ownership.class);
            if (seeding && (isMine(record) || isMine(seen.get(bundle)))) {
                claim(bundle, record);
            } else {
                settle(bundle, record);
            }
        }
    }

    /** Follows it where the bundle is served; claims what is Owned here and is not: an answer was lost. */
    private void settle(String bundle, Ownership record) {
        if (note(bundle, record) && tokens.containsKey(bundle)) {
            follow(bundle, record);
        } else if (note(bundle, record) && isMine(record) && record.state().equals("Owned")) {
            claim(bundle, record);
        }
    }

    /** Carries a command out if it is still valid. An exception keeps it in the stream. */
    private void obey(Command command) {
        Ownership record = store.record(command.bundle());
        boolean valid = note(command.bundle(), record) && Arrays.equals(record.epoch(), command.epoch());
        boolean halfDone = record != null && Wire.parent(record.by()).equals(command.id());
        switch (valid || halfDone ? command.kind() : "late") {
            case "unload", "transfer" -> giveAway(command);
            case "own" -> report(command, "serve");
            case "split", "merge" -> decline(command);
            default -> settle(command.bundle(), record); // late, or prepare: there is nothing to warm up
        }
    }

    private void giveAway(Command command) {
        stop(command.bundle());
        if (command.destination() == null) {
            report(command, "release");
        } else if ("no-lease".equals(report(command, "hand-over", command.own()).reason())) {
            report(command, "decline");
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

    private Outcome claim(String bundle, Ownership record) {
        long[] epoch = record == null ? new long[2] : record.epoch();
        String of = self.broker() + "/" + self.session() + "/" + bundle;
        return ask("%s/%d.%d/claim".formatted(of, epoch[0], epoch[1]), bundle, "claim", epoch, null);
    }

    private Outcome report(Command command, String event, Own... told) {
        return ask(command.id() + "/" + event, command.bundle(), event, command.epoch(), command.within(), told);
    }

    private Outcome ask(String id, String bundle, String event, long[] expect, Long within, Own... told) {
        var commands = Stream.of(told).map(own -> List.of(own.broker(), Wire.JSON.toJson(own))).toList();
        var outcome = store.ask(new Request(id, bundle, event, expect, self.broker(), self.session(), within, commands));
        Ownership record = Wire.read(outcome.record(), Ownership.class);
        // A refused claim gives nothing: an earlier process of this name may have served by that epoch.
        boolean again = event.equals("claim") && outcome.reason() != null && isMine(record);
        follow(bundle, again ? null : record);
        // A record that refuses its own epoch is damaged, and would refuse every claim.
        return again && !Arrays.equals(record.epoch(), expect) ? claim(bundle, record) : outcome;
    }

    /** Serves the bundle if its record says so, and is not of a store that lost newer ones. */
    private void follow(String bundle, Ownership record) {
        if (note(bundle, record) && isMine(record) && Wire.SERVED.contains(record.state())) {
            tokens.put(bundle, record.epoch());
        } else {
            stop(bundle);
        }
    }

    /** Keeps a record; false if there is none, or a newer one was seen. */
    private boolean note(String bundle, Ownership record) {
        return record != null && seen.merge(bundle, record, Ownership::newer) == record;
    }

    private boolean isMine(Ownership it) { return it != null && self.broker().equals(it.owner()); }
}
