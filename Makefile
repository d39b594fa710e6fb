# make help lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools at pinned versions live inside the clone and come first.
export PATH := $(CURDIR)/.tools/bin:$(PATH)

# make expands $ in what its command line sets (make run LONGBOX_ADMIN='admin:Pa$word1') before it passes that on. This
# keeps every value as it was given.
$(foreach v,$(.VARIABLES),$(if $(findstring command line,$(origin $v)),$(eval override export $v := $$(value $v))))

# How long each fuzz target runs.
FUZZTIME ?= 30s

# What make deploy deploys.
SIZE ?=
STACK ?= longbox
PARAMETERS ?=
WEB_DIR ?=

.PHONY: help run operator packages test check tools lint lint-infra conformance fuzz bench openapi build deploy clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 14

run: ## start everything on this machine (PORT, DATA_DIR, LIBRARY=/a:/b, LONGBOX_ADMIN, BIND, WEB_DIR)
	@localstack/prepare.sh run
	@exec .bin/localstack

operator: ## run a command for tenants while make run is running: make operator ARGS='create acme --host acme.example.org'
	@settings="$${DATA_DIR:-.data}/operator.env"; \
	[[ -r $$settings ]] || { echo "Longbox: cannot read $$settings: start Longbox with make run first, or set DATA_DIR to the folder it uses, or run this as its user" >&2; exit 1; }; \
	unset $${!PG@} $${!AWS_@}; set -a; . "$$settings"; set +a; exec .bin/operator $(ARGS)

packages: ## install the packages that run needs (as root), and nothing else
	@localstack/prepare.sh packages

test: ## gofmt, go vet, and every test without cached results, with the race detector
	@localstack/prepare.sh test
	@$(MAKE) --no-print-directory check
	@# check runs the whole go vet. A program with the race detector waits for a second before it ends, if GORACE does
	@# not say otherwise, and tests start thousands of them. The seed is for shared/testkit.
	seed=$$(mktemp -d); trap 'rm -rf "$$seed"' EXIT; \
	TEST_POSTGRES_SEED=$$seed GORACE=atexit_sleep_ms=100 go test -race -vet=off -count=1 -timeout 40m ./...

check:
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { echo "not formatted (run gofmt -w): $$unformatted"; exit 1; }
	@wide=$$(LC_ALL=C.UTF-8 grep -rnE --include='*.go' --exclude-dir='.?*' '^.{121}' . | grep -E '^[^:]+:[0-9]+:\s*// ' || true); \
	[[ -z $$wide ]] || { echo "comment lines over 120 columns: $$wide"; exit 1; }
	go vet ./...
	go vet -tags conformance ./localstack/compose

tools: ## install what run and test need, and nothing else
	@localstack/prepare.sh tools

lint: ## gofmt, the width of comments, go vet and staticcheck
	@localstack/prepare.sh lint
	@$(MAKE) --no-print-directory check
	staticcheck ./...

lint-infra: ## check the cloud templates: cfn-lint, the SAM translator, cfn-lint on what that makes
	@localstack/prepare.sh infra
	@.tools/cfn-lint/bin/python infra/lint/lint.py

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@localstack/prepare.sh test
	@localstack/fuzz.sh $(FUZZTIME)

bench: ## run the benchmarks and print the figures beside their limits
	@localstack/prepare.sh test
	go run ./bench

conformance: ## run the S3, SQS and event tests against every store, and print what each store supports
	@localstack/prepare.sh conformance
	go run ./localstack/conformance

openapi: ## write api/openapi.json and api/openapi.yaml
	go run ./functions/openapi

build: ## stripped binaries of every function and their Lambda zips, in dist/
	@localstack/prepare.sh build
	go run ./localstack/dist

deploy: ## deploy to AWS (SIZE=small|large, STACK=longbox, PARAMETERS=file, WEB_DIR=folder); docs/cloud.md explains
	@SIZE="$(SIZE)" STACK="$(STACK)" PARAMETERS="$(PARAMETERS)" WEB_DIR="$(WEB_DIR)" infra/deploy.sh

clean: ## remove what was built (data and tools stay)
	rm -rf .bin dist
