// kfake on a port of 127.0.0.1, with bounds of the coordinator that a test can reach: main PORT
//
// This module of kfake, the newest published one, calls EachSupportedFeature and EachFinalizedFeature of kversion.
// franz-go has them from 1.22.0 on; the 1.21.7 that kfake asks for does not, so go.mod names 1.22.2, the newest one.
package main

import (
	"log"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err == nil {
		_, err = kfake.NewCluster(kfake.Ports(port), kfake.BrokerConfigs(map[string]string{
			"group.min.session.timeout.ms": "500", "group.max.session.timeout.ms": "60000", "group.max.size": "6",
			"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "20000",
		}))
	}
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
