# SPDX-License-Identifier: GPL-2.0-only
# The front door: each target calls one script or one build system. Nothing is
# built inside the repository; `scripts/paths` prints where. Paths are the business
# of the scripts: make can quote nothing.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# The paths of the recipes are those of the clone.
ifneq ($(strip $(MAKEFILE_LIST)),Makefile)
$(error run it in its own folder: make -C FOLDER TARGET)
endif

# The build of the kernel takes no such path.
ifneq ($(words $(CURDIR))$(findstring :,$(CURDIR)),1)
$(error this clone is at '$(CURDIR)': move it to a path without a space or a colon)
endif

# What the user sets is read by the recipes as variables of the shell, never as text of theirs:
#   TESTS  names and options of the tests: make test TESTS=--long
#   BENCH  a benchmark and its options (default: munmap)
#   FLAVOUR  of the packaged kernel: make deb-kernel FLAVOUR=cloud
#   DEMO_CPUS, and where everything is built: CEASEFIRE_BUILD
export TESTS BENCH DEMO_CPUS FLAVOUR

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

##@ everything for a newcomer
.PHONY: demo
demo: demo-time deps kernel tools ## build the patched kernel, boot it, run ripgrep without and with FPR
	@scripts/demo

.PHONY: demo-time
demo-time:
	@scripts/demo --time

.PHONY: test
test: deps-test tools ## pass everything: tools, kernel attacks, checks
	@set -f; tests/run --build $$TESTS

.PHONY: bench
bench: deps kernel tools ## the munmap benchmark of the paper (BENCH="munmap --cpus 2,8")
	@set -f; ./ceasefire bench $${BENCH:-munmap}

.PHONY: results
results: deps ## docs/results.md from its template and what is kept in bench/results
	@./ceasefire bench report bench/results/*/ --markdown docs/results.md

##@ building
.PHONY: deps
deps: ## install what is missing: Debian packages (root or sudo), Python packages
	@scripts/install-deps

.PHONY: deps-test
deps-test: ## and what the tests need: a browser, what makes packages
	@scripts/install-deps --test

.PHONY: deps-deb
deps-deb: ## and what makes Debian packages and looks at them
	@scripts/install-deps --deb

.PHONY: deps-long
deps-long: ## and what the long tests need (make test TESTS=--long)
	@scripts/install-deps --long

.PHONY: deps-bench
deps-bench: ## and the applications of the benchmark suites
	@scripts/install-deps --bench

.PHONY: tools
tools: deps ## the preload library, the benchmark programs, the attack programs
	@scripts/tools-build

.PHONY: kernel
kernel: tree ## the kernel of demo and benchmarks
	@scripts/kernel-build run

.PHONY: kernel-debug
kernel-debug: tree ## the kernel of the tests: all checks and the mutations
	@scripts/kernel-build debug

.PHONY: kernel-stock
kernel-stock: tree ## the same kernel without ceasefire
	@scripts/kernel-build stock

.PHONY: kernel-plain
kernel-plain: tree ## without ceasefire, for the checking emulator: what does Linux itself do?
	@scripts/kernel-build plain

.PHONY: emulator
emulator: deps ## the emulator that checks every access against the page tables
	@scripts/emulator-build

##@ working on the kernel side
.PHONY: tree
tree: deps ## make or update the kernel tree from overlay and hooks
	@scripts/tree

.PHONY: save
save: ## write the hook commits of the tree back to kernel/hooks
	@scripts/save

.PHONY: patch
patch: deps ## everything as one plain diff against Debian's source
	@scripts/patch

.PHONY: series
series: deps ## everything as patches for a mailing list, with a cover letter
	@scripts/series

##@ packages
.PHONY: deb
deb: deps-deb ## Debian packages of everything but the kernel; prints their folder
	@scripts/deb

.PHONY: deb-kernel
deb-kernel: deps ## and of the kernel: FLAVOUR=small, cloud or full (scripts/deb-kernel says what they are)
	@scripts/deb-kernel "$${FLAVOUR:-small}"

##@ working on the emulator
.PHONY: emulator-tree
emulator-tree: deps ## make or update the emulator's tree from overlay and hooks
	@scripts/tree --emulator

.PHONY: emulator-save
emulator-save: ## write the hook commits of that tree back to emulator/hooks
	@scripts/save --emulator

##@ checks
.PHONY: check
check: deps ## the static checks (scripts/check --list)
	@scripts/check

.PHONY: check-series
check-series: deps ## does each commit of the series build, on and off? (takes long)
	@scripts/check --only series

##@ tidying up
.PHONY: clean
clean: ## remove what was built, keep the tree and the Python packages
	@scripts/clean

.PHONY: distclean
distclean: ## remove the whole build folder of this clone
	@scripts/clean --all
