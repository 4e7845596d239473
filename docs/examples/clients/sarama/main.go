// A driver for sarama: fencepost test-client --driven -- ./driver
// sarama pushes: it calls the program on goroutines of its own, one for each partition, whenever it has something. Its
// messages wait here until the kit polls. It assigns in Setup and revokes in Cleanup, at any time, as `callbacks_anywhere`
// says, and tells of no losses. It needs no polls to stay in its group.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

type command struct {
	ID         int      `json:"id"`
	Do         string   `json:"do"`
	Ms         int      `json:"ms"`
	Topics     []string `json:"topics"`
	Pattern    string   `json:"pattern"`
	Partitions [][]any  `json:"partitions"`
}

const gateMs = 20

var (
	group       sarama.ConsumerGroup
	session     atomic.Pointer[sarama.ConsumerGroupSession]
	isPolling   atomic.Bool
	failure     atomic.Value // what the client has failed with since the last poll, "" for nothing
	resubscribe context.CancelFunc
	consuming   sync.WaitGroup
	writing     sync.Mutex

	errUnsupported = errors.New("unsupported")
)

// say writes a message for the kit, before the client goes on.
func say(message map[string]any) {
	writing.Lock()
	defer writing.Unlock()
	json.NewEncoder(os.Stdout).Encode(message)
}

// handler is what sarama calls.
type handler struct{}

func tell(event string, claims map[string][]int32) {
	pairs := [][]any{}
	for topic, numbers := range claims {
		for _, number := range numbers {
			pairs = append(pairs, []any{topic, number})
		}
	}
	say(map[string]any{"event": event, "partitions": pairs})
}

func (handler) Setup(given sarama.ConsumerGroupSession) error {
	session.Store(&given)
	tell("assigned", given.Claims())
	return nil
}

func (handler) Cleanup(given sarama.ConsumerGroupSession) error {
	tell("revoked", given.Claims())
	return nil
}

func (handler) ConsumeClaim(given sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		for !isPolling.Load() {
			select {
			case <-given.Context().Done():
				return nil
			case <-time.After(gateMs * time.Millisecond):
			}
		}
		if given.Context().Err() != nil {
			return nil
		}
		say(map[string]any{"records": [][]any{{message.Topic, message.Partition, message.Offset}}})
		given.MarkMessage(message, "")
	}
	return nil
}

func configure() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Rebalance.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = time.Second
	config.Consumer.Return.Errors = true
	config.Metadata.RefreshFrequency = time.Second
	return config
}

func connect() (err error) {
	group, err = sarama.NewConsumerGroup([]string{os.Getenv("FENCEPOST_BOOTSTRAP")}, os.Getenv("FENCEPOST_GROUP"), configure())
	if err == nil {
		go func() {
			for failed := range group.Errors() {
				failure.Store(failed.Error())
			}
		}()
	}
	return err
}

// consume has sessions of these topics, one after the other, until it is ended.
func consume(ctx context.Context, topics []string) {
	defer consuming.Done()
	for ctx.Err() == nil {
		err := group.Consume(ctx, topics, handler{})
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return
		}
		if err != nil {
			failure.Store(err.Error())
		}
	}
}

func subscribe(topics []string) error {
	if group == nil {
		if err := connect(); err != nil {
			return err
		}
	} else {
		resubscribe()
		consuming.Wait()
	}
	var ctx context.Context
	ctx, resubscribe = context.WithCancel(context.Background())
	consuming.Add(1)
	go consume(ctx, topics)
	return nil
}

func poll(milliseconds int) error {
	isPolling.Store(true)
	time.Sleep(time.Duration(milliseconds) * time.Millisecond)
	isPolling.Store(false)
	if failed, _ := failure.Swap("").(string); failed != "" {
		return errors.New(failed)
	}
	return nil
}

func partitionsOf(given command) map[string][]int32 {
	found := map[string][]int32{}
	for _, pair := range given.Partitions {
		topic := pair[0].(string)
		found[topic] = append(found[topic], int32(pair[1].(float64)))
	}
	return found
}

// obey carries out a command.
func obey(given command) error {
	switch given.Do {
	case "subscribe":
		if given.Pattern != "" {
			return errUnsupported
		}
		return subscribe(given.Topics)
	case "poll":
		return poll(given.Ms)
	case "commit":
		if current := session.Load(); current != nil {
			(*current).Commit()
		}
	case "pause":
		group.Pause(partitionsOf(given))
	case "resume":
		group.Resume(partitionsOf(given))
	case "close":
		if group != nil {
			return group.Close()
		}
	default:
		return errUnsupported
	}
	return nil
}

func main() {
	failure.Store("")
	say(map[string]any{"ready": map[string]any{
		"callbacks": []string{"assigned", "revoked"}, "callbacks_anywhere": true, "poll_interval": false,
		"auto_commit": true, "auto_commit_ms": 1000,
		"timeouts": map[string]any{"session": 6000, "rebalance": 6000, "request": 30000},
	}})
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var given command
		if json.Unmarshal(commands.Bytes(), &given) != nil {
			os.Exit(1)
		}
		if err := obey(given); err != nil {
			say(map[string]any{"error": err.Error(), "of": given.ID})
		} else {
			say(map[string]any{"done": given.ID})
		}
		if given.Do == "close" {
			return
		}
	}
}
