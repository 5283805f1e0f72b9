import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;

/** TransferShedder, and what the extensible load manager would show it of a cluster. */
final class Transfer implements LoadManagerContext {
    private final ServiceConfiguration conf;
    private final TransferShedder shedder = new TransferShedder(new UnloadCounter());
    private final Store<BrokerLoadData> loads = new Store<>();
    private final Store<TopBundlesLoadData> tops = new Store<>();
    private final Map<String, BrokerLookupData> available = new HashMap<>();
    private final BrokerRegistry registry = (BrokerRegistry) Proxy.newProxyInstance(
            Transfer.class.getClassLoader(), new Class<?>[] {BrokerRegistry.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("getAvailableBrokerLookupDataAsync")) {
                    return CompletableFuture.completedFuture(available);
                }
                throw new UnsupportedOperationException(method.toString());
            });

    Transfer(LoadData loadData, ServiceConfiguration conf) throws ReflectiveOperationException {
        this.conf = conf;
        Configured pulsar = Configured.with(conf);
        loadData.getBrokerData().forEach((name, data) -> {
            LocalBrokerData local = data.getLocalData();
            BrokerLoadData load = new BrokerLoadData();
            load.update(system(local), local.getMsgThroughputIn(), local.getMsgThroughputOut(), local.getMsgRateIn(),
                    local.getMsgRateOut(), local.getNumBundles(), (int) local.getNumTopics(), conf);
            loads.entries.put(name, load);
            TopKBundles top = new TopKBundles(pulsar);
            top.update(local.getLastStats(), conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport());
            tops.entries.put(name, top.getLoadData());
            available.put(name, new BrokerLookupData("http://" + name, null, "pulsar://" + name, null, Map.of(),
                    Map.of(), true, true, conf.getLoadManagerClassName(), 0L, "4.0.8", Map.of()));
        });
    }

    Set<UnloadDecision> decide() {
        return shedder.findBundlesForUnloading(this, new HashMap<>(), new HashMap<>());
    }

    private static SystemResourceUsage system(LocalBrokerData local) {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(local.getCpu());
        usage.setMemory(local.getMemory());
        usage.setDirectMemory(local.getDirectMemory());
        usage.setBandwidthIn(local.getBandwidthIn());
        usage.setBandwidthOut(local.getBandwidthOut());
        return usage;
    }

    @Override
    public ServiceConfiguration brokerConfiguration() {
        return conf;
    }

    @Override
    public LoadDataStore<BrokerLoadData> brokerLoadDataStore() {
        return loads;
    }

    @Override
    public LoadDataStore<TopBundlesLoadData> topBundleLoadDataStore() {
        return tops;
    }

    @Override
    public BrokerRegistry brokerRegistry() {
        return registry;
    }

    /** A PulsarService that was never constructed, so that nothing starts: TopKBundles asks it for settings only. */
    private static final class Configured extends PulsarService {
        private ServiceConfiguration conf;

        private Configured() {
            super(null);
        }

        static Configured with(ServiceConfiguration conf) throws ReflectiveOperationException {
            Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            Configured pulsar = (Configured) ((sun.misc.Unsafe) field.get(null)).allocateInstance(Configured.class);
            pulsar.conf = conf;
            return pulsar;
        }

        @Override
        public ServiceConfiguration getConfiguration() {
            return conf;
        }
    }

    /** The map behind a table view of a topic, without the topic. */
    private static final class Store<T> implements LoadDataStore<T> {
        private final Map<String, T> entries = new ConcurrentHashMap<>();

        @Override
        public Optional<T> get(String key) {
            return Optional.ofNullable(entries.get(key));
        }

        @Override
        public void forEach(BiConsumer<String, T> action) {
            entries.forEach(action);
        }

        @Override
        public Set<Map.Entry<String, T>> entrySet() {
            return entries.entrySet();
        }

        @Override
        public int size() {
            return entries.size();
        }

        @Override
        public CompletableFuture<Void> pushAsync(String key, T data) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<Void> removeAsync(String key) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void init() {
        }

        @Override
        public void start() {
        }

        @Override
        public void startProducer() {
        }

        @Override
        public void startTableView() {
        }

        @Override
        public void closeTableView() {
        }

        @Override
        public void close() {
        }
    }
}
