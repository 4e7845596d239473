// One consumer of kafkajs, until SIGTERM. Arguments: bootstrap address, group, topic.

const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, group, topic] = process.argv.slice(2);
const kafka = new Kafka({ brokers: [bootstrap], clientId: "kafkajs", logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({
  groupId: group,
  sessionTimeout: 6000,
  rebalanceTimeout: 6000,
  heartbeatInterval: 500,
  metadataMaxAge: 1000,
});

async function main() {
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({ autoCommitInterval: 1000, eachMessage: async () => {} });
}

process.on("SIGTERM", async () => {
  await consumer.disconnect();
  process.exit(0);
});
main();
