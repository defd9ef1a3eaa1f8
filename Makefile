# Millrace: `make up` runs it, `make test` tests it, `make help` lists all targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell scripts/version.sh)
GOLANGCI_VERSION := v2.15.0
PYTHON := .cache/python/bin/python
PYTHON_READY := .cache/python/installed
PYTHON_TOOLS := .cache/python/tools
GOLANGCI := .cache/bin/golangci-lint-$(GOLANGCI_VERSION)
UI_READY := ui/node_modules/.millrace-lock.json

# ARGS are arguments that `make up`, `make bench` and others pass on, for example ARGS=--fresh.
ARGS ?=
SCHEMATHESIS_VERSION := 4.32.5
SCHEMATHESIS := .cache/schemathesis/installed-$(SCHEMATHESIS_VERSION)
# EXAMPLES is the number of requests for each operation. With a SEED, they are the same each time.
EXAMPLES ?= 200
SEED ?=
# FUZZTIME is how long each fuzz target runs.
FUZZTIME ?= 30s
# PKG has the packages for test, cover and lint: by default those of all Go modules, the sidecar's and
# the client's. TESTFLAGS are more flags for `go test`.
PKG ?= ./... ./clients/go/... ./clients/go/otelmillrace
TESTFLAGS ?=
# TAGS are build tags for the tests under the race detector: testcontainers for a broker in a
# container (MILLRACE_TEST_IMAGE). The other tests have that tag in any case.
TAGS ?=

.PHONY: help
help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name what; do printf '  make %-15s %s\n' "$$name" "$$what"; done

.PHONY: tools
tools: ## Check that Go, Node, Python, git and make are installed
	@scripts/tools.sh

.PHONY: deps
deps: tools ## Install the other tools that the tests need, and list them first
	@scripts/deps.sh broker compiler python ruby rails node jest pyright java imports proxies

# One package needs less. Only readmetest and spectest run programs in other languages than Go.
.PHONY: deps-go
deps-go:
	@scripts/tools.sh go git make
	@scripts/deps.sh broker compiler

DEPS_OF_PKG := $(if $(findstring ...,$(PKG))$(findstring readmetest,$(PKG))$(findstring spectest,$(PKG)),deps,deps-go)

# The compiler collects its garbage less often: it is a tenth faster, and takes 400 MB at most.
COMPILER_GOGC := 400

.PHONY: build
build: ## Build bin/millrace
	@scripts/tools.sh go git make
	@[[ -e bin/millrace ]] || first=' (the first time takes about a minute)'; echo "Building bin/millrace$${first:-} …"
	@GOGC=$(COMPILER_GOGC) go build -v -ldflags '-s -w -X main.version=$(VERSION)' -o bin/millrace ./cmd/millrace 2>&1 | scripts/progress.sh

.PHONY: up
up: ## Run a broker, Millrace and a demo worker until interrupted (ARGS=--fresh empties their data)
	@scripts/tools.sh go git make
	@[[ -e bin/millrace ]] || GOGC=$(COMPILER_GOGC) go build net/http/pprof & scripts/deps.sh broker # a download leaves time to compile
	@$(MAKE) --no-print-directory build
	@exec bin/millrace up $(ARGS)

# Everything is built without cgo and with trimmed paths, like the binary, so that each package is
# compiled once. Only the race detector needs cgo. With this tag, Pebble does not use its zstd in C.
# The data for debuggers, which the binary leaves out, would take a third of the compiler's time.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false
RACED := CGO_ENABLED=1
RACE_FLAGS := -race -tags=pebblegozstd,$(TAGS)

# These packages are tested without the race detector: the ones that test or measure others, and the
# tracker, because Pebble checks itself under the race detector and takes forty times as long. The
# packages that use the tracker from several goroutines are tested with it. In cmd/millrace, the
# tests that main_test.go names run with it, and the others without, because parsing a command line
# takes a second under it. For the same reason, of the packages below internal only devup has it.
UNRACED := /bench$$|/internal/([^d]|doctor)|/tracker(/metrics|/processes)?$$
GO_TEST := scripts/gotest.sh $(TESTFLAGS)

# In a variable, because make runs a line with $(MAKE) in it even with -n.
APART := $(if $(filter ./...,$(PKG)),$(MAKE) --no-print-directory test-apart || status=$$?;)

# Package readmetest builds the Python package. The tests without the race detector, and after them
# those that run apart, run beside the others, because most of them wait. Their results come at the
# end.
.PHONY: test
test: $(DEPS_OF_PKG) $(if $(findstring ...,$(PKG))$(findstring readmetest,$(PKG)),$(PYTHON_READY)) ## Run all tests, with the race detector where it helps (PKG=./broker for one package)
	status=0; export AT_ONCE=2 SUMMARY=$$(mktemp); beside=$$(mktemp); \
	{ go list $(PKG) | sed -nE '\,$(UNRACED)|/cmd/millrace$$,p' | MILLRACE_TEST_RACED=1 $(GO_TEST) -tags=testcontainers || status=$$?; \
	$(APART) exit $$status; } >$$beside 2>&1 & \
	go list $(PKG) | sed -E '\,$(UNRACED),d' | $(RACED) $(GO_TEST) $(RACE_FLAGS) || status=$$?; \
	wait $$! || status=$$?; cat $$beside $$SUMMARY; rm $$beside $$SUMMARY; exit $$status

CLIENT_TESTS := test-javascript test-python test-ruby test-java

# They wait most of the time, so two run in parallel.
.PHONY: test-clients
test-clients: ## Tests of the JavaScript, Python, Ruby and Java clients, two at a time; each prints its output at its end
	@$(MAKE) --no-print-directory -j2 -Otarget $(CLIENT_TESTS)

# The property tests keep one core busy.
.PHONY: test-apart
test-apart: $(DEPS_OF_PKG)
	@$(MAKE) --no-print-directory -j3 -Otarget test-properties $(CLIENT_TESTS)

# The race detector slows these tests down most and finds nothing in them. So they run less often
# with it, and at full size without it.
.PHONY: test-properties
test-properties: deps-go ## The property tests of the core, at full size
	go test -count=1 -vet=off -timeout 30m -run '^(TestNothingIsLostOrDoubled|TestPowerFailures|TestTwoLeaders|TestOperationsAreUndoneOnce)$$' ./scheduler

# internal/localbroker tests the installed RabbitMQ, so it is left out.
.PHONY: test-rabbitmq4
test-rabbitmq4: $(DEPS_OF_PKG) ## The Go tests on RabbitMQ 4, installed in .cache from Debian forky (PKG=./broker for one package)
	MILLRACE_TEST_RABBITMQ=$$(scripts/rabbitmq4.sh) go test -timeout 30m $(TESTFLAGS) $$(go list $(PKG) | grep -v /internal/localbroker$$)

.PHONY: test-sidekiq8
test-sidekiq8: deps-go ## The bridge with 20,000 jobs and Sidekiq 8, installed in .cache from Debian forky
	@scripts/deps.sh imports ruby rails
	MILLRACE_TEST_SIDEKIQ=$$(scripts/sidekiq8.sh) MILLRACE_TEST_SIDEKIQ_JOBS=20000 go test -count=1 -timeout 30m -v -run TestRealSidekiq ./internal/sidekiq

.PHONY: test-javascript
test-javascript: ## Tests of the JavaScript client, also with a private RabbitMQ
	@scripts/deps.sh broker jest
	@clients/javascript/install
	cd clients/javascript && npm test --silent

.PHONY: test-python
test-python: $(PYTHON_READY) ## Tests of the Python client, with the newest pika and with Debian's, also with a private RabbitMQ
	@scripts/deps.sh broker python
	cd clients/python && PYTHONPATH=src ../../scripts/again.sh ../../$(PYTHON) -m unittest -q
	cd clients/python && PYTHONPATH=src ../../scripts/again.sh /usr/bin/python3 -m unittest -q

# Arguments of Ruby that run all tests of the client.
RUBY_TESTS := -w -Ilib -Itest -e 'Dir["./test/test_*.rb"].each { |file| require file }' -- --no-plugins

.PHONY: test-ruby
test-ruby: ## Tests of the Ruby client, with Debian's bunny, also with a private RabbitMQ
	@scripts/deps.sh broker ruby rails
	cd clients/ruby && ../../scripts/again.sh ruby $(RUBY_TESTS)

# The working directory is the repository, because that Ruby sees no other files but temporary ones.
.PHONY: test-newer-ruby
test-newer-ruby: ## Tests of the Ruby client with Ruby 3.3, bunny 3, Rails 7 and RabbitMQ 4, installed in .cache from Debian forky
	@ruby=$$(scripts/newer-ruby.sh) && scripts/again.sh "$$ruby" -C clients/ruby $(RUBY_TESTS)

.PHONY: test-java
test-java: ## Tests of the Java client, also with a private RabbitMQ
	@scripts/deps.sh broker java
	cd clients/java && ../../scripts/mvn.sh test $(if $(RERUN),-Dsurefire.rerunFailingTestsCount=1)

.PHONY: cover
cover: $(DEPS_OF_PKG) ## Statement coverage by package; fails below 90 % in total
	@scripts/cover.sh $(PKG)

.PHONY: lint
lint: lint-go $(if $(filter ./...,$(PKG)),lint-others) ## Run all linters (PKG=./broker for one package)

.PHONY: lint-go
lint-go: tools $(GOLANGCI) ## golangci-lint, which also has the checks of go vet
	$(GOLANGCI) run $(PKG)

.PHONY: lint-others
lint-others: tools lint-javascript lint-python lint-ruby lint-java lint-ui ## The linters of the clients and the web UI

.PHONY: tidy
tidy: ## go mod tidy for all Go modules: the sidecar's, those in clients/go, and scripts/release
	@scripts/tidy.sh
	@GOWORK=off go -C scripts/release mod tidy

.PHONY: lint-javascript
lint-javascript: ## eslint and tsc on the JavaScript client
	@clients/javascript/install
	cd clients/javascript && npm run --silent lint

.PHONY: lint-python
lint-python: $(PYTHON_TOOLS) ## ruff and mypy on the Python client
	cd clients/python && ../../.cache/python/bin/ruff check -q && ../../.cache/python/bin/ruff format -q --check && ../../.cache/python/bin/mypy --no-error-summary

.PHONY: lint-ruby
lint-ruby: ## rubocop on the Ruby client, and yard on its comments
	@scripts/deps.sh ruby-tools
	cd clients/ruby && rubocop --format quiet && yard stats --no-cache --no-save --fail-on-warning --list-undoc --compact

.PHONY: lint-java
lint-java: ## javac -Xlint and -Xdoclint on the Java client
	@scripts/deps.sh java
	clients/java/lint

.PHONY: packages
packages: $(PYTHON_READY) ## Build the packages of the clients in dist, as for publishing
	@scripts/deps.sh ruby java
	@scripts/packages.sh dist
	@ls dist

.PHONY: dist
dist: ## Build archives for all systems and packages for Linux into dist (ARGS=linux/amd64 for one system)
	@scripts/tools.sh go git make
	@VERSION=$(VERSION) scripts/dist.sh dist $(ARGS)
	@VERSION=$(VERSION) scripts/linux-packages.sh dist
	@ls dist

# dist is emptied first: a release must not contain files of another one.
.PHONY: release
release: tools $(PYTHON_READY) ## Build everything that a release consists of into dist (VERSION=1.2.3; PARTS='archives packages' for some)
	@scripts/deps.sh broker ruby java
	@rm -rf dist
	@scripts/release.sh '$(VERSION)' dist $(PARTS)
	@ls dist

# It builds a release twice, and runs other test suites against it. It needs root and Debian.
.PHONY: test-packages
test-packages: tools $(PYTHON_READY) $(GOLANGCI) $(UI_READY) ## Build a release twice, compare the bytes, and install and run what can run here (PARTS='files deb' for some)
	@scripts/deps.sh broker python ruby java browser packages
	@scripts/test-packages.sh $(PARTS)

# The tests need Linux, so they are left out. CI runs the programs for the other systems.
.PHONY: vet-systems
vet-systems: tools $(GOLANGCI) ## go vet's checks on the binary and the Go client, for each system of a release
	@scripts/release/vet.sh $(GOLANGCI)

.PHONY: golden
golden: tools ## Write the golden files of the Helm chart again, after a change of the chart
	@scripts/release/golden.sh

.PHONY: plugin
plugin: ## Build the plugin for RabbitMQ in dist, with erlc and the installed RabbitMQ
	@scripts/deps.sh broker
	@VERSION=$(VERSION) scripts/plugin.sh dist

$(UI_READY): ui/package-lock.json
	@echo "installing from the npm registry into ui/node_modules what the UI's checks and tests need"
	@cd ui && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@cp $< $@

.PHONY: lint-ui
lint-ui: $(UI_READY) ## eslint and tsc on the web UI
	cd ui && npm run --silent lint

.PHONY: test-ui
test-ui: tools $(UI_READY) ## Tests of the web UI in Chromium and Firefox, against the binary and a private broker
	@scripts/deps.sh broker browser firefox
	@go build -o bin/millrace ./cmd/millrace
	cd ui && npm run --silent test

# They start their own brokers, and take some minutes.
TEST_PLUGIN = file=$$(VERSION=$(VERSION) scripts/plugin.sh dist); export MILLRACE_TEST_PLUGIN=$$file; \
	go test -tags plugin -count=1 -timeout 60m $(TESTFLAGS) ./internal/plugintest && \
	go test -tags plugin -count=1 -v -run '^TestDelayedRecipes$$' ./internal/readmetest

.PHONY: test-plugin
test-plugin: tools $(UI_READY) $(PYTHON_READY) ## Tests of the plugin for RabbitMQ, on the installed RabbitMQ
	@scripts/deps.sh broker browser python node java recipes
	$(TEST_PLUGIN)

.PHONY: test-plugin-rabbitmq4
test-plugin-rabbitmq4: tools $(UI_READY) $(PYTHON_READY) ## The same on RabbitMQ 4, installed in .cache from Debian forky
	@scripts/deps.sh broker browser python node java recipes
	bin=$$(scripts/rabbitmq4.sh); export MILLRACE_TEST_RABBITMQ=$$bin; $(TEST_PLUGIN)

.PHONY: bench-ui
bench-ui: tools $(UI_READY) ## Measure the web UI with a million jobs (ARGS=-quick, ARGS=-only=dashboard)
	@scripts/deps.sh broker browser
	@go build -o bin/millrace ./cmd/millrace
	@go build -o bin/uiload ./bench/uiload
	node ui/test/bench.js $(ARGS)

.PHONY: screenshots
screenshots: tools $(UI_READY) ## Write docs/screenshots
	@scripts/deps.sh broker browser
	@go build -ldflags '-X main.version=1.0.0' -o bin/millrace ./cmd/millrace
	node ui/test/screenshots.js

.PHONY: vendor-ui
vendor-ui: ## Download the web UI's npm packages again
	ui/vendor.sh

$(PYTHON_READY): clients/python/requirements-test.txt
	@scripts/deps.sh python
	@echo "installing from PyPI into .cache/python: $$(grep -v '^#' $< | xargs)"
	@python3 -m venv --clear .cache/python
	@.cache/python/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(PYTHON_TOOLS): clients/python/requirements-dev.txt $(PYTHON_READY)
	@echo "installing from PyPI into .cache/python: $$(grep -v '^#' $< | xargs)"
	@.cache/python/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(GOLANGCI):
	@echo "installing golangci-lint $(GOLANGCI_VERSION) into .cache/bin (once; takes some minutes)"
	@mkdir -p .cache/bin
	@GOBIN=$(CURDIR)/.cache/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv .cache/bin/golangci-lint $@

.PHONY: bench
bench: tools ## Measure lateness, bursts and reading, next to the broker's own figures (ARGS=-quick)
	@scripts/deps.sh broker ruby
	go run ./bench $(ARGS)

# BullMQ, pg-boss and Celery are installed in .cache/peers, and Asynq comes from the Go module proxy.
# Millrace is also measured on LavinMQ if MILLRACE_TEST_LAVINMQ names its program.
.PHONY: bench-peers
bench-peers: tools ## Measure limits, unique and periodic jobs beside other job systems (ARGS='-peers=millrace,bullmq -only=rate')
	@scripts/deps.sh broker python peers
	go run ./bench/peers $(ARGS)

.PHONY: conformance
conformance: tools ## Run every client library through every scenario (ARGS='-lang ruby -run poison -v')
	@scripts/deps.sh broker python ruby java
	go run ./clients/conformance $(if $(RERUN),-rerun) $(ARGS)

# LavinMQ is included if MILLRACE_TEST_LAVINMQ names its program.
.PHONY: conformance-all
conformance-all: tools ## The same on RabbitMQ 3.10 and 4.3 and on LavinMQ, and with the oldest and newest drivers
	@scripts/deps.sh broker python ruby java
	@scripts/conformance-all.sh $(ARGS)

.PHONY: fuzz
fuzz: tools ## Run every fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: schemathesis
schemathesis: tools $(SCHEMATHESIS) ## Test the API with schemathesis (EXAMPLES=200 for each operation, SEED=1 to repeat them)
	@scripts/deps.sh broker
	EXAMPLES=$(EXAMPLES) SEED=$(SEED) go test -tags schemathesis -count=1 -timeout 120m -v -run TestSchemathesis ./internal/schematest

$(SCHEMATHESIS):
	@scripts/deps.sh python
	@echo "installing schemathesis $(SCHEMATHESIS_VERSION) from PyPI into .cache/schemathesis"
	python3 -m venv .cache/schemathesis
	.cache/schemathesis/bin/pip install -q schemathesis==$(SCHEMATHESIS_VERSION)
	@touch $@

.PHONY: chaos
chaos: deps ## Kill, freeze and disconnect sidecars and brokers, and count every job (ARGS='-quick -seed=1 -only=clock')
	go test -tags chaos -c -o bin/chaos.test ./internal/chaos
	cd internal/chaos && exec ../../bin/chaos.test -test.run '^TestChaos$$' -test.timeout 3h $(ARGS)

# For another broker, use the variables of the tests: MILLRACE_TEST_LAVINMQ=/usr/bin/lavinmq make
# chaos.
.PHONY: chaos-rabbitmq4
chaos-rabbitmq4: deps ## The same on RabbitMQ 4, installed in .cache from Debian forky
	MILLRACE_TEST_RABBITMQ=$$(scripts/rabbitmq4.sh) $(MAKE) --no-print-directory chaos

# The rows of LavinMQ run if MILLRACE_TEST_LAVINMQ names its program.
.PHONY: chaos-cluster
chaos-cluster: tools ## Break clusters of three nodes, and count every job (ARGS='-broker=4.3 -row=3,7 -runs=5 -full -resume')
	@scripts/deps.sh broker $(if $(MILLRACE_TEST_LAVINMQ),etcd)
	MILLRACE_TEST_RABBITMQ=$$(scripts/rabbitmq4.sh) go run ./internal/chaoscluster -results chaos-cluster.jsonl $(ARGS)

.PHONY: chaos-cluster-short
chaos-cluster-short: tools ## Run one row of it on each RabbitMQ, both at the same time, in about two minutes
	@scripts/deps.sh broker
	@go build -o bin/millrace ./cmd/millrace
	@$(MAKE) --no-print-directory -j2 -Otarget chaos-cluster-3.10 chaos-cluster-4.3

SHORT_ROW := go run ./internal/chaoscluster -binary bin/millrace -rate 100

.PHONY: chaos-cluster-3.10 chaos-cluster-4.3
chaos-cluster-3.10:
	$(SHORT_ROW) -broker 3.10 -row 7 $(ARGS)

chaos-cluster-4.3:
	MILLRACE_TEST_RABBITMQ=$$(scripts/rabbitmq4.sh) $(SHORT_ROW) -broker 4.3 -row 3 $(ARGS)

.PHONY: test-alerts
test-alerts: ## Test the Prometheus alerts with promtool
	@scripts/deps.sh promtool
	promtool check rules deploy/prometheus/alerts.yaml
	cd deploy/prometheus && promtool test rules alerts_test.yaml

.PHONY: mutants
mutants: deps ## Break the core in one place at a time: a test must fail (ARGS=-only=settling)
	go run ./internal/mutants $(ARGS)

.PHONY: clean
clean: ## Remove all build results
	rm -rf bin coverage
