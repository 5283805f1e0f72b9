package broker;

import broker.Store.TryLater;
import broker.Wire.*;
import java.util.*;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.resps.StreamEntry;

/** Holds the lease, agrees with the store on what is owned, and obeys commands: one thread, one loop. */
final class Agent implements Runnable {
    private static final int PAGE = 16;
    private static final long LONGEST_WAIT_MS = 500;

    private final Self self;
    private final Store store;
    private final Seen seen;
    private final Lease lease;
    private final Served served;
    private boolean lookAgain;
    private volatile boolean stopping;

    Agent(Self self, Store store, Seen seen, Lease lease, Served served) {
        this.self = self;
        this.store = store;
        this.seen = seen;
        this.lease = lease;
        this.served = served;
    }

    /** Runs until it is stopped, or a later process has this broker's name. */
    @Override
    public void run() {
        long pause = 100;
        while (!stopping) {
            try {
                step();
                pause = 100;
            } catch (TryLater | JedisException trouble) {
                System.err.println(trouble);
                lookAgain = true;
                store.disconnect();
                sleep(pause);
                pause = Math.min(2 * pause, 2000);
            }
        }
        lease.leave();
    }

    void stop() {
        stopping = true;
    }

    private void step() {
        if (lease.msUntilDue() <= 0 && !lease.renew()) {
            served.agree(false);
        }
        if (!served.isAgreed()) {
            seed();
        }
        lease.requireOpen();
        if (lookAgain) {
            store.records(served.loaded()).forEach(this::follow);
            lookAgain = false;
        }
        for (StreamEntry entry : store.commands((int) Math.max(1, Math.min(LONGEST_WAIT_MS, lease.msUntilDue())))) {
            String text = entry.getFields() == null ? null : entry.getFields().get("command");
            Wire.command(text).filter(this::isFor).ifPresent(this::obey);
            store.acknowledge(entry);
        }
    }

    /** Claims what is loaded or names this broker; serves only if the lease had no gap meanwhile. */
    private void seed() {
        lease.renew();
        lease.requireOpen();
        Set<String> bundles = new TreeSet<>(store.owned());
        bundles.addAll(served.loaded());
        bundles.addAll(seen.bundles());
        bundles.remove("");
        Map<String, Ownership> records = store.records(bundles);
        List<String> ours = bundles.stream().filter(bundle -> served.loaded().contains(bundle)
                || records.containsKey(bundle) && self.broker().equals(records.get(bundle).owner())).toList();
        for (int from = 0; from < ours.size(); from += PAGE) {
            requireUnbroken(lease.msUntilDue() > 0 || lease.renew());
            store.ask(ours.subList(from, Math.min(from + PAGE, ours.size())).stream()
                    .map(bundle -> claim(bundle, records.get(bundle))).toList()).forEach(this::follow);
        }
        requireUnbroken(lease.renew());
        served.agree(true);
    }

    private void requireUnbroken(boolean unbroken) {
        if (!unbroken) {
            throw new TryLater("the lease had a gap");
        }
        lease.requireOpen();
    }

    /** Carries a command out if it is still valid. Raises TryLater or JedisException if it must be kept. */
    private void obey(Command command) {
        Ownership record = read(command.bundle());
        boolean forgotten = record == null || !seen.note(command.bundle(), record);
        if (forgotten && !command.kind().matches("split|merge")) {
            return;
        }
        if (!forgotten && !record.epoch().equals(command.epoch()) && !record.wasWrittenFor(command.id())) {
            follow(command.bundle(), record);
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
        served.take(command.bundle());
        if (command.kind().equals("unload") || command.destination() == null) {
            follow(ask(report(command, "release")));
            return;
        }
        Map<String, Object> handOver = report(command, "hand-over");
        handOver.put("commands", List.of(List.of(13, command.destination(), Wire.JSON.toJson(command.forNextOwner()))));
        Outcome outcome = ask(handOver, command.destination());
        follow("no-lease".equals(outcome.reason()) ? ask(report(command, "decline")) : outcome);
    }

    private void own(Command command, Ownership record) {
        if (!record.isServedBy(self.broker())) {
            follow(ask(report(command, "serve")));
        } else if (!served.loaded().contains(command.bundle())) {
            follow(ask(claim(command.bundle(), record)));
        }
    }

    private void split(Command command) {
        List<Bundle> children = Bundle.parse(command.bundle()).halves();
        if (command.division() == null || !"range_equally_divide".equals(command.division().algorithm()) || children.isEmpty()) {
            follow(ask(report(command, "decline")));
        } else {
            follow(retire(report(command, "retire"), children, command.bundle()));
        }
    }

    private void merge(Command command) {
        Ownership above = read(command.neighbour());
        if (above != null) {
            Map<String, Object> retire = report(command, "retire");
            retire.put("neighbour", List.of(command.neighbour(), above.epoch()));
            Bundle whole = Bundle.parse(command.bundle()).mergedWith(Bundle.parse(command.neighbour()));
            Outcome outcome = retire(retire, List.of(whole), command.bundle(), command.neighbour());
            follow(outcome);
            if (outcome.accepted()) {
                return;
            }
        }
        for (String part : List.of(command.bundle(), command.neighbour())) {
            Ownership record = read(part);
            if (record != null && record.state().equals("Merging") && record.by().equals(Wire.parent(command.id()))) {
                follow(ask(request(command.id() + "/decline", part, "decline", record.epoch())));
            }
        }
    }

    /** Ends `parts` for `children`. They are served until the answer, and not while one is missing. */
    private Outcome retire(Map<String, Object> request, List<Bundle> children, String... parts) {
        request.put("children", children.stream().map(Bundle::toString).toList());
        try {
            return ask(request);
        } catch (JedisException unanswered) {
            List.of(parts).forEach(served::take);
            throw unanswered;
        }
    }

    /** What ends is taken before what begins is given. */
    private void follow(Outcome outcome) {
        outcome.records().entrySet().stream()
                .sorted(Comparator.comparing(entry -> entry.getValue().isServedBy(self.broker())))
                .forEach(entry -> follow(entry.getKey(), entry.getValue()));
    }

    private void follow(String bundle, Ownership record) {
        if (seen.note(bundle, record) && record.isServedBy(self.broker())) {
            served.give(bundle, record.epoch());
        } else if (seen.note(bundle, record)) {
            served.take(bundle);
        }
    }

    private Ownership read(String bundle) {
        return store.records(List.of(bundle)).get(bundle);
    }

    private Outcome ask(Map<String, Object> request, String... brokers) {
        return store.ask(List.of(request), brokers).get(0);
    }

    private Map<String, Object> claim(String bundle, Ownership record) {
        Epoch epoch = record == null ? Epoch.NONE : record.epoch();
        String id = "%s/%s/%s/%d.%d/claim".formatted(
                self.broker(), self.session(), bundle, epoch.generation(), epoch.counter());
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

    private Map<String, Object> request(String id, String bundle, String event, Epoch expect) {
        return new HashMap<>(Map.of("id", id, "bundle", bundle, "event", event, "expect", expect,
                "actor", self.broker(), "session", self.session()));
    }

    private boolean isFor(Command command) {
        return self.cluster().equals(command.cluster()) && self.broker().equals(command.broker());
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }
}
