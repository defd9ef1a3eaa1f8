package main

// mistake describes a client that is wrong on purpose. says is what the scenario for this mistake
// must say. A failure for another reason proves nothing.
type mistake struct {
	name, scenario, says string
	also                 string // another scenario that must say the same, or empty

	// lang is the client that is copied. In the copy, file has the text to in place of the text
	// from. Without lang, the client is the small worker in wrong/.
	lang, file, from, to string
}

var mistakes = []mistake{
	{name: "acks-first", scenario: "confirm", says: "the broker still has both jobs"},
	{name: "re-encodes", scenario: "hostile", says: "do not come back byte for byte"},
	{name: "forgets", scenario: "stop", says: "both are back"},

	{
		name: "refuses returned jobs", scenario: "producer", says: "a job that the broker returned is published again",
		lang: "python", file: "millrace_jobs/_line.py",
		from: `pause = pauses.next()`,
		to:   `raise`,
	},
	{
		name: "heartbeats once", scenario: "reconnect", says: "heartbeats come after a reconnect",
		lang: "python", file: "millrace_jobs/_serve.py",
		from: `parts.append(asyncio.ensure_future(heartbeat.run()))`,
		to:   `parts += [asyncio.ensure_future(heartbeat.run())] if vars(worker).setdefault("_beating", session) is session else []`,
	},
	{
		name: "control once", scenario: "reconnect", says: "commands reach the worker after a reconnect",
		lang: "python", file: "millrace_jobs/_control.py",
		from: `await binding.bind(queue, _wire.CONTROL)`,
		to:   `worker._session or await binding.bind(queue, _wire.CONTROL)`,
	},
	{
		name: "control once", scenario: "reconnect", says: "commands reach the worker after a reconnect",
		lang: "ruby", file: "millrace/control.rb",
		from: `binding.bind(queue, Wire::CONTROL)`,
		to:   `binding.bind(queue, Wire::CONTROL) unless session.worker.session`,
	},
	{ // LavinMQ pauses a queue itself, so there only the queue that was resumed shows it
		name: "pauses once", scenario: "reconnect", says: " while the worker was away is ",
		lang: "python", file: "millrace_jobs/_session.py",
		from: `await ask_state(worker, connection, self.claims)`,
		to:   `worker._session or await ask_state(worker, connection, self.claims)`,
	},
	{
		name: "pauses for ever", scenario: "reconnect", says: "a queue that was resumed while the worker was away is served",
		lang: "ruby", file: "millrace/control.rb",
		from: `worker.paused = Array(answer['paused']).grep(String)`,
		to:   `worker.paused |= Array(answer['paused']).grep(String)`,
	},
	{
		name: "traces once", scenario: "reconnect", says: "a handler gets the job's traceparent, after a reconnect",
		lang: "python", file: "millrace_jobs/_runner.py",
		from: `task.queue, properties.headers, message_id`,
		to:   `task.queue, properties.headers if vars(worker).setdefault("_traced", self) is self else None, message_id`,
	},
	{
		name: "traces retries once", scenario: "reconnect", says: "a retry has the job's traceparent, after a reconnect",
		lang: "ruby", file: "millrace/settler.rb",
		from: `headers: Wire.trace_headers(job.traceparent)`,
		to:   `headers: (@traced ||= task.attachment.session).equal?(task.attachment.session) ? Wire.trace_headers(job.traceparent) : {}`,
	},
	{
		name: "obeys commands to others", scenario: "control", says: "the command was for another worker",
		lang: "python", file: "millrace_jobs/_control.py",
		from: `if command.get("identity") not in ("*", worker.identity):`,
		to:   `if not command.get("identity"):`,
	},
	{
		name: "obeys commands to others", scenario: "control", says: "the command was for another worker",
		lang: "ruby", file: "millrace/control.rb",
		from: `return unless ['*', worker.identity].include?(command['identity'])`,
		to:   `return unless command['identity']`,
	},
	{
		name: "says nothing of its work", scenario: "heartbeats", says: `expected: "raw-Wait-long"`,
		lang: "python", file: "millrace_jobs/_heartbeat.py",
		from: `work[:SHOWN_WORK]`,
		to:   `work[:0]`,
	},
	{
		name: "says nothing of its work", scenario: "heartbeats", says: `expected: "raw-Wait-long"`,
		lang: "ruby", file: "millrace/heartbeat.rb",
		from: `.first(SHOWN_WORK)`,
		to:   `.first(0)`,
	},
	{
		name: "no backtraces by default", scenario: "outcomes", says: "20 lines of a backtrace are kept by default",
		lang: "python", file: "millrace_jobs/_record.py",
		from: `if job.backtrace:`,
		to:   `if 0 < job.backtrace < 20:`,
	},
	{
		name: "no backtraces by default", scenario: "outcomes", says: "20 lines of a backtrace are kept by default",
		lang: "ruby", file: "millrace/record.rb",
		from: `job.backtrace.positive?`,
		to:   `job.backtrace.between?(1, 19)`,
	},
	{
		name: "untraced retries", scenario: "retries", says: "a retry has the job's traceparent",
		lang: "python", file: "millrace_jobs/_settle.py",
		from: `_wire.trace_headers(job.traceparent)`,
		to:   `_wire.trace_headers(job.traceparent) if outcome.stream == _wire.DEAD else {}`,
	},
	{
		name: "untraced retries", scenario: "retries", says: "a retry has the job's traceparent",
		lang: "ruby", file: "millrace/settler.rb",
		from: `headers: Wire.trace_headers(job.traceparent)`,
		to:   `headers: outcome.stream == Wire::DEAD ? Wire.trace_headers(job.traceparent) : {}`,
	},
	{
		name: "untraced deaths", scenario: "retries", says: "a dead job has the job's traceparent",
		lang: "ruby", file: "millrace/settler.rb",
		from: `headers: Wire.trace_headers(job.traceparent)`,
		to:   `headers: outcome.stream == Wire::DEAD ? {} : Wire.trace_headers(job.traceparent)`,
	},
	{
		name: "acks first", scenario: "confirm", says: "the broker still has both jobs",
		lang: "ruby", file: "millrace/settler.rb",
		from: `if publish(task, job, outcome) && report_end(task, outcome)`,
		to:   `answer(task, job, outcome, ended) || publish(task, job, outcome)` + "\n" + `      if false`,
	},
	{
		name: "no heartbeat of AMQP", scenario: "silent", says: "worker and producer notice that the network is silent",
		lang: "python", file: "millrace_jobs/_amqp.py",
		from: `parameters.heartbeat = min(parameters.heartbeat or 10, 10)`,
		to:   `parameters.heartbeat = 0`,
	},
	{
		name: "trusts any certificate", scenario: "tls", says: "a producer refuses a certificate",
		lang: "python", file: "millrace_jobs/_amqp.py",
		from: `parameters.ssl_options.server_hostname = parameters.host`,
		to: `parameters.ssl_options.server_hostname = parameters.host
            parameters.ssl_options.context.check_hostname = False
            parameters.ssl_options.context.verify_mode = 0`,
	},
	{
		name: "trusts any certificate", scenario: "tls", says: "a producer refuses a certificate",
		lang: "ruby", file: "millrace/connection.rb",
		from: `settings[:verify_peer] = true`,
		to:   `settings[:verify_peer] = false`,
	},
	{
		name: "waits for no confirm", scenario: "blocked", says: "a publish that the broker does not confirm fails",
		lang: "python", file: "millrace_jobs/_publisher.py",
		from: `        await future`,
		to:   `        future.add_done_callback(lambda done: done.cancelled() or done.exception())`,
	},
	{
		name: "ends what it hands back", scenario: "stop", says: "a job that was handed back has not ended",
		lang: "python", file: "millrace_jobs/_settle.py",
		from: `if task.suspect and job and self.ledger and not outcome.requeue:`,
		to:   `if task.suspect and job and self.ledger:`,
	},
	{
		name: "ends what it hands back", scenario: "stop", says: "a job that was handed back has not ended",
		lang: "ruby", file: "millrace/settler.rb",
		from: `return unless task.suspect && job && outcome.answer != :requeue`,
		to:   `return unless task.suspect && job`,
	},
	{
		name: "closes immediately", scenario: "burst", says: "no job that ran comes back to its queue",
		lang: "python", file: "millrace_jobs/_serve.py",
		from: `await _await_acks(session)`,
		to:   `pass`,
	},
	{
		name: "closes immediately", scenario: "burst", says: "no job that ran comes back to its queue",
		lang: "ruby", file: "millrace/session.rb",
		from: `@worker.bell.wait(ACK_TIME)`,
		to:   `@worker.bell.wait(0)`,
	},
	{
		name: "last queue first", scenario: "lanes", says: "so many are of its first queue",
		lang: "python", file: "millrace_jobs/_lane.py",
		from: `else having[0]`,
		to:   `else having[-1]`,
	},
	{
		name: "last queue first", scenario: "lanes", says: "so many are of its first queue",
		lang: "ruby", file: "millrace/hand.rb",
		from: `@waiting.index { |waiting| !waiting.empty? }`,
		to:   `@waiting.rindex { |waiting| !waiting.empty? }`,
	},
	{
		name: "weights upside down", scenario: "lanes", says: "of the first 60 of a lane with weights 3 and 1",
		lang: "python", file: "millrace_jobs/_lane.py",
		from: `self._weights = pool.weights`,
		to:   `self._weights = pool.weights and pool.weights[::-1]`,
	},
	{
		name: "weights upside down", scenario: "lanes", says: "of the first 60 of a lane with weights 3 and 1",
		lang: "ruby", file: "millrace/hand.rb",
		from: `@weights = lane.weights`,
		to:   `@weights = lane.weights&.reverse`,
	},
	{
		name: "never poison", scenario: "poison", also: "quorum", says: "has a record of raw-Die-deadly",
		lang: "python", file: "millrace_jobs/_runner.py",
		from: `if 0 < worker.max_deaths <= deaths:`,
		to:   `if False:`,
	},
	{
		name: "never poison", scenario: "poison", also: "quorum", says: "has a record of raw-Die-deadly",
		lang: "ruby", file: "millrace/task.rb",
		from: `if @worker.max_deaths.positive? && deaths >= @worker.max_deaths`,
		to:   `if false`,
	},
	{
		name: "keeps to its host", scenario: "hosts", says: "worker and producer are connected to another host",
		lang: "python", file: "millrace_jobs/_hosts.py",
		from: `in try_order(self._urls, self._url, self._lost)`,
		to:   `in [self._url] if self._url else try_order(self._urls, self._url, self._lost)`,
	},
	{
		name: "keeps to its host", scenario: "hosts", says: "worker and producer are connected to another host",
		lang: "ruby", file: "millrace/hosts.rb",
		from: `Hosts.try_order(@urls, @url, lost: @lost).each do |url|`,
		to:   `(@url ? [@url] : @urls.shuffle).each do |url|`,
	},
	{
		name: "client middleware inside out", scenario: "middleware", says: `expected: "outer inner"`,
		lang: "python", file: "millrace_jobs/client.py",
		from: `for middleware in reversed(self._middleware):`,
		to:   `for middleware in self._middleware:`,
	},
	{
		name: "client middleware inside out", scenario: "middleware", says: `expected: "outer inner"`,
		lang: "ruby", file: "millrace/client.rb",
		from: `@middleware.reverse.inject(last)`,
		to:   `@middleware.inject(last)`,
	},
	{
		name: "worker middleware inside out", scenario: "middleware", says: `expected: "outer inner ran`,
		lang: "python", file: "millrace_jobs/_handler.py",
		from: `for outer in reversed(middleware):`,
		to:   `for outer in middleware:`,
	},
	{
		name: "worker middleware inside out", scenario: "middleware", says: `expected: "outer inner ran`,
		lang: "ruby", file: "millrace/worker.rb",
		from: `@middleware.reverse.inject(last)`,
		to:   `@middleware.inject(last)`,
	},
	{
		name: "forgets the time zone", scenario: "periodic", says: "the definition is what the program gave",
		lang: "go", file: "define.go",
		from: `"tz": j.TZ, `, // to nothing
	},
	{
		name: "takes a mistake for a refusal", scenario: "periodic", says: `expected: "Invalid"`,
		lang: "python", file: "millrace_jobs/_define.py",
		from: `(Invalid if reply.get("status") == 400 else Refused)`,
		to:   `Refused`,
	},
	{
		name: "calls no hook at its end", scenario: "happy", says: "the hook shutdown is called once",
		lang: "go", file: "session.go",
		from: `s.w.call("shutdown", hooks.Shutdown)`,
		to:   `_ = hooks`,
	},
	{
		name: "calls no hook at its end", scenario: "happy", says: "the hook shutdown is called once",
		lang: "javascript", file: "src/engine/session.ts",
		from: `await this.engine.hook('shutdown');`,
		to:   ``,
	},
	{
		name: "cuts large jobs off", scenario: "large", says: "a retry has the whole job",
		lang: "python", file: "millrace_jobs/_record.py",
		from: `**_failure(job, error)}), comes_back_to(job.raw, job.queue))`,
		to:   `**_failure(job, error)}), comes_back_to(job.raw, job.queue)[:65536])`,
	},
	{
		name: "cuts large jobs off", scenario: "large", says: "a retry has the whole job",
		lang: "ruby", file: "millrace/record.rb",
		from: `comes_back_to(job.raw, job.queue))`,
		to:   `comes_back_to(job.raw, job.queue).byteslice(0, 65_536))`,
	},
	{
		name: "waits less than nothing", scenario: "clocks", says: "ahead waited -",
		lang: "go", file: "metrics.go",
		from: `max(begin.Sub(job.enqueuedAt).Milliseconds(), 0)`,
		to:   `begin.Sub(job.enqueuedAt).Milliseconds()`,
	},
	{
		name: "waits less than nothing", scenario: "clocks", says: "ahead waited -",
		lang: "javascript", file: "src/engine/metrics.ts",
		from: `Math.max(Math.floor(begin - job.enqueuedAt), 0)`,
		to:   `Math.floor(begin - job.enqueuedAt)`,
	},
	{
		name: "connects once", scenario: "connection", says: "the job comes again",
		lang: "python", file: "millrace_jobs/worker.py",
		from: `if why is None:`,
		to:   `if True:`,
	},
	{
		name: "declares the broker's default", scenario: "queues", says: "a missing queue is declared",
		lang: "python", file: "millrace_jobs/_queues.py",
		from: `{"x-max-priority": _wire.MAX_PRIORITY}`,
		to:   `{}`,
	},
	{
		name: "declares the broker's default", scenario: "queues", says: "a missing queue is declared",
		lang: "ruby", file: "millrace/session.rb",
		from: `arguments = { 'x-max-priority' => Wire::MAX_PRIORITY }`,
		to:   `arguments = {}`,
	},
	{
		name: "reports no end", scenario: "limits", says: "all jobs run, and one of them twice",
		lang: "python", file: "millrace_jobs/_settle.py",
		from: `if not (task.slot and outcome.ends):`,
		to:   `if task.slot is not None:`,
	},
	{
		name: "claims nothing", scenario: "limits", says: "a job that has ended is dropped",
		lang: "ruby", file: "millrace/claims.rb",
		from: `return false unless task.slot`,
		to:   `return false`,
	},
	{
		name: "forgets the weights", scenario: "governed", says: "the definition is what the program gave",
		lang: "go", file: "governed.go",
		from: `m["weights"] = q.Weights`,
		to:   `_ = m`,
	},
	{
		name: "reports no duplicate", scenario: "unique", says: "a duplicate is reported",
		lang: "python", file: "millrace_jobs/_unique.py",
		from: `or stays), duplicate=True)`,
		to:   `or stays), duplicate=False)`,
	},
}
