import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs Kafka's own assignors on groups that come as lines on standard input.
 *
 * A line is `assignor;topics;members`, with fields that agreement.py explains. For each one comes back a line
 * `assignment;members with their partitions`, or `error;class`.
 */
public final class KafkaAssignors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(";", -1)));
            System.out.flush();
        }
    }

    private static String answer(String[] fields) {
        try {
            GroupSubscription group = new GroupSubscription(members(fields[2]));
            return "assignment;" + written(assignor(fields[0]).assign(cluster(fields[1]), group).groupAssignment());
        } catch (RuntimeException error) {
            return "error;" + error.getClass().getSimpleName();
        }
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    /** Topics are `name:count` or `name:racks/racks`, racks separated by `+`. */
    private static Cluster cluster(String text) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : items(text, " ")) {
            String name = topic.substring(0, topic.indexOf(':'));
            String shape = topic.substring(topic.indexOf(':') + 1);
            boolean hasRacks = !shape.matches("\\d+");
            String[] racks = hasRacks ? shape.split("/", -1) : new String[Integer.parseInt(shape)];
            for (int number = 0; number < racks.length; number++) {
                Node[] replicas = (hasRacks ? items(racks[number], "+") : List.<String>of()).stream()
                    .map(rack -> nodes.computeIfAbsent(rack, each -> new Node(nodes.size(), "host", 1, each)))
                    .toArray(Node[]::new);
                partitions.add(new PartitionInfo(name, number, Node.noNode(), replicas, replicas));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    /** Members are `id|instance|rack|topics|user data|owned|generation`, all but the id perhaps empty. */
    private static Map<String, Subscription> members(String text) {
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (String member : items(text, " ")) {
            String[] fields = member.split("\\|", -1);
            ByteBuffer userData = fields[4].equals("") ? null : ByteBuffer.wrap(bytes(fields[4]));
            int generation = Integer.parseInt(fields[6]);
            Optional<String> rack = fields[2].isEmpty() ? Optional.empty() : Optional.of(fields[2]);
            Subscription subscription = new Subscription(
                items(fields[3], ","), userData, partitions(fields[5]), generation, rack);
            if (!fields[1].isEmpty())
                subscription.setGroupInstanceId(Optional.of(fields[1]));
            members.put(fields[0], subscription);
        }
        return members;
    }

    private static List<TopicPartition> partitions(String text) {
        return items(text, ",").stream().map(item -> {
            int dash = item.lastIndexOf('-');
            return new TopicPartition(item.substring(0, dash), Integer.parseInt(item.substring(dash + 1)));
        }).collect(Collectors.toList());
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int each = 0; each < bytes.length; each++)
            bytes[each] = (byte) Integer.parseInt(hex.substring(2 * each, 2 * each + 2), 16);
        return bytes;
    }

    private static List<String> items(String text, String separator) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split(java.util.regex.Pattern.quote(separator)));
    }

    private static String written(Map<String, Assignment> assignments) {
        return assignments.entrySet().stream()
            .map(entry -> entry.getKey() + "|" + entry.getValue().partitions().stream()
                .map(each -> each.topic() + "-" + each.partition())
                .collect(Collectors.joining(",")))
            .collect(Collectors.joining(" "));
    }
}
