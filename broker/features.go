package broker

import (
	"cmp"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names of brokers, as they call themselves.
const (
	RabbitMQ = "RabbitMQ"
	LavinMQ  = "LavinMQ"
)

// Features is what differs between brokers and matters to Millrace. No other code checks a
// product's name.
type Features struct {
	Product string
	Version string
	Ctl     string // the shell program that administers the broker

	DefaultExchange string // the name of the default exchange in permissions

	ExclusiveLock          bool  // the leader's lock is an exclusive queue, not a quorum queue
	DelaysNodeLoss         bool  // keeps a single active consumer until its node is lost for long
	StreamOffsetBase       int64 // offset of the first record of a new stream
	StreamOffsetsDrift     bool  // offsets are wrong after retention has overtaken a reader
	StreamDepth            bool  // a passive declare of a stream returns its number of records
	ConsumerTimeoutPolicy  bool  // policies may have consumer-timeout
	RejectPublishDLXDrops  bool  // reject-publish-dlx drops the head instead of refusing
	PausesQueues           bool  // a queue can be paused for all consumers
	OneNodeServes          bool  // one node has all queues; the others pass requests on to it
	DeadLettersToStream    bool  // streams receive dead letters
	Plugins                bool  // management API and native stream protocol must be enabled
	TaglessAreUnknown      bool  // a user without tags gets the answer for a wrong password
	NativeStreamProtocol   bool  // may have a listener of the native stream protocol
	ReadersDieOnBadRecords bool  // some records end the connection of any AMQP 0-9-1 reader
	RefusalsNameArguments  bool  // a refused declaration names the argument that differs
	RefusalsOverflow       bool  // refusing a long name that is not ASCII ends the connection
	ASCIINamesOnly         bool  // names of queues and exchanges are printable ASCII
	StreamSegmentPolicy    bool  // policies set the size of a stream's segments
	NoPartitionHandling    bool  // partitions need no setting: a majority decides
	QuorumQueues           bool  // queues can have replicas on several nodes
	QuorumPriorities       bool  // quorum queues deliver jobs of a higher priority first
	HeadTimestamps         bool  // the management API reports the age of a queue's oldest message
	QueueMemory            bool  // the management API reports the memory of a queue
	BodyBytes              bool  // a queue's size is that of its bodies, not of all that it keeps
	LargeStreamFrames      bool  // a native publish may be larger than a megabyte
	MessageLimit           int64 // default limit of a message's body, in bytes
	ClosesOnOddProperties  bool  // some properties of a message end the connection: see publishing
	HoldsSmallFramesBack   bool  // leaves Nagle's algorithm on by default
	TearsMessages          bool  // killed in a publish, it delivers what it had written of it
}

// FeaturesOn returns the features of the broker at the other end of a connection.
func FeaturesOn(c *amqp.Connection) Features {
	product, _ := c.Properties["product"].(string)
	version, _ := c.Properties["version"].(string)
	return FeaturesOf(product, version)
}

// FeaturesOf returns the features of a product and version. It takes an unknown product for a
// recent RabbitMQ.
func FeaturesOf(product, version string) Features {
	f := Features{Product: product, Version: version, MessageLimit: 128 << 20}
	if product == LavinMQ {
		f.Ctl = "lavinmqctl"
		f.ExclusiveLock = true
		f.TaglessAreUnknown = true
		f.StreamOffsetBase = 1
		f.StreamOffsetsDrift = true
		f.StreamDepth = true
		f.RejectPublishDLXDrops = true
		f.PausesQueues = true
		f.OneNodeServes = true
		f.DeadLettersToStream = true
		f.ASCIINamesOnly = true
		f.HoldsSmallFramesBack = true
		f.TearsMessages = true
		return f
	}
	f.Ctl = "rabbitmqctl"
	f.DefaultExchange = "amq.default"
	f.Plugins = true
	f.NativeStreamProtocol = true
	f.RefusalsNameArguments = true
	f.StreamSegmentPolicy = true
	f.HeadTimestamps = true
	f.BodyBytes = true
	f.QueueMemory = true
	f.ReadersDieOnBadRecords = true
	f.ConsumerTimeoutPolicy = atLeast(version, 3, 12)
	f.DeadLettersToStream = atLeast(version, 4, 0)
	f.DelaysNodeLoss = atLeast(version, 4, 3)
	f.LargeStreamFrames = !atLeast(version, 4, 0)
	f.ClosesOnOddProperties = atLeast(version, 4, 0)
	f.RefusalsOverflow = atLeast(version, 4, 0)
	f.QuorumQueues = true
	f.NoPartitionHandling = atLeast(version, 4, 3)
	f.QuorumPriorities = atLeast(version, 4, 3)
	if atLeast(version, 4, 0) {
		f.MessageLimit = 16 << 20
	}
	return f
}

func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return n
	}
	return number(0) > major || number(0) == major && number(1) >= minor
}

func describe(product, version, node, cluster string) string {
	parts := []string{strings.TrimSpace(cmp.Or(product, "unknown") + " " + version)}
	if node != "" {
		parts = append(parts, "node "+node)
	}
	if cluster != "" {
		parts = append(parts, "cluster "+cluster)
	}
	return strings.Join(parts, ", ")
}
