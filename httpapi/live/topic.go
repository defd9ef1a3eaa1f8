package live

import (
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Topic is something that viewers watch, or several of them.
type Topic uint16

// Topics.
const (
	Overview Topic = 1 << iota
	Queues
	Processes
	Scheduled
	Retries
	Dead
	Operations
	Jobs

	allTopics = Jobs<<1 - 1
)

var topicNames = []string{"overview", "queues", "processes", "scheduled", "retries", "dead", "operations", "jobs"}

func (t Topic) name() string {
	for i, name := range topicNames {
		if t == 1<<i {
			return name
		}
	}
	return ""
}

func (t Topic) split() []Topic {
	var all []Topic
	for i := range topicNames {
		if one := Topic(1 << i); t&one != 0 {
			all = append(all, one)
		}
	}
	return all
}

// readTopics reads names with commas between them; none means all.
func readTopics(in *problem.Request) (t Topic) {
	if in.Text("topics") == "" {
		return allTopics
	}
	for name := range strings.SplitSeq(in.Text("topics"), ",") {
		i := slices.Index(topicNames, name)
		if i < 0 {
			in.BadRequest("topic %q is not known: use %s", problem.Shorten(name), strings.Join(topicNames, ", "))
			return 0
		}
		t |= 1 << i
	}
	return t
}
