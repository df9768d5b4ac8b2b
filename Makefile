# The outer commands. `make` alone prints them; the work is in scripts/, which also run on their own.
.DEFAULT_GOAL := help
.PHONY: help setup build package check quick test test-long assess bench fuzz clean

help:
	@echo 'make setup    install what is missing for building and for the lab (apt packages, by name); more by groups:'
	@echo '              WITH=mpi,pvm,fabric,ssh,slurm,peers,browser, or WITH=all; and programs'
	@echo 'make build    the static program: target/release/sonde'
	@echo 'make package  a Debian package and a tarball of it: target/package'
	@echo 'make check    format, types of the program and of the page, tidy: under a minute once built'
	@echo 'make quick    the tests of the crates that changed and of their direct dependents, and one lab    e.g. make quick BASE=HEAD~3'
	@echo 'make test     format, lints, tidy, licences, build, every test; last line: N passed, N failed, N skipped'
	@echo 'make test-long  the same with every case of attachment and user, and what takes minutes; then make fuzz'
	@echo 'make assess   set up, build, then: sonde assess $$(ARGS)     e.g. make assess ARGS="--testbed lab --quick"'
	@echo 'make bench    the benches of bench/ beside other programs, in turns: ratios, not absolute times    e.g. make bench ARGS="peers --budget 20min"'
	@echo 'make fuzz     every parser of bytes from outside, a minute each    e.g. make fuzz ARGS="600 plan network"'
	@echo 'make clean    remove what was built; measured runs (sonde-runs/) stay'

setup:
	@scripts/setup.sh

build: setup
	@scripts/build.sh

package: build
	@scripts/package.sh

check:
	@scripts/check.sh

quick:
	@scripts/quick.sh

test:
	@scripts/test.sh

test-long:
	@SONDE_TESTS=long WITH=$${WITH:-all,programs} scripts/test.sh && scripts/fuzz.sh

# What is not the result goes to stderr, so that `make -s assess ARGS=--json >file` is the result alone. Inconclusive (3), as on a
# machine that is too busy for the emulation, is said on the screen and is no failure of make's.
assess:
	@scripts/setup.sh >&2
	@scripts/build.sh >&2
	@target/release/sonde assess $(ARGS) || [ $$? = 3 ]

bench: build
	@scripts/bench.sh $(ARGS)

fuzz:
	@scripts/fuzz.sh $(ARGS)

clean:
	rm -rf target
