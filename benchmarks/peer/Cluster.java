import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/**
 * A cluster handed over as a list of names and columns of doubles, in the objects that Pulsar's leader keeps.
 *
 * <p>Equal names are one String here; in a leader, which reads its reports from JSON, they are several.
 */
final class Cluster {
    final LoadData loadData = new LoadData();

    /** What the other side computes from its own objects: sums, one by one in the order of the file. */
    final double[] digest = new double[14];

    static Cluster read(Path names, Path columns, int brokers, ServiceConfiguration conf) throws IOException {
        return new Cluster(Files.readAllLines(names), ByteBuffer.wrap(Files.readAllBytes(columns)).asDoubleBuffer(),
                brokers, conf);
    }

    private Cluster(List<String> names, DoubleBuffer columns, int brokers, ServiceConfiguration conf) {
        List<String> bundles = names.subList(brokers, names.size());
        Matrix used = new Matrix(columns, 5, brokers);
        Matrix limit = new Matrix(columns, 5, brokers);
        Matrix owner = new Matrix(columns, 1, bundles.size());
        Matrix recent = new Matrix(columns, 4, bundles.size());
        Matrix lasting = new Matrix(columns, 4, bundles.size());
        Matrix counts = new Matrix(columns, 4, bundles.size());
        List<Map<String, NamespaceBundleStats>> owned = new ArrayList<>();
        names.subList(0, brokers).forEach(name -> owned.add(new LinkedHashMap<>()));
        for (int i = 0; i < bundles.size(); i++) {
            BundleData data = new BundleData(10, 1000);
            fill(data.getShortTermData(), recent, i);
            fill(data.getLongTermData(), lasting, i);
            data.setTopics((int) counts.at(0, i));
            loadData.getBundleData().put(bundles.get(i), data);
            owned.get((int) owner.at(0, i)).put(bundles.get(i), stats(recent, counts, i));
        }
        for (int i = 0; i < brokers; i++) {
            String name = names.get(i);
            LocalBrokerData local = new LocalBrokerData("http://" + name, null, "pulsar://" + name, null);
            local.update(system(used, limit, i), owned.get(i));
            local.cleanDeltas();
            loadData.getBrokerData().put(name, new BrokerData(local));
        }
        bundles.forEach(name -> count(loadData.getBundleData().get(name)));
        names.subList(0, brokers).forEach(name -> count(loadData.getBrokerData().get(name).getLocalData(), conf));
    }

    private static void fill(TimeAverageMessageData data, Matrix traffic, int bundle) {
        data.setMsgRateIn(traffic.at(0, bundle));
        data.setMsgRateOut(traffic.at(1, bundle));
        data.setMsgThroughputIn(traffic.at(2, bundle));
        data.setMsgThroughputOut(traffic.at(3, bundle));
        data.setNumSamples(data.getMaxSamples());
    }

    private static NamespaceBundleStats stats(Matrix traffic, Matrix counts, int bundle) {
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgRateIn = traffic.at(0, bundle);
        stats.msgRateOut = traffic.at(1, bundle);
        stats.msgThroughputIn = traffic.at(2, bundle);
        stats.msgThroughputOut = traffic.at(3, bundle);
        stats.topics = (long) counts.at(0, bundle);
        stats.consumerCount = (int) counts.at(1, bundle);
        stats.producerCount = (int) counts.at(2, bundle);
        stats.cacheSize = (long) counts.at(3, bundle);
        return stats;
    }

    private static SystemResourceUsage system(Matrix used, Matrix limit, int broker) {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(new ResourceUsage(used.at(0, broker), limit.at(0, broker)));
        usage.setMemory(new ResourceUsage(used.at(1, broker), limit.at(1, broker)));
        usage.setDirectMemory(new ResourceUsage(used.at(2, broker), limit.at(2, broker)));
        usage.setBandwidthIn(new ResourceUsage(used.at(3, broker), limit.at(3, broker)));
        usage.setBandwidthOut(new ResourceUsage(used.at(4, broker), limit.at(4, broker)));
        return usage;
    }

    private void count(BundleData data) {
        count(0, data.getShortTermData());
        count(4, data.getLongTermData());
        digest[8] += data.getTopics();
    }

    private void count(int at, TimeAverageMessageData data) {
        digest[at] += data.getMsgRateIn();
        digest[at + 1] += data.getMsgRateOut();
        digest[at + 2] += data.getMsgThroughputIn();
        digest[at + 3] += data.getMsgThroughputOut();
    }

    private void count(LocalBrokerData local, ServiceConfiguration conf) {
        digest[9] += local.getMsgRateIn();
        digest[10] += local.getMsgRateOut();
        digest[11] += local.getMsgThroughputIn();
        digest[12] += local.getMsgThroughputOut();
        digest[13] += local.getMaxResourceUsageWithWeight(
                conf.getLoadBalancerCPUResourceWeight(), conf.getLoadBalancerDirectMemoryResourceWeight(),
                conf.getLoadBalancerBandwidthInResourceWeight(), conf.getLoadBalancerBandwidthOutResourceWeight());
    }

    /** The next so many rows of the columns. */
    private static final class Matrix {
        private final DoubleBuffer values;
        private final int columns;

        Matrix(DoubleBuffer from, int rows, int columns) {
            this.values = from.slice(from.position(), rows * columns);
            this.columns = columns;
            from.position(from.position() + rows * columns);
        }

        double at(int row, int column) {
            return values.get(row * columns + column);
        }
    }
}
