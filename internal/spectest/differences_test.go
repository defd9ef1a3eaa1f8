package spectest

import "github.com/millrace-jobs/millrace/internal/brokertest"

// The changes without which the specification's code does not run, and the reasons.
// docs/wire-format/specification.md has the same list.

// host replaces the name of the broker.
func host(v *brokertest.Vhost, literal string) difference {
	quote := literal[:1]
	return difference{"host", literal, quote + v.AMQPURL() + quote}
}

func imports(text string) difference { return difference{"missing imports", "", text + "\n"} }

var (
	// Section 3.3.
	supplied = imports("from supplied import execute_job_class, publish_to_dead_queue")

	// Section 3.5.
	hurry     = difference{"a test waits no ten seconds", "sleep 10", "sleep 1"}
	bodyFirst = difference{"bunny's basic_publish takes the body first", "basic_publish('', 'heartbeats', heartbeat.to_json)", "basic_publish(heartbeat.to_json, '', 'heartbeats')"}

	// Section 4.2, JavaScript: await is only allowed in functions.
	insideAsync = []difference{
		{"JavaScript's usage lines inside an async function", "// Usage\n", "module.exports.usage = async () => {\n"},
		{"JavaScript's usage lines inside an async function", "Date.now() / 1000 + 3600);\n", "Date.now() / 1000 + 3600);\nreturn client;\n};\n"},
	}

	// Section 4.3.
	rubyQueues = difference{"queue names", "['critical', 'default']", "['queue.critical', 'queue.default']"}
	rubyJobs   = difference{"jobs of ours", "worker.start\n", "require_relative 'jobs'\nregister_jobs(worker)\nworker.start\n"}
	priority   = difference{"the queue has the argument that section 2.3 gives it", "channel.queue(queue_name, durable: true)",
		"channel.queue(queue_name, durable: true, arguments: { 'x-max-priority' => 10 })"}

	// Section 4.4, and 3.6.
	goImport   = difference{"the library's maintained fork", `"github.com/streadway/amqp"`, `amqp "github.com/rabbitmq/amqp091-go"`}
	goQueues   = difference{"queue names", `[]string{"critical", "default"}`, `[]string{"queue.critical", "queue.default"}`}
	goHost     = difference{"host", `"amqp://localhost"`, `os.Getenv("AMQP_URL")`}
	goHostname = difference{"os.Hostname has two results: it does not compile", "os.Hostname(), os.Getpid()", "hostname(), os.Getpid()"}
	goJobs     = difference{"jobs of ours", `log.Println("Worker started")`, "registerJobs(worker)\n" + `log.Println("Worker started")`}
	goPackage  = imports("package main\n\n" + `import ("encoding/json"; "fmt"; "os"; "time"; amqp "github.com/rabbitmq/amqp091-go")` + "\n")

	// Section 8.1.
	rubyImports = imports("require 'json'\nrequire 'securerandom'")
	reserved    = difference{"retry is a reserved word of Ruby: it does not parse", "retry: retry,", "retry: binding.local_variable_get(:retry),"}
	exchange    = difference{"the default exchange leads to queues named without queue.", "channel.default_exchange.publish(",
		"channel.direct('jobs.direct', durable: true).publish("}
)
