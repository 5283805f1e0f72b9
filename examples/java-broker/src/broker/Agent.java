package broker;

import broker.Store.TryLater;
import broker.Wire.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import redis.clients.jedis.exceptions.*;
import redis.clients.jedis.resps.StreamEntry;

/** Holds the lease, agrees with the store on what is owned, and obeys commands: one thread, one loop. */
final class Agent {
    private static final long PAUSE_MS = 100;
    private static final long LONGEST_PAUSE_MS = 2000;
    private static final long LONGEST_WAIT_MS = 500;

    private final Self self;
    private final Store store;
    private final Lease lease;
    private final Bundles bundles;
    private boolean lookAgain;
    private volatile boolean stopping;

    Agent(Self self, Store store, Lease lease, Bundles bundles) {
        this.self = self;
        this.store = store;
        this.lease = lease;
        this.bundles = bundles;
    }

    /** Runs until it is told to stop, or a later process has this broker's name. */
    void run() {
        long pause = PAUSE_MS;
        while (!stopping && !lease.isSuperseded()) {
            try {
                step();
                pause = PAUSE_MS;
            } catch (TryLater | JedisException trouble) {
                System.err.println(trouble);
                lookAgain = true;
                store.disconnect();
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause));
                pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
            }
        }
        try {
            lease.leave();
        } catch (TryLater | JedisException trouble) {
            System.err.println("the lease runs out by itself: " + trouble);
        }
    }

    void stop() { stopping = true; }

    private void step() {
        if (lease.msUntilDue() <= 0) {
            lease.renew(bundles::assertion);
        }
        if (!lease.isAgreed()) {
            seed();
        }
        lease.requireOpen();
        if (lookAgain) {
            lookAgain();
        }
        for (StreamEntry entry : store.commands(Math.max(1, Math.min(LONGEST_WAIT_MS, lease.msUntilDue())))) {
            // A deleted entry has no fields.
            String text = entry.getFields() == null ? null : entry.getFields().get("command");
            Command command = Wire.read(text, Command.class);
            if (command != null && command.isFor(self)) {
                obey(command);
            }
            store.acknowledge(entry);
        }
    }

    /** Claims what is loaded here or names this broker; it is served if the lease had no gap meanwhile. */
    private void seed() {
        lease.renew(bundles::assertion);
        lease.requireOpen();
        Set<String> names = store.owned();
        names.addAll(bundles.loaded());
        names.addAll(bundles.seen());
        for (String bundle : names) {
            Ownership record = store.record(bundle);
            if (bundles.loaded().contains(bundle) || record != null && self.broker().equals(record.owner())) {
                requireUnbroken(lease.msUntilDue() > 0 || lease.renew(bundles::assertion));
                follow(store.ask(claim(bundle, record)));
            }
        }
        requireUnbroken(lease.renew(bundles::assertion));
        lease.agree();
    }

    /** After the store was away it may have newer records, and may have lost commands. */
    private void lookAgain() {
        requireUnbroken(lease.renew(bundles::assertion));
        Set<String> names = store.owned();
        names.addAll(bundles.loaded());
        for (String bundle : names) {
            Ownership record = store.record(bundle);
            takeBack(bundle, record);
            if (bundles.note(bundle, record) && !self.broker().equals(record.owner())) {
                bundles.stop(bundle);
            }
        }
        lookAgain = false;
    }

    /** Claims what the record says is served here, and is not: a command or an answer was lost. */
    private void takeBack(String bundle, Ownership record) {
        if (bundles.note(bundle, record) && record.isOwnedBy(self.broker()) && !bundles.loaded().contains(bundle)) {
            follow(store.ask(claim(bundle, record)));
        }
    }

    private void requireUnbroken(boolean unbroken) {
        lease.requireOpen();
        if (!unbroken) {
            throw new TryLater("the lease had a gap");
        }
    }

    /** Carries a command out if it is still valid. An exception keeps it in the stream. */
    private void obey(Command command) {
        Ownership record = store.record(command.bundle());
        boolean newest = bundles.note(command.bundle(), record);
        if (!command.wrote(record) && !(newest ? command.expects(record) : command.retires())) {
            takeBack(command.bundle(), record);
            return;
        }
        switch (command.kind()) {
            case "unload", "transfer" -> giveAway(command);
            case "own" -> own(command, record);
            case "split" -> split(command);
            case "merge" -> merge(command);
            default -> { } // prepare: there is nothing to warm up.
        }
    }

    private void giveAway(Command command) {
        bundles.stop(command.bundle());
        if (command.kind().equals("unload") || command.destination() == null) {
            follow(store.ask(report(command, "release")));
            return;
        }
        Map<String, Object> handOver = report(command, "hand-over");
        String own = Wire.JSON.toJson(command.forNextOwner());
        handOver.put("commands", List.of(List.of(Store.FIRST_STREAM, command.destination(), own)));
        Outcome outcome = store.ask(handOver, command.destination());
        follow("no-lease".equals(outcome.reason()) ? store.ask(report(command, "decline")) : outcome);
    }

    private void own(Command command, Ownership record) {
        if (!record.isServedBy(self.broker())) {
            follow(store.ask(report(command, "serve")));
        } else if (bundles.loaded().contains(command.bundle())) {
            bundles.follow(command.bundle(), record);
        } else {
            follow(store.ask(claim(command.bundle(), record)));
        }
    }

    private void split(Command command) {
        List<Bundle> halves = Bundle.parse(command.bundle()).halves();
        boolean known = command.division() != null && "range_equally_divide".equals(command.division().algorithm());
        if (known && !halves.isEmpty()) {
            follow(retire(report(command, "retire"), halves, command.bundle()));
        } else {
            follow(store.ask(report(command, "decline")));
        }
    }

    private void merge(Command command) {
        if (command.neighbour() == null) {
            follow(store.ask(report(command, "decline")));
            return;
        }
        Ownership above = store.record(command.neighbour());
        bundles.note(command.neighbour(), above);
        Bundle whole = Bundle.parse(command.bundle()).mergedWith(Bundle.parse(command.neighbour()));
        Map<String, Object> retire = report(command, "retire");
        retire.put("neighbour", List.of(command.neighbour(), above == null ? new long[2] : above.epoch()));
        Outcome outcome = retire(retire, List.of(whole), command.bundle(), command.neighbour());
        follow(outcome);
        if (!outcome.accepted()) {
            outcome.records().forEach((part, record) -> decline(command, part, record));
        }
    }

    private void decline(Command merge, String part, Ownership record) {
        if (record != null && record.isPartOf(merge)) {
            follow(store.ask(request(merge.id() + "/decline", part, "decline", record.epoch())));
        }
    }

    /** Ends the parts for the children. They are served until the answer, but not while it is missing. */
    private Outcome retire(Map<String, Object> request, List<Bundle> children, String... parts) {
        request.put("children", children.stream().map(Bundle::toString).toList());
        try {
            return store.ask(request);
        } catch (JedisConnectionException unanswered) {
            List.of(parts).forEach(bundles::stop);
            throw unanswered;
        }
    }

    /** What ends is stopped before what begins is served. */
    private void follow(Outcome outcome) {
        Map<String, Ownership> records = outcome.records();
        Predicate<String> begins = name -> records.get(name) != null && records.get(name).isServedBy(self.broker());
        records.keySet().stream().filter(begins.negate()).forEach(name -> bundles.follow(name, records.get(name)));
        records.keySet().stream().filter(begins).forEach(name -> bundles.follow(name, records.get(name)));
    }

    private Map<String, Object> claim(String bundle, Ownership record) {
        long[] epoch = record == null ? new long[2] : record.epoch();
        String id = "%s/%s/%s/%d.%d/claim".formatted(self.broker(), self.session(), bundle, epoch[0], epoch[1]);
        Map<String, Object> claim = request(id, bundle, "claim", epoch);
        claim.put("broker", self.broker());
        return claim;
    }

    private Map<String, Object> report(Command command, String event) {
        Map<String, Object> report = request(command.id() + "/" + event, command.bundle(), event, command.epoch());
        if (command.deadline() > command.issuedAt()) {
            report.put("within", command.deadline() - command.issuedAt());
        }
        return report;
    }

    private Map<String, Object> request(String id, String bundle, String event, long[] expect) {
        return new HashMap<>(Map.of("id", id, "bundle", bundle, "event", event, "expect", expect,
                "actor", self.broker(), "session", self.session()));
    }
}
