// A driver for kafkajs: fencepost test-client --driven -- node kafkajs_driver.js
// kafkajs brings messages by itself: they wait here, with heartbeats, until the kit polls. It has no listener of
// rebalances, and subscribes once. It tells of a failure by an event: the next poll fails, and the one after that runs it
// again.
const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");

const WAIT_MS = 50;
const kafka = new Kafka({ brokers: [process.env.FENCEPOST_BOOTSTRAP], clientId: "kafkajs", logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({
  groupId: process.env.FENCEPOST_GROUP,
  sessionTimeout: 6000,
  rebalanceTimeout: 6000,
  heartbeatInterval: 500,
  metadataMaxAge: 1000,
  maxWaitTimeInMs: 500,
});
const positions = new Map();
let isPolling = false;
let isSubscribed = false;
let hasCrashed = false;
let failure = "";

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const byTopic = (partitions) => partitions.map(([topic, partition]) => ({ topic, partitions: [partition] }));

async function eachMessage({ topic, partition, message, heartbeat }) {
  while (!isPolling) {
    await sleep(WAIT_MS);
    await heartbeat();
  }
  say({ records: [[topic, partition, Number(message.offset)]] });
  positions.set(`${topic}/${partition}`, { topic, partition, offset: String(Number(message.offset) + 1) });
}

async function subscribe(command) {
  if (isSubscribed || command.pattern) return "unsupported";
  isSubscribed = true;
  await consumer.connect();
  await consumer.subscribe({ topics: command.topics, fromBeginning: true });
  consumer.on(consumer.events.CRASH, ({ payload: { error, restart } }) => {
    hasCrashed = !restart;
    if (hasCrashed) failure = `${error.name}: ${error.message}`;
  });
  run();
  return "";
}

function run() {
  consumer.run({ autoCommitInterval: 1000, eachMessage }).catch((error) => (failure = String(error)));
}

async function poll(milliseconds) {
  if (hasCrashed && !failure) {
    hasCrashed = false;
    await consumer.connect();
    run();
  }
  isPolling = true;
  await sleep(milliseconds);
  isPolling = false;
  const told = failure;
  failure = "";
  return told;
}

// Carry out a command; what could not be done, "" for nothing.
async function obey(command) {
  switch (command.do) {
    case "subscribe":
      return subscribe(command);
    case "poll":
      return poll(command.ms);
    case "commit":
      await consumer.commitOffsets([...positions.values()]);
      return "";
    case "pause":
      consumer.pause(byTopic(command.partitions));
      return "";
    case "resume":
      consumer.resume(byTopic(command.partitions));
      return "";
    case "seek":
      consumer.seek({ topic: command.topic, partition: command.partition, offset: String(command.offset) });
      return "";
    case "close":
      await consumer.disconnect();
      return "";
    default:
      return "unsupported";
  }
}

async function main() {
  say({ ready: { callbacks: [], auto_commit: true, poll_interval: false } });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    let problem;
    try {
      problem = await obey(command);
    } catch (error) {
      problem = `${error.name}: ${error.message}`;
    }
    say(problem ? { error: problem, of: command.id } : { done: command.id });
    if (command.do === "close") break;
  }
  process.exit(0);
}

main();
