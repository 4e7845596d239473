// A driver for Apache Kafka's Java client: fencepost test-client --driven -- java -cp 'jars/*' JavaDriver.java [name=value...]

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class JavaDriver {
    static final ObjectMapper JSON = new ObjectMapper();
    static KafkaConsumer<byte[], byte[]> consumer;
    static JsonNode manner = JSON.createObjectNode();

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", System.getenv("FENCEPOST_BOOTSTRAP"));
        settings.put("group.id", System.getenv("FENCEPOST_GROUP"));
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("auto.offset.reset", "earliest");
        settings.put("group.protocol", "classic");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("max.poll.interval.ms", "6000");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("auto.commit.interval.ms", "1000");
        settings.put("request.timeout.ms", "10000");
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        consumer = new KafkaConsumer<>(settings);
        String limit = settings.getProperty("max.poll.records", "500");
        String commits = settings.getProperty("enable.auto.commit", "true");
        System.out.println("{\"ready\": {\"callbacks\": [\"assigned\", \"revoked\", \"lost\"], \"max_poll_records\": " + limit
                + ", \"auto_commit\": " + commits + ", \"auto_commit_ms\": " + settings.get("auto.commit.interval.ms")
                + ", \"timeouts\": {\"session\": " + settings.get("session.timeout.ms") + ", \"rebalance\": "
                + settings.get("max.poll.interval.ms") + ", \"request\": " + settings.get("request.timeout.ms") + "}}}");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode command = JSON.readTree(line);
            String problem = "";
            try {
                problem = obey(command);
            } catch (Exception error) {
                problem = error.toString();
            }
            int id = command.get("id").asInt();
            System.out.println(problem.isEmpty()
                    ? "{\"done\": " + id + positions(command) + "}"
                    : "{\"error\": " + JSON.writeValueAsString(problem) + ", \"of\": " + id + "}");
            if (command.get("do").asText().equals("close")) {
                return;
            }
        }
    }

    /** Carries out a command; what could not be done, "" for nothing. */
    static String obey(JsonNode command) throws Exception {
        switch (command.get("do").asText()) {
            case "subscribe" -> {
                if (command.has("pattern")) {
                    consumer.subscribe(Pattern.compile(command.get("pattern").asText()), new Listener());
                } else {
                    List<String> topics = new ArrayList<>();
                    command.get("topics").forEach(each -> topics.add(each.asText()));
                    consumer.subscribe(topics, new Listener());
                }
            }
            case "poll" -> {
                List<Object> records = new ArrayList<>();
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(command.get("ms").asLong()))) {
                    records.add(List.of(each.topic(), each.partition(), each.offset()));
                }
                if (!records.isEmpty()) {
                    System.out.println("{\"records\": " + JSON.writeValueAsString(records) + "}");
                }
            }
            case "commit" -> consumer.commitSync();
            case "commit_async" -> {
                int id = command.get("id").asInt();
                consumer.commitAsync((offsets, error) -> System.out.println(error == null
                        ? "{\"committed\": " + id + "}"
                        : "{\"committed\": " + id + ", \"error\": " + quote(error.toString()) + "}"));
            }
            case "rejoin" -> consumer.enforceRebalance();
            case "listener" -> manner = command;
            case "position" -> { }
            case "pause" -> consumer.pause(partitionsOf(command));
            case "resume" -> consumer.resume(partitionsOf(command));
            case "seek" -> consumer.seek(
                    new TopicPartition(command.get("topic").asText(), command.get("partition").asInt()),
                    command.get("offset").asLong());
            case "unsubscribe" -> consumer.unsubscribe();
            case "assign" -> consumer.assign(partitionsOf(command));
            case "close" -> consumer.close();
            default -> {
                return "unsupported";
            }
        }
        return "";
    }

    /** A text as JSON has it. */
    static String quote(String text) {
        return JSON.valueToTree(text).toString();
    }

    /** The positions that a command asks for, as a field of its result. */
    static String positions(JsonNode command) {
        if (!command.get("do").asText().equals("position")) {
            return "";
        }
        List<String> rows = new ArrayList<>();
        for (TopicPartition each : partitionsOf(command)) {
            rows.add("[\"" + each.topic() + "\", " + each.partition() + ", " + consumer.position(each) + "]");
        }
        return ", \"positions\": " + rows;
    }

    static List<TopicPartition> partitionsOf(JsonNode command) {
        List<TopicPartition> partitions = new ArrayList<>();
        command.get("partitions").forEach(each -> partitions.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt())));
        return partitions;
    }

    /** Says every callback. */
    static class Listener implements ConsumerRebalanceListener {
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", partitions);
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked", partitions);
        }

        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            if (manner.path("lost").asBoolean(true)) {
                say("lost", partitions);
            } else {
                ConsumerRebalanceListener.super.onPartitionsLost(partitions);
            }
        }

        /** Says a callback, and does in it what the kit has asked for. */
        void say(String event, Collection<TopicPartition> partitions) {
            boolean raises = has("raises", event);
            boolean commits = has("commits", event);
            long takes = event.equals("revoked") ? manner.path("takes_ms").asLong(0) : 0;
            System.out.println("{\"event\": \"" + event + "\", \"partitions\": " + pairs(partitions) + ", \"assignment\": "
                    + pairs(consumer.assignment()) + ", \"raises\": " + raises + ", \"commits\": " + commits
                    + ", \"takes_ms\": " + takes + "}");
            pause(takes);
            if (commits) {
                consumer.commitSync();
            }
            if (raises) {
                throw new IllegalStateException("the kit has asked for it");
            }
        }

        static void pause(long milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }

        static boolean has(String field, String event) {
            for (JsonNode each : manner.path(field)) {
                if (each.asText().equals(event)) {
                    return true;
                }
            }
            return false;
        }

        static String pairs(Collection<TopicPartition> partitions) {
            List<String> pairs = new ArrayList<>();
            partitions.forEach(each -> pairs.add("[\"" + each.topic() + "\", " + each.partition() + "]"));
            return pairs.toString();
        }
    }
}
