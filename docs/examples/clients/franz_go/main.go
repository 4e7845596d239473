// A driver for franz-go: fencepost test-client --driven -- ./driver [strategy], where the strategy is range, roundrobin,
// sticky or cooperative-sticky. With `alone` behind it the program polls by itself until SIGTERM.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type command struct {
	ID         int      `json:"id"`
	Do         string   `json:"do"`
	Ms         int      `json:"ms"`
	Topics     []string `json:"topics"`
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Offset     int64    `json:"offset"`
	Partitions [][]any  `json:"partitions"`
}

type place struct {
	topic     string
	partition int32
}

const limit = 500

var (
	client   *kgo.Client
	strategy = "cooperative-sticky"
	output   = io.Writer(os.Stdout)
	writing  sync.Mutex
	returned sync.Map // the partitions of which polls have returned records since they were assigned
)

// say writes a message for the kit, before the client goes on.
func say(message map[string]any) {
	writing.Lock()
	defer writing.Unlock()
	json.NewEncoder(output).Encode(message)
}

func balancer() kgo.GroupBalancer {
	switch strategy {
	case "range":
		return kgo.RangeBalancer()
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "sticky":
		return kgo.StickyBalancer()
	}
	return kgo.CooperativeStickyBalancer()
}

// listener says a callback.
func listener(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		pairs := [][]any{}
		for topic, numbers := range partitions {
			for _, number := range numbers {
				pairs = append(pairs, []any{topic, number})
				returned.Delete(place{topic, number})
			}
		}
		say(map[string]any{"event": event, "partitions": pairs})
	}
}

// revoke says the callback and commits: it takes the place of the library's own, which commits with auto-commit.
func revoke(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
	listener("revoked")(ctx, client, partitions)
	client.CommitUncommittedOffsets(ctx)
}

func subscribe(bootstrap, group string, topics ...string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second),
		kgo.RebalanceTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.AutoCommitInterval(time.Second),
		kgo.OnPartitionsAssigned(listener("assigned")),
		kgo.OnPartitionsRevoked(revoke),
		kgo.OnPartitionsLost(listener("lost")),
	)
}

func partitionsOf(given command) map[string][]int32 {
	found := map[string][]int32{}
	for _, pair := range given.Partitions {
		topic := pair[0].(string)
		found[topic] = append(found[topic], int32(pair[1].(float64)))
	}
	return found
}

func poll(milliseconds int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(milliseconds)*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(ctx, limit)
	rows := [][]any{}
	fetches.EachRecord(func(each *kgo.Record) {
		rows = append(rows, []any{each.Topic, each.Partition, each.Offset})
		returned.Store(place{each.Topic, each.Partition}, true)
	})
	if len(rows) > 0 {
		say(map[string]any{"records": rows})
	}
	var failed error
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			failed = err
		}
	})
	return failed
}

var (
	errUnsupported = errors.New("unsupported")
	errSkipped     = errors.New("SetOffsets skips a partition that no poll has returned records of")
)

// obey carries out a command.
func obey(given command) error {
	if given.Do == "subscribe" {
		if client != nil {
			return errUnsupported
		}
		var err error
		client, err = subscribe(os.Getenv("FENCEPOST_BOOTSTRAP"), os.Getenv("FENCEPOST_GROUP"), given.Topics...)
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch given.Do {
	case "poll":
		return poll(given.Ms)
	case "commit":
		return client.CommitUncommittedOffsets(ctx)
	case "pause":
		client.PauseFetchPartitions(partitionsOf(given))
	case "resume":
		client.ResumeFetchPartitions(partitionsOf(given))
	case "seek":
		if _, is := returned.Load(place{given.Topic, given.Partition}); !is {
			return errSkipped
		}
		client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
			given.Topic: {given.Partition: {Epoch: -1, Offset: given.Offset}},
		})
	case "rejoin":
		client.ForceRebalance()
	case "close":
		client.Close()
	default:
		return errUnsupported
	}
	return nil
}

func drive() {
	say(map[string]any{"ready": map[string]any{
		"callbacks":        []string{"assigned", "revoked", "lost"},
		"max_poll_records": limit,
		"auto_commit":      true,
		"auto_commit_ms":   1_000,
		"poll_interval":    false,
		"timeouts":         map[string]int{"session": 6_000, "rebalance": 6_000},
	}})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var given command
		if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := obey(given); err != nil {
			say(map[string]any{"error": err.Error(), "of": given.ID})
		} else {
			say(map[string]any{"done": given.ID})
		}
		if given.Do == "close" {
			break
		}
	}
}

// consume polls until SIGTERM.
func consume(bootstrap, group, topic string) {
	output = io.Discard
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	found, err := subscribe(bootstrap, group, topic)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for ctx.Err() == nil {
		found.PollRecords(ctx, limit)
	}
	found.Close()
}

func main() {
	if len(os.Args) > 1 {
		strategy = os.Args[1]
	}
	if len(os.Args) > 2 && os.Args[2] == "alone" {
		consume(os.Getenv("FENCEPOST_BOOTSTRAP"), os.Getenv("FENCEPOST_GROUP"), os.Getenv("FENCEPOST_TOPIC"))
		return
	}
	drive()
}
