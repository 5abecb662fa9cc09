# make demo         build, and replay the shipped recording of PostgreSQL on two drives
# make check        the quick part of it: format, lints, unit tests
# make test         the whole check: format, lints, tests, documents, real clients, browser
# make reproduce    published experiments over 8 seeds, into docs/reproductions/index.md; each spoiled (1 h)
# make bench        benches of our own code, interleaved with a bare loop
# make bench-peers  servers and simulated caches beside others of their kind and beside replays, interleaved
# make test-apps    SQLite, PostgreSQL and RocksDB on a loop device, half a minute each (root)
# make baselines    ext2, ext3, ext4, btrfs, xfs and oftl under the loads of [OFTL table 2] (root, 10 min)
# make test-guest   Linux's own NBD client in a small guest (qemu without KVM: two minutes or more)
# make powercut     kills of servers under ext4, xfs and btrfs, over NBD, and failures of the machine (root)
# make suites       pjdfstest, fsx, stress-ng, git and tar on the files of oftl, for hours (root)
# make extending    throw-away additions, each applied, built and tried: what docs/extending.md promises
# make crash        power cuts and failing stores at every operation, damage at rest (POINTS=...)
# make fuzz         fuzzing of all that reads what others wrote; MINUTES of processor time for each target
# make man          man pages and completions into target/man

CARGO ?= cargo
REPORT ?= reports/demo.html
POINTS ?= 2000000
MINUTES ?= 1

.PHONY: demo check test extending reproduce bench bench-peers bench-rocksdb man test-apps baselines suites test-guest powercut crash fuzz

demo:
	$(CARGO) build --profile demo --locked --package nandscape-cli
	@mkdir -p $(dir $(REPORT))
	target/demo/nandscape compare traces/pgbench.block.csv.zst --report $(REPORT)
	@echo "report: $(abspath $(REPORT))"

check:
	tests/check

test:
	tests/run

reproduce:
	$(CARGO) build --release --locked --package nandscape-cli
	target/release/nandscape reproduce --seed 1..8 --markdown docs/reproductions/index.md
	target/release/nandscape reproduce --sabotage

bench:
	$(CARGO) bench --locked --package nandscape-bench

bench-peers:
	$(CARGO) build --release --locked --package nandscape-cli
	BINARY=target/release/nandscape tests/bench-peers/nbd
	BINARY=target/release/nandscape tests/bench-peers/cachesim
	$(CARGO) build --release --locked --package nandscape-fuse --example do_nothing
	tests/serve/replayed --binary target/release/nandscape
	tests/fuse/bench
	tests/fuse/synced
	tests/fuse/rocksdb

# An hour and a half, and 16 GiB of memory.
bench-rocksdb:
	$(CARGO) build --release --locked --package nandscape-cli
	tests/fuse/rocksdb_recorded

extending:
	tests/extending/run

crash:
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-ftl --test suite crash:: -- --nocapture
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-cache --test suite crash:: -- --nocapture
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-namespace --test suite zones::crash:: -- --nocapture
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-hostftl --test suite crash:: -- --nocapture
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-object --test suite crash:: -- --nocapture
	RANDOM_STEPS=10000000 $(CARGO) test --release --locked --package nandscape-object --test suite invariants -- --nocapture
	CAMPAIGN_SINGLES=all CAMPAIGN_PAIRS=100000 $(CARGO) test --release --locked --package nandscape-image --lib campaign -- --nocapture
	DAMAGE_CASES=100000 $(CARGO) test --release --locked --package nandscape-image --lib damage_at_rest -- --nocapture
	CRASH_POINTS=$(POINTS) $(CARGO) test --release --locked --package nandscape-cache --lib given_up -- --nocapture
	CAMPAIGN_SINGLES=all CAMPAIGN_PAIRS=100000 COMMAND_CASES=all DAMAGE_CASES=100000 $(CARGO) test --release --locked --package nandscape-cache --test suite campaign:: -- --nocapture
	$(CARGO) build --locked --package nandscape-cli
	tests/serve/snapshot_faults --all

fuzz:
	MINUTES=$(MINUTES) fuzz/run

man:
	$(CARGO) run --release --locked --package nandscape-cli -- man --out target/man

test-apps:
	$(CARGO) build --locked --package nandscape-cli
	tests/fuse/applications
	tests/fuse/space

baselines:
	$(CARGO) build --release --locked --package nandscape-cli
	tests/fuse/baselines --out target/baselines

test-guest:
	$(CARGO) build --locked --package nandscape-cli
	BINARY=target/debug/nandscape tests/guest/run

suites:
	$(CARGO) build --release --locked --package nandscape-cli
	NANDSCAPE=$(CURDIR)/target/release/nandscape tests/fuse/posix
	NANDSCAPE=$(CURDIR)/target/release/nandscape tests/fuse/suites

powercut:
	$(CARGO) build --locked --package nandscape-cli
	tests/fuse/powercut 50
	tests/fuse/powercut 50 zone-files
	tests/fuse/powercut 50 oftl
	tests/fuse/rocksdb_kills 50
	tests/fuse/rocksdb_kills 50 --stack oftl
	tests/fuse/powercut 20 --ftl pm-gcl,pm-gcc,sbm-gcl,hsbm-gcl
	BINARY=target/debug/nandscape tests/nbd/powercut --rounds 50
	NANDSCAPE=target/debug/nandscape tests/serve/machine_failure --rounds 48 --lower xfs,btrfs --upper ext4,xfs,btrfs
	NANDSCAPE=target/debug/nandscape tests/serve/machine_failure --rounds 48 --lower xfs,btrfs --upper ext4,xfs,btrfs --control
