import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.collect.Multimap;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.OverloadShedder;
import org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder;
import org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder;
import org.apache.pulsar.common.util.FieldParser;

/**
 * Pulsar's own shedders on a cluster handed over as columns: {@code Peer NAMES COLUMNS BROKERS CONFIGURATION}.
 *
 * <p>Says in one line of JSON what was loaded and what heap it takes. Then runs one round for each line of input,
 * which is the name of a strategy, and answers with a line: nanoseconds of CPU that this thread used, and the moves
 * {@code [bundle, source, destination or null]} in Pulsar's order. A strategy keeps its state from round to round.
 */
final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final LoadData loadData;
    private final ServiceConfiguration conf;
    private final Map<String, Strategy> strategies = new HashMap<>();

    private Peer(LoadData loadData, ServiceConfiguration conf) {
        this.loadData = loadData;
        this.conf = conf;
    }

    public static void main(String[] arguments) throws Exception {
        ServiceConfiguration conf = configuration(arguments[3]);
        long before = usedHeap();
        Cluster cluster = Cluster.read(
                Path.of(arguments[0]), Path.of(arguments[1]), Integer.parseInt(arguments[2]), conf);
        say(Map.of("digest", cluster.digest, "heapBytes", usedHeap() - before));
        Peer peer = new Peer(cluster.loadData, conf);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String name = lines.readLine(); name != null; name = lines.readLine()) {
            say(peer.round(name));
        }
    }

    private static void say(Map<String, ?> answer) throws IOException {
        System.out.println(JSON.writeValueAsString(answer));
    }

    /** Pulsar's names and its own way to read them from text. */
    private static ServiceConfiguration configuration(String json) throws IOException {
        ServiceConfiguration conf = new ServiceConfiguration();
        Map<String, String> given = new HashMap<>();
        JSON.readTree(json).fields().forEachRemaining(entry -> given.put(entry.getKey(), entry.getValue().asText()));
        FieldParser.update(given, conf);
        return conf;
    }

    private static long usedHeap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private Map<String, ?> round(String name) throws ReflectiveOperationException {
        Strategy strategy = strategies.get(name);
        if (strategy == null) {
            strategy = name.equals("TransferShedder") ? new Transferring() : new Shedding(shedder(name));
            strategies.put(name, strategy);
        }
        long started = THREADS.getCurrentThreadCpuTime();
        strategy.decide();
        long nanoseconds = THREADS.getCurrentThreadCpuTime() - started;
        return Map.of("nanoseconds", nanoseconds, "moves", strategy.moves());
    }

    private static LoadSheddingStrategy shedder(String name) {
        switch (name) {
            case "AvgShedder":
                return new AvgShedder();
            case "OverloadShedder":
                return new OverloadShedder();
            case "ThresholdShedder":
                return new ThresholdShedder();
            case "UniformLoadShedder":
                return new UniformLoadShedder();
            default:
                throw new IllegalArgumentException("no such strategy: " + name);
        }
    }

    private interface Strategy {
        /** What is timed. */
        void decide();

        /** What it decided, as bundle, source and destination. */
        List<List<String>> moves();
    }

    private final class Shedding implements Strategy {
        private final LoadSheddingStrategy shedder;
        private final Set<String> brokers = new HashSet<>(loadData.getBrokerData().keySet());
        private Multimap<String, String> found;

        Shedding(LoadSheddingStrategy shedder) {
            this.shedder = shedder;
            shedder.onActiveBrokersChange(brokers);
        }

        @Override
        public void decide() {
            found = shedder.findBundlesForUnloading(loadData, conf);
        }

        @Override
        public List<List<String>> moves() {
            List<List<String>> moves = new ArrayList<>();
            found.forEach((source, bundle) -> moves.add(Arrays.asList(bundle, source, destination(bundle))));
            return moves;
        }

        private String destination(String bundle) {
            if (shedder instanceof AvgShedder) {
                return ((AvgShedder) shedder).selectBroker(
                        brokers, loadData.getBundleData().get(bundle), loadData, conf).orElse(null);
            }
            return null;
        }
    }

    private final class Transferring implements Strategy {
        private final Transfer transfer = new Transfer(loadData, conf);
        private Set<UnloadDecision> decisions;

        Transferring() throws ReflectiveOperationException {
        }

        @Override
        public void decide() {
            decisions = transfer.decide();
        }

        @Override
        public List<List<String>> moves() {
            List<List<String>> moves = new ArrayList<>();
            decisions.stream().map(UnloadDecision::getUnload).forEach(unload -> moves.add(Arrays.asList(
                    unload.serviceUnit(), unload.sourceBroker(), unload.destBroker().orElse(null))));
            return moves;
        }
    }
}
