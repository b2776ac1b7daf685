# Lasthop. Needs Python 3.11 or later, cargo, a C compiler and make; everything else goes into .venv and target.
#
#   make run     set up, and run the worked example into out/
#   make optimised  compile as for a release: simulations take a fifth less time
#   make check   the linters and the quick tests: while working
#   make test    set up, and run every linter and test: before a change is committed, and in CI
#   make test-all  the same with the long campaigns: every combination, and many more random worlds
#   make release build the wheel and the source distribution into dist, and check both and the release build
#   make web     compile the simulator to WebAssembly, for pages
#   make gateway compile the gateway as one static program, and pack it, into dist
#   make demo-gateway  show what it gains, between namespaces; needs root and iperf3
#   make kernel  build a Linux kernel for `lasthop emulate --virtual` into the cache of this user
#   make docs    build the documentation site into out/site
#   make bench   measure what runs cost, beside ns-2 and ns-3 where they are installed
#   make clean   remove what these made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built
OPTIMISED := $(VENV)/.optimised
TOOLS := $(VENV)/.tools
MODULE := python/lasthop/web/simulator.wasm.gz
CORE := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name Cargo.toml -o -name '*.rs' -path '*/src/*' -o -name build.rs) $(wildcard scenarios/*.toml)
DEVELOP := . $(BIN)/activate && maturin develop
# Declared by a macro, so cargo fmt does not find them.
REGISTERED := $(shell find crates/proto/src/scheme crates/proto/src/arq crates/proto/src/tcp/cc crates/channel/src crates/link/src/queue -name '*.rs')
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled when it is imported: most of what comes with the tools never is. For this option pip's "0" means "do not".
export PIP_NO_COMPILE := 0
# The tests start hundreds of Python's processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# What only a next build or a debugger would use slows down the first build, which is the only one on a fresh machine.
export CARGO_INCREMENTAL := 0
export CARGO_PROFILE_DEV_DEBUG := false
export CARGO_PROFILE_TEST_DEBUG := false
# Four codegen units a crate, not sixteen: each compiles anew what it shares with others. That is a sixth less work.
export CARGO_PROFILE_DEV_CODEGEN_UNITS := 4
export CARGO_PROFILE_QUICK_CODEGEN_UNITS := 4
export CARGO_PROFILE_TEST_CODEGEN_UNITS := 4

# Not every cargo comes with rustfmt and clippy.
if_there = $(if $(shell cargo $(1) --version 2>/dev/null),cargo $(1) $(2),@echo "skipped: there is no cargo $(1)")

# Numbers of random worlds, scenarios and inputs; each test has its own by default.
FEW := LASTHOP_HOSTILE=60 LASTHOP_ENDPOINT_WORLDS=50
MANY := LASTHOP_HOSTILE=5000 LASTHOP_ENDPOINT_WORLDS=5000 LASTHOP_WORLDS=400 LASTHOP_WIFI_WORLDS=100000 LASTHOP_FUZZ_INPUTS=1000000 LASTHOP_DAMAGED_FILES=20000 LASTHOP_TRANSFERS=0..10 LASTHOP_PATTERNS=all LASTHOP_COMPARISONS=1000 LASTHOP_TUNNEL_WORLDS=3000 LASTHOP_SPLIT_WORLDS=200 LASTHOP_BUMP_WORLDS=1000 LASTHOP_CONNECTIONS=4900
RUST_TESTS := $(BIN)/python scripts/rust_tests.py
# Each file of tests runs in one process, since those of a file share what they have computed. A cargo that a test starts
# is told nothing of this make, whose jobs it could not share.
PYTEST := env -u MAKEFLAGS -u MFLAGS $(BIN)/pytest --quiet --numprocesses auto --dist loadfile --no-loadscope-reorder --durations=25 -rs

# Under a name of its own, so that `make --dry-run` asks nothing.
UP_TO_DATE = MAKEFLAGS= $(MAKE) --question

.PHONY: run optimised web docs kernel gateway demo-gateway release check test test-all extension lint lint-python lint-rust doc check-rust rust-tests-built test-rust test-python test-real-time test-computing pages
.PHONY: bench bench-record clean
.DELETE_ON_ERROR:

run: $(BUILT)
	$(BIN)/lasthop run scenarios/ebsn-example.toml --trace --pcap --out out/ebsn-example

optimised: $(OPTIMISED)

# In an order in which no cargo waits for the lock of another, which would idle a core. Tests in real time mostly wait.
test:
	$(MAKE) --jobs=2 pages rust-tests-built
	$(MAKE) --jobs=2 test-rust lint-python doc
	$(MAKE) --jobs=2 --output-sync test-real-time test-computing

test-all:
	$(MAKE) pages lint
	$(MANY) $(MAKE) test-rust
	LASTHOP_CAMPAIGNS=1 $(PYTEST)

check:
	$(MAKE) --jobs=2 check-rust lint-python lint-rust
	$(PYTEST) -m 'not slow'

# With assertions, from the parts of Rust's tests. `make run` and `make optimised` bring the others back.
extension: HAS_TOOLS = $(filter $(TOOLS),$(shell find $(TOOLS) -newer pyproject.toml 2>/dev/null))
extension: | $(VENV)/.made
	@rm -f $(BUILT) $(OPTIMISED)
	$(DEVELOP) $(if $(HAS_TOOLS),--skip-install)
	$(if $(HAS_TOOLS),,$(DEVELOP) --quiet --extras test)
	@touch $(TOOLS)

lint: lint-python lint-rust doc

lint-python: extension
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest lasthop._lasthop
	$(BIN)/python scripts/stubs.py --check

lint-rust:
	$(call if_there,fmt,--all --check)
	$(if $(shell command -v rustfmt),rustfmt --check --edition 2024 $(REGISTERED),@echo "skipped: there is no rustfmt")
	$(call if_there,clippy,--quiet --workspace --lib --bins --tests --examples -- -D warnings)

doc:
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --workspace --no-deps

# One after the other: both build into the same place.
rust-tests-built: lint-rust
	cargo test --quiet --workspace --no-run

test-rust: | $(VENV)/.made
	$(RUST_TESTS)

check-rust: | $(VENV)/.made
	$(FEW) $(RUST_TESTS) --workspace --tests

test-python: extension
	$(PYTEST)

# The two parts of Python's tests; `test` has built the extension before.
test-real-time:
	$(PYTEST) --numprocesses 0 -m real_time

test-computing:
	$(PYTEST) -m 'not real_time'

# The module of `make web` if it is up to date, or else a quick one that `make web` replaces.
pages: | $(VENV)/.made
	@if ! $(BIN)/python scripts/web.py --check; then echo "skipped: tests of pages"; \
	elif ! $(UP_TO_DATE) web; then $(BIN)/python scripts/web.py --profile web-test; fi

web: $(MODULE)

# Python has it as it stands; there is no need to install it.
$(MODULE): $(CORE) scripts/web.py | $(VENV)/.made
	$(BIN)/python scripts/web.py

gateway: | $(VENV)/.made
	$(BIN)/python scripts/gateway.py

demo-gateway: $(BUILT)
	$(BIN)/python scripts/gateway_demo.py

kernel: $(BUILT)
	$(BIN)/lasthop kernel build

# With the build that is there. The notebooks are pages, too.
docs: $(BUILT)
	$(DEVELOP) $$(test -e $(OPTIMISED) && echo --release || echo --profile quick) --quiet --extras docs,notebooks
	$(BIN)/python scripts/build_site.py

release: $(OPTIMISED) $(MODULE)
	$(DEVELOP) --release --quiet --extras release,test
	$(PYTEST) -m 'not slow'
	$(BIN)/python benches/guard.py
	$(BIN)/python scripts/release.py $(RELEASE)

bench: $(OPTIMISED)
	$(BIN)/python benches/run.py

# The instruction counts that later ones are compared with, of the release and of the tests: only on purpose.
bench-record: $(OPTIMISED)
	$(BIN)/python benches/guard.py --record
	$(MAKE) extension
	$(BIN)/python benches/guard.py --record

# Python's files are used where they stand; only the compiled core is built.
$(BUILT): $(CORE) | $(VENV)/.made
	@rm -f $(OPTIMISED)
	$(DEVELOP) --profile quick
	@touch $@

$(OPTIMISED): $(CORE) | $(VENV)/.made
	$(DEVELOP) --release
	@touch $(BUILT) $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lasthop needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install 'maturin>=1.16,<2'
	@touch $@

clean:
	rm -rf $(VENV) out dist target
