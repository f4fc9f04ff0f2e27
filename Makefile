# The commands of the project. `make help` lists them.
#
# Made for Debian 12 with cargo from rustup. Debian packages are installed
# when they are missing (as root or by sudo); everything else goes under build/ and target/.

BUILD := $(CURDIR)/build
PREFIX ?= /usr/local
CARGO ?= cargo
export CARGO_TERM_COLOR ?= auto

# cargo-c installs a Rust library the way C libraries are installed. This version is the newest that
# rustc 1.95 builds.
CARGO_C_VERSION := 0.10.24+cargo-0.98.0
CARGO_DENY_VERSION := 0.20.2
# The program of a version where it is installed, or else the place where it will be.
tool = $(shell path=$$(command -v $(1)) && [ "$$($$path --version)" = "$(2)" ] && echo $$path || echo $(BUILD)/tools/bin/$(1))
ifndef CARGO_CAPI
CARGO_CAPI := $(call tool,cargo-capi,cargo-c $(CARGO_C_VERSION))
endif
ifndef CARGO_DENY
CARGO_DENY := $(call tool,cargo-deny,cargo-deny $(CARGO_DENY_VERSION))
endif
VENV := $(BUILD)/venv
SERVE_VENV := $(BUILD)/venv-serve
PYTHON := $(VENV)/bin/python

# Where the library is installed for the example and the tests.
STAGE := $(BUILD)/prefix
LIB_PATH := $(STAGE)/lib

RUN_PACKAGES := build-essential pkg-config
KERNEL_PACKAGES := clang-19 lld-19
INSTALL_PACKAGES := $(RUN_PACKAGES) $(KERNEL_PACKAGES) libssl-dev python3
# HIP's real runtime too, which says on most machines that there is no device.
TEST_PACKAGES := $(INSTALL_PACKAGES) clang-tools-19 cmake ninja-build python3-venv abigail-tools valgrind llvm-19 libamdhip64-5

# The emulated AMD GPU (emulator/), on which the HIP provider is tested.
EMULATED := RUKH_REQUIRE_HIP=1 RUKH_HIP_LIBRARY=$(BUILD)/emulator/libamdhip64.so
HIPRTC_PACKAGES := libamdhip64-dev libhiprtc-builtins5 rocm-device-libs

# The GPU targets of the tests: one of each kind. `make install` builds all.
TEST_GPU_TARGETS ?= gfx1100,gfx90a,sm_80

.DEFAULT_GOAL := help
.PHONY: help run run-generate test test-full bench bench-sweep bench-gpu install install-onnxruntime install-triton stage models report kernel-table lint test-rust test-c conformance \
	test-levels test-cross test-docs test-python test-graphs test-properties test-graphs-full test-onnxruntime test-onnxruntime-models door emulator predict test-hip test-hip-full test-hip-models test-hiprtc test-models test-quantized test-compiled test-size onnxruntime-ep test-onnxruntime-ep test-onnxruntime-ep-full bench-onnxruntime-ep test-triton bench-triton test-serve bench-serve test-bindings fuzz deny deny-advisories tools run-tools format clean distclean

help: ## list the commands
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

install install-onnxruntime install-triton: export RUKH_GPU_TARGETS ?= all
bench-gpu report: export RUKH_GPU_TARGETS ?= native
stage test test-full test-serve bench-serve bench bench-sweep lint test-rust test-c conformance test-docs test-python test-graphs test-graphs-full test-onnxruntime test-onnxruntime-models test-hip test-hip-full test-hip-models predict test-models onnxruntime-ep test-onnxruntime-ep test-onnxruntime-ep-full bench-onnxruntime-ep test-triton bench-triton: \
	export RUKH_GPU_TARGETS ?= $(TEST_GPU_TARGETS)

run: ## build the library in this tree, build the digits example in C and C++ against it, run both
	@scripts/install_packages.sh $(RUN_PACKAGES) $(if $(wildcard /dev/kfd /dev/nvidia0),$(KERNEL_PACKAGES))
	@echo "building the library, with kernels for the GPUs of this machine; the first time this takes some minutes"
	RUKH_GPU_TARGETS=$${RUKH_GPU_TARGETS:-native} $(CARGO) build --release --lib
	$(MAKE) --no-print-directory -C examples/digits run PC_FOLDER=$(CURDIR)/pkgconfig BUILD=$(BUILD)/examples/digits

run-generate: ## build the library for generating text in this tree, build its example in C against it, run it
	@scripts/install_packages.sh $(RUN_PACKAGES) $(if $(wildcard /dev/kfd /dev/nvidia0),$(KERNEL_PACKAGES))
	RUKH_GPU_TARGETS=$${RUKH_GPU_TARGETS:-native} $(CARGO) build --release -p rukh -p rukh-generate --lib
	$(MAKE) --no-print-directory -C examples/generate run PC_FOLDER=$(CURDIR)/pkgconfig BUILD=$(BUILD)/examples/generate

test: tools ## install what the tests need and run every test that takes minutes
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory test-rust
	$(MAKE) --no-print-directory test-c
	$(MAKE) --no-print-directory conformance
	$(MAKE) --no-print-directory test-docs
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory test-graphs
	$(MAKE) --no-print-directory test-onnxruntime
	$(MAKE) --no-print-directory test-hip
	$(MAKE) --no-print-directory test-onnxruntime-ep

test-full: export C_VARIANTS :=
test-full: test ## also draw many random cases and graphs, export the large models (2.5 GB), compare with torch's outputs and with ONNX Runtime, and fuzz
	$(MAKE) --no-print-directory test-levels
	$(MAKE) --no-print-directory test-cross
	$(MAKE) --no-print-directory test-properties
	$(MAKE) --no-print-directory test-graphs-full
	$(MAKE) --no-print-directory test-models
	$(MAKE) --no-print-directory test-quantized
	$(MAKE) --no-print-directory test-size
	$(MAKE) --no-print-directory test-compiled
	$(MAKE) --no-print-directory test-hip-full
	$(MAKE) --no-print-directory test-hip-models
	$(MAKE) --no-print-directory test-hiprtc
	$(MAKE) --no-print-directory test-onnxruntime-models
	$(MAKE) --no-print-directory test-onnxruntime-ep-full
	$(MAKE) --no-print-directory test-triton
	$(MAKE) --no-print-directory test-bindings
	$(MAKE) --no-print-directory test-serve
	$(MAKE) --no-print-directory fuzz

bench: stage build/models/.exported build/quantized/.written $(VENV)/.bench ## time the exported models beside ONNX Runtime, OpenVINO and rten, in turns (BENCH: options and rows of scripts/bench/bench.py)
	$(CARGO) build --release --manifest-path benches/rten/Cargo.toml
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(PYTHON) scripts/bench/bench.py --models $(BUILD)/models \
		--quantized $(BUILD)/quantized --out $(BUILD)/bench $(BENCH)

bench-sweep: stage $(VENV)/.test ## time single nodes of many shapes and blocks of networks beside ONNX Runtime, in turns (BENCH: options and parts of names of scripts/bench/sweep.py)
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(PYTHON) scripts/bench/sweep.py --out $(BUILD)/sweep $(BENCH)

# Python with a torch that sees the GPU: the one that pip installs sees NVIDIA's alone.
GPU_PYTHON ?= python3
bench-gpu: stage ## time whole models on this machine's GPU beside PyTorch, in turns (BENCH: options of scripts/bench/gpu_models.py; GPU_PYTHON: a Python that has torch)
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(GPU_PYTHON) scripts/bench/gpu_models.py \
		--models $(BUILD)/gpu-models --out $(BUILD)/gpu-models.json $(BENCH)

report: run-tools build/models/.exported build/onnx-data/VERSION ## run the ONNX standard's cases and whole models on this machine's GPU and write rukh-report.json to send in (docs/amd-without-a-card.md)
	$(CARGO) run --release -p rukh-cli -- report --full

# rustc names the shared libgcc, which a fully static program cannot have; the compiler adds the right one itself.
without_libgcc = sed -i 's/ -lgcc_s//' $(1)/pkgconfig/rukh.pc

# The library for generating text, linked to the librukh that was installed before.
# The compiler by its path: a package of its dependencies asks rustup for a toolchain of its own, which cargo-c would heed.
INSTALL_GENERATE = RUSTC="$$(rustc --print sysroot)/bin/rustc" $(CARGO_CAPI) capi install --release -p rukh-generate --library-type=cdylib

# The plugin for ONNX Runtime, likewise, and nothing else: it has no header. In a folder of its own: cargo and cargo-c
# would each compile anew what the other has compiled.
EP_TARGET := $(BUILD)/onnxruntime-ep/target
INSTALL_EP = CARGO_TARGET_DIR=$(EP_TARGET) $(CARGO) build --release -p rukh-onnxruntime-ep --lib && \
	install -D -m 755 -t $(1) $(EP_TARGET)/release/librukh_onnxruntime_ep.so

# ONNX Runtime's C API on the librukh that was installed before.
INSTALL_ONNXRUNTIME = RUSTC="$$(rustc --print sysroot)/bin/rustc" $(CARGO_CAPI) capi install --release -p rukh-onnxruntime --library-type=cdylib

# The backend for Triton Inference Server, linked to the librukh that was installed before.
TRITON_TARGET := $(BUILD)/triton/target
INSTALL_TRITON = CARGO_TARGET_DIR=$(TRITON_TARGET) $(CARGO) build --release -p rukh-triton --lib && \
	install -D -m 755 -t $(1) $(TRITON_TARGET)/release/libtriton_rukh.so

install: run-tools ## install library, header, pkg-config and CMake files under PREFIX (default /usr/local)
	$(CARGO_CAPI) capi install --release --prefix=$(PREFIX) --libdir=$(PREFIX)/lib $(if $(DESTDIR),--destdir=$(DESTDIR))
	$(call without_libgcc,$(DESTDIR)$(PREFIX)/lib)
	RUKH_LINK_FOLDER=$(DESTDIR)$(PREFIX)/lib $(INSTALL_GENERATE) --prefix=$(PREFIX) --libdir=$(PREFIX)/lib $(if $(DESTDIR),--destdir=$(DESTDIR))
	RUKH_LINK_FOLDER=$(DESTDIR)$(PREFIX)/lib $(call INSTALL_EP,$(DESTDIR)$(PREFIX)/lib)
	python3 scripts/sbom.py $(DESTDIR)$(PREFIX)/share/doc/rukh/rukh.cdx.json
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/rukh abi/rukh-api.json
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/rukh README.md CHANGELOG.md CONTRIBUTING.md LICENSE-APACHE LICENSE-MIT
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/rukh/docs docs/*.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/rukh/docs/contributing docs/contributing/*.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/rukh/docs/performance docs/performance/*.md docs/performance/*.svg

# Not a part of `install`: it takes the place of a libonnxruntime that the system may have.
install-onnxruntime: run-tools ## install libonnxruntime.so.1 on rukh under PREFIX, where `make install` put rukh
	RUKH_LINK_FOLDER=$(DESTDIR)$(PREFIX)/lib $(INSTALL_ONNXRUNTIME) --prefix=$(PREFIX) --libdir=$(PREFIX)/lib $(if $(DESTDIR),--destdir=$(DESTDIR))

# Not a part of `install`: few systems have the server, and it looks for backends in a folder of its own.
install-triton: run-tools ## install the backend for Triton Inference Server under PREFIX/backends, where `make install` put rukh
	RUKH_LINK_FOLDER=$(DESTDIR)$(PREFIX)/lib $(call INSTALL_TRITON,$(DESTDIR)$(PREFIX)/backends/rukh)

stage: run-tools
	$(CARGO_CAPI) capi install --release --prefix=$(STAGE) --libdir=$(LIB_PATH)
	$(call without_libgcc,$(LIB_PATH))
	RUKH_LINK_FOLDER=$(LIB_PATH) $(INSTALL_GENERATE) --prefix=$(STAGE) --libdir=$(LIB_PATH)
	RUKH_LINK_FOLDER=$(LIB_PATH) $(call INSTALL_EP,$(LIB_PATH))

onnxruntime-ep: stage ## build librukh and its plugin for ONNX Runtime into build/prefix/lib (docs/onnxruntime-plugin.md)

models: build/models/.exported ## export the 14 test models into build/models (needs torch, 2.5 GB)

kernel-table: ## what AMD's compiler made of each GPU kernel, as build/kernels.md
	@scripts/install_packages.sh $(RUN_PACKAGES) $(KERNEL_PACKAGES) llvm-19
	RUKH_GPU_TARGETS=all $(CARGO) check --lib
	python3 scripts/docs/kernel_table.py

# --- the parts of `make test` -------------------------------------------------------------------

lint: deny ## formatting, clippy, documentation, all without a warning; licences of dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	for other in fuzz benches/rten onnxruntime/clients/rust; do \
		$(CARGO) metadata --quiet --locked --format-version 1 --manifest-path $$other/Cargo.toml >/dev/null || exit 1; \
	done

deny: $(CARGO_DENY) ## licences, duplicates and sources of the dependencies (deny.toml)
	$(CARGO_DENY) check licenses bans sources

deny-advisories: $(CARGO_DENY) ## known defects of the dependencies; fetches the RustSec database from GitHub
	$(CARGO_DENY) check advisories

# A process for each processor: most tests of Python compute with one thread.
PYTEST = -m pytest --quiet --numprocesses auto --maxprocesses 8 --dist worksteal

# Of all packages, whatever is run of them: for a selection of packages Cargo compiles anew what then has other features.
TEST = $(CARGO) test --workspace

test-rust: ## unit tests and tests of the command; those of CPU kernels also with fewer vector instructions
	$(TEST)
	scripts/test_levels.sh quick

test-levels: build/onnx-data/VERSION ## tests of the CPU's kernels at each level of vector instructions, and under qemu-user
	scripts/install_packages.sh qemu-user
	scripts/test_levels.sh

test-cross: run-tools ## the library cross-compiled for ARM Linux and for Windows; unit tests and C tests by qemu-user and wine
	scripts/test_cross.sh $(CARGO_CAPI)

# One of the four ways to find and link the library, of which a static one takes 45 programs of 40 MB; `make test-c
# C_VARIANTS=` runs all. Examples are built by pkg-config, and one program without any shared library.
C_VARIANTS ?= package-shared sanitized valgrind

test-c: stage ## the C and C++ tests against the installed library (C_VARIANTS), and the ABI check
	capi-tests/run.sh $(STAGE) $(C_VARIANTS)
	scripts/test_examples.sh $(STAGE) $(BUILD)/examples
	scripts/abi.sh check $(STAGE)

conformance: build/onnx-data/VERSION ## the ONNX standard's own test cases
	RUKH_ONNX_DATA=$(BUILD)/onnx-data $(TEST) --test conformance -- --nocapture

test-docs: stage $(VENV)/.test ## build and run the code that the documentation shows
	python3 scripts/docs/charts.py --check
	python3 scripts/docs/measurements.py --check docs/performance/tables.md
	$(TEST) --quiet --no-run --test command
	python3 scripts/test_docs.py $(STAGE) target/debug/rukh $(PYTHON)

test-python: stage $(VENV)/.test ## build and install the Python package, run its tests and the ONNX standard's own suite
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so $(PYTHON) -m pip install --quiet --force-reinstall --no-deps ./python
	$(PYTHON) $(PYTEST) python/tests

test-properties: test-python ## as many random cases of each operator as take minutes (PROPERTY_DRAWS, default 2000; PROPERTY_SEED)
	RUKH_PROPERTY_DRAWS=$(or $(PROPERTY_DRAWS),2000) RUKH_PROPERTY_SEED=$(or $(PROPERTY_SEED),random) \
		$(PYTHON) -m pytest --quiet -rP python/tests/properties

# Random graphs beside ONNX Runtime (python/tests/graphs). They need no installed package.
GRAPH_LEVELS := all
GPU_GRAPHS := 100
RUN_GRAPHS = cd python/tests && RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=$(CURDIR)/python/src $(1) $(PYTHON) -m graphs \
	--seed $(or $(GRAPH_SEED),1) --levels $(GRAPH_LEVELS) --keep $(BUILD)/graphs

test-graphs: stage $(VENV)/.test emulator ## random graphs (GRAPHS, GRAPH_SEED) on the CPU and on an emulated GPU
	$(call RUN_GRAPHS) --graphs $(or $(GRAPHS),2000)
	$(call RUN_GRAPHS,$(EMULATED)) --graphs $(GPU_GRAPHS) --provider hip

test-graphs-full: GRAPHS ?= 20000
test-graphs-full: GRAPH_SEED ?= random
test-graphs-full: GRAPH_LEVELS := none,basic,all
test-graphs-full: GPU_GRAPHS := 2000
test-graphs-full: test-graphs ## as test-graphs, many, at every optimisation level

# Where the library in ONNX Runtime's place is installed for tests, with the librukh that it is linked to.
DOOR := $(BUILD)/onnxruntime/prefix/lib

door: stage
	RUKH_LINK_FOLDER=$(LIB_PATH) $(INSTALL_ONNXRUNTIME) --prefix=$(BUILD)/onnxruntime/prefix --libdir=$(DOOR)
	cp -af $(LIB_PATH)/librukh.so* $(DOOR)
	command -v npm >/dev/null || scripts/install_packages.sh nodejs npm

RUN_CLIENTS = RUKH_HIP_LIBRARY=$(BUILD)/emulator/libamdhip64.so AMDEMU_ARCH=gfx1100 onnxruntime/clients/run.sh $(DOOR) $(PYTHON)

test-onnxruntime: door emulator $(VENV)/.test ## programs for ONNX Runtime, as their registries have them, on rukh (ORT_INCLUDE, ORT_GO, ORT_JAR, ORT_JAVA: onnxruntime/clients/run.sh)
	$(EMULATED) $(TEST) --quiet $(patsubst onnxruntime/tests/%.rs,--test %,$(wildcard onnxruntime/tests/*.rs))
	scripts/install_packages.sh libpython3.11
	$(RUN_CLIENTS)

test-onnxruntime-models: door emulator $(VENV)/.test build/models/.clients ## the same programs with three of the exported models, compared with PyTorch's outputs
	RUKH_MODELS=$(BUILD)/models $(RUN_CLIENTS)

HIP_ARCHES := gfx1100 gfx90a
# Those that unit tests of kernels and sessions run on as the host gives the work; on gfx1100 they run with HIP_ORDERS.
HIP_UNIT_ARCHES := gfx90a
# Cases of the standard with the checks below.
HIP_SAMPLE ?= 150
# All checks in one run, and those that the unit tests are run with: with AMDEMU_CHECK they take ten times as long.
# `make test-hip-full` has a run for each, which tells what a failure is about.
HIP_CHECKS := "AMDEMU_CHECK=all AMDEMU_SHUFFLE=7 AMDEMU_DEFER=1"
HIP_ORDERS := "AMDEMU_SHUFFLE=7 AMDEMU_DEFER=1"
HIP_CONFORMANCE = RUKH_PROVIDER=hip RUKH_ONNX_DATA=$(BUILD)/onnx-data \
	$(TEST) --quiet --test conformance -- --nocapture

test-hip: emulator build/onnx-data/VERSION stage ## the HIP provider on an emulated GPU: unit tests of kernels and sessions, the standard's cases
	printf '%s\n' $(HIP_ARCHES) | xargs -P 2 -I {} env AMDEMU_ARCH={} $(EMULATED) $(HIP_CONFORMANCE)
	for arch in $(HIP_UNIT_ARCHES); do \
		AMDEMU_ARCH=$$arch $(EMULATED) $(TEST) --quiet --lib -- hip session::tests || exit 1; \
	done
	$(EMULATED) $(TEST) --quiet --test command info_counts
	$(EMULATED) $(TEST) --quiet --test devices --test hip_options --test hip_memory --test offline_tuning --test pictures
	cmake -S capi-tests -B $(BUILD)/capi-tests/device -G Ninja -DCMAKE_PREFIX_PATH=$(STAGE) >/dev/null
	cmake --build $(BUILD)/capi-tests/device --target device --target device_options --target locations --target operators_captured --target operators_gpu >/dev/null
	for test in device device_options locations; do \
		(cd capi-tests && $(EMULATED) $(BUILD)/capi-tests/device/$$test models) || exit 1; \
	done
	clang-19 -O2 -x hip --offload-arch=gfx1100 --no-gpu-bundle-output -nogpuinc -nogpulib -mcode-object-version=4 \
		--cuda-device-only capi-tests/kernels/scale.hip -o $(BUILD)/capi-tests/scale.co
	for check in AMDEMU_DEFER=0 $(HIP_CHECKS); do \
		for test in operators_captured operators_gpu; do \
			(cd capi-tests && env AMDEMU_ARCH=gfx1100 $$check $(EMULATED) $(BUILD)/capi-tests/device/$$test models $(BUILD)/capi-tests/scale.co) || exit 1; \
		done; \
		(cd capi-tests && env AMDEMU_ARCH=gfx1100 $$check $(EMULATED) $(BUILD)/capi-tests/device/locations models) || exit 1; \
		(cd capi-tests && env AMDEMU_ARCH=gfx1100 $$check $(EMULATED) $(BUILD)/capi-tests/device/device models) || exit 1; \
	done
	$(EMULATED) $(MAKE) --no-print-directory -C examples/memory run PREFIX=$(STAGE) BUILD=$(BUILD)/examples/memory
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(EMULATED) $(PYTHON) $(PYTEST) python/tests/test_device.py python/tests/test_generation.py python/tests/test_artifacts.py \
		python/tests/test_providers.py python/tests/test_quantized_caches.py python/tests/test_quantized_graphs.py python/tests/test_window_caches.py python/tests/test_reach.py python/tests/test_adapters.py python/tests/test_text_operators.py
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(EMULATED) $(PYTHON) -m pytest --quiet python/tests/test_decode.py -k gpu
	for check in $(HIP_ORDERS); do \
		env $$check $(EMULATED) $(TEST) --quiet --lib -- hip session::tests || exit 1; \
	done
	for check in $(HIP_CHECKS); do \
		env $$check RUKH_SAMPLE=$(HIP_SAMPLE) $(EMULATED) $(HIP_CONFORMANCE) || exit 1; \
	done

test-hip-full: export RUKH_GPU_TARGETS := all
test-hip-full: HIP_ARCHES := gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1150 gfx1151 gfx1200 gfx1201
test-hip-full: HIP_UNIT_ARCHES = $(HIP_ARCHES)
test-hip-full: HIP_SAMPLE := 100000
test-hip-full: HIP_CHECKS := AMDEMU_CHECK=all AMDEMU_SHUFFLE=7 AMDEMU_DEFER=1
test-hip-full: HIP_ORDERS := AMDEMU_CHECK=all AMDEMU_SHUFFLE=7 AMDEMU_DEFER=1
test-hip-full: test-hip ## as test-hip, with kernels for every target, each emulated, and all cases with all checks

test-hip-models: emulator build/models/.exported ## whole models on an emulated GPU, compared with PyTorch's outputs (RUKH_CASES: parts of names)
	RUKH_MODELS=$(BUILD)/models RUKH_PROVIDER=hip $(EMULATED) $(TEST) --test models -- --nocapture

predict: emulator build/models/.exported ## predicted times of the exported models on a card (CARD and its TARGET, default 7900xtx and gfx1100)
	$(CARGO) build --quiet -p amdemu -p rukh-cli
	$(EMULATED) scripts/predict_models.sh $(or $(CARD),7900xtx) $(or $(TARGET),gfx1100) $(BUILD)/models $(BUILD)/predict

test-hiprtc: ## compile every kernel with the HIP runtime's own compiler (Debian's libamdhip64-5)
	scripts/install_packages.sh $(HIPRTC_PACKAGES)
	python3 scripts/compile_with_hiprtc.py

test-models: build/models/.exported
	RUKH_MODELS=$(BUILD)/models $(CARGO) test --release -p rukh-cli --test models --test allocations --test memory -- --nocapture

test-quantized: stage build/quantized/.written ## compare quantized models with ONNX Runtime
	RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=python/src $(PYTHON) scripts/models/compare_quantized.py \
		--models $(BUILD)/models --quantized $(BUILD)/quantized

# Models whose runs on an emulated GPU take seconds. The example of custom operators has operators of the program's own,
# which cannot be compiled.
EXAMPLE_MODELS := examples/digits/digits.onnx examples/generate/model/model.onnx
SMALL_MODELS := $(EXAMPLE_MODELS) $(BUILD)/models/mobilenet_v3_large/model.onnx $(BUILD)/quantized/mobilenet_v3_large/*.onnx
COMPARE_COMPILED = $(PYTHON) scripts/models/compare_compiled.py --command target/release/rukh --folder $(BUILD)/compiled

test-compiled: export RUKH_GPU_TARGETS := all
test-compiled: emulator build/quantized/.written ## models compiled for the CPU and five GPUs answer like the models, bit for bit: on the CPU, small ones also on emulated GPUs
	$(CARGO) build --release -p rukh-cli
	$(COMPARE_COMPILED) $(EXAMPLE_MODELS) $(BUILD)/models/*/model.onnx $(BUILD)/quantized/*/*.onnx
	for arch in gfx90a gfx942 gfx1100 gfx1201; do \
		AMDEMU_ARCH=$$arch $(EMULATED) $(COMPARE_COMPILED) --provider hip $(SMALL_MODELS) || exit 1; \
	done

# In bytes. Whoever packages the library reckons with it: raise it only for a reason that CHANGELOG.md gives.
LIBRARY_LIMIT := 30000000

test-size: export RUKH_GPU_TARGETS := all
test-size: ## the library with kernels for all GPUs is not larger than LIBRARY_LIMIT says
	$(CARGO) build --release --lib
	@size=$$(stat --format=%s target/release/librukh.so) && if [ $$size -gt $(LIBRARY_LIMIT) ]; then \
		echo "target/release/librukh.so with kernels for all targets has $$size bytes; the limit is $(LIBRARY_LIMIT) (LIBRARY_LIMIT in the Makefile)" >&2; \
		exit 1; \
	else \
		echo "target/release/librukh.so has $$size bytes, of $(LIBRARY_LIMIT) at most"; \
	fi

# Stock ONNX Runtime with the plugin, in Python environments of their own.
EP_VENV := $(BUILD)/venv-onnxruntime
TEST_EP = RUKH_ONNXRUNTIME_EP=$(LIB_PATH)/librukh_onnxruntime_ep.so RUKH_ONNX_DATA=$(BUILD)/onnx-data

# What depends on the order of streams: also with work that the emulated GPU does when somebody waits for it.
EP_STREAMS := $(foreach part,streams device memory session,onnxruntime-ep/tests/test_$(part).py)

test-onnxruntime-ep: stage emulator build/onnx-data/VERSION $(EP_VENV)/.test ## the plugin in stock ONNX Runtime, on the CPU and on an emulated GPU
	$(TEST_EP) $(EP_VENV)/bin/python $(PYTEST) onnxruntime-ep/tests
	$(TEST_EP) AMDEMU_ARCH=gfx1100 $(EMULATED) $(EP_VENV)/bin/python $(PYTEST) onnxruntime-ep/tests -k "not cpu-"
	$(TEST_EP) AMDEMU_ARCH=gfx1100 AMDEMU_DEFER=1 $(EMULATED) $(EP_VENV)/bin/python -m pytest --quiet $(EP_STREAMS) -k "not cpu-"

bench-onnxruntime-ep: door $(EP_VENV)/.test ## time the digits model through the plugin, through libonnxruntime.so.1 on rukh and through rukh's own API, in turns
	$(EP_VENV)/bin/python scripts/bench/plugin_overhead.py --plugin $(LIB_PATH)/librukh_onnxruntime_ep.so \
		--library $(LIB_PATH)/librukh.so.0.1 --most 15 examples/digits/digits.onnx
	$(EP_VENV)/bin/python scripts/bench/plugin_overhead.py --drop-in $(DOOR)/libonnxruntime.so.1 \
		--library $(DOOR)/librukh.so.0.1 --most 5 examples/digits/digits.onnx

test-onnxruntime-ep-full: test-onnxruntime-ep $(EP_VENV)-oldest/.test build/models/.exported ## as test-onnxruntime-ep, with the oldest ONNX Runtime, and the exported models
	$(TEST_EP) RUKH_MODELS=$(BUILD)/models AMDEMU_ARCH=gfx1100 $(EMULATED) $(EP_VENV)/bin/python -m pytest --quiet onnxruntime-ep/tests/test_models.py
	$(TEST_EP) AMDEMU_ARCH=gfx1100 $(EMULATED) $(EP_VENV)-oldest/bin/python -m pytest --quiet onnxruntime-ep/tests --ignore onnxruntime-ep/tests/test_standard.py

# Triton Inference Server as the package nvidia-pytriton has it, in a Python environment of its own.
TRITON_VENV := $(BUILD)/venv-triton
TEST_TRITON = RUKH_TRITON_BACKEND=$(BUILD)/triton/backends/rukh/libtriton_rukh.so RUKH_LIBRARY=$(LIB_PATH)/librukh.so.0.1

test-triton: stage emulator $(TRITON_VENV)/.test ## the backend in Triton Inference Server, on the CPU and on an emulated GPU
	RUKH_LINK_FOLDER=$(LIB_PATH) $(call INSTALL_TRITON,$(BUILD)/triton/backends/rukh)
	$(TEST_TRITON) $(TRITON_VENV)/bin/python -m pytest --quiet triton/tests
	$(TEST_TRITON) AMDEMU_ARCH=gfx1100 $(EMULATED) $(TRITON_VENV)/bin/python -m pytest --quiet triton/tests -k "gpu or document"

# The two libraries as scripts/bench/triton_*.py take them.
BENCH_TRITON = --backend $(BUILD)/triton/backends/rukh/libtriton_rukh.so --library $(LIB_PATH)/librukh.so.0.1

bench-triton: stage $(TRITON_VENV)/.test build/models/.resnet50 ## time the digits model and ResNet-50 in Triton beside the C API, in turns, then 64 clients for ten minutes (BENCH: options of scripts/bench/triton_load.py)
	RUKH_LINK_FOLDER=$(LIB_PATH) $(call INSTALL_TRITON,$(BUILD)/triton/backends/rukh)
	$(TRITON_VENV)/bin/python scripts/bench/triton_overhead.py $(BENCH_TRITON)
	$(TRITON_VENV)/bin/python scripts/bench/triton_overhead.py $(BENCH_TRITON) --requests 100 \
		--model $(BUILD)/models/resnet50/model.onnx --input input --shape 3,224,224 --output output
	$(TRITON_VENV)/bin/python scripts/bench/triton_load.py $(BENCH_TRITON) $(BENCH)

# koffi brings its compiled part in a package of its own; its install script would look for a compiler.
test-bindings: export RUKH_LIBRARY := $(LIB_PATH)/librukh.so
test-bindings: stage ## the packages for other languages (bindings/), with what they need from their registries
	command -v npm >/dev/null || scripts/install_packages.sh nodejs npm
	cd bindings/node && npm install --silent --ignore-scripts --no-audit --no-fund && npm test --silent
	command -v go >/dev/null || scripts/install_packages.sh golang-go
	cd bindings/go && test -z "$$(gofmt -l .)" && go vet ./... && go test -count=1 ./...

TEST_SERVE = RUKH_LIBRARY=$(LIB_PATH)/librukh.so PYTHONPATH=$(CURDIR)/python/src RAY_USAGE_STATS_ENABLED=0

test-serve: stage emulator $(SERVE_VENV)/.test ## models served by Ray (docs/serving.md) on a cluster of this machine, with replicas killed under load; on the CPU and on an emulated GPU
	scripts/install_packages.sh curl
	$(TEST_SERVE) $(SERVE_VENV)/bin/python -m pytest --quiet python/tests/serving python/tests/test_serving_protocol.py python/tests/test_serving_batches.py
	$(TEST_SERVE) $(EMULATED) $(SERVE_VENV)/bin/python -m pytest --quiet python/tests/serving/test_serving_gpu.py

bench-serve: stage $(SERVE_VENV)/.test ## load on models served by Ray while replicas are killed, with every answer checked (BENCH: options of scripts/bench/serve_load.py)
	$(TEST_SERVE) $(SERVE_VENV)/bin/python scripts/bench/serve_load.py $(BENCH)

fuzz: ## fuzz the model loader, shape inference and the kernels (FUZZ_SECONDS each, default 600)
	scripts/fuzz.sh $(or $(FUZZ_SECONDS),600)

# --- what they need -----------------------------------------------------------------------------

run-tools:
	@scripts/install_packages.sh $(INSTALL_PACKAGES)
	@$(MAKE) --no-print-directory $(CARGO_CAPI)

tools:
	@scripts/install_packages.sh $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory $(CARGO_CAPI) $(VENV)/.test

# Unoptimised it builds in less than half the time, and it only runs the compiler.
$(BUILD)/tools/bin/cargo-capi:
	CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR=$(BUILD)/tools/target \
		$(CARGO) install cargo-c --version $(CARGO_C_VERSION) --locked --bin cargo-capi --root $(BUILD)/tools
	rm -rf $(BUILD)/tools/target

# Takes a minute on two cores when unoptimised.
$(BUILD)/tools/bin/cargo-deny:
	CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR=$(BUILD)/tools/deny \
		$(CARGO) install cargo-deny --version $(CARGO_DENY_VERSION) --locked --root $(BUILD)/tools
	rm -rf $(BUILD)/tools/deny

$(VENV)/.test: scripts/requirements.txt
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --requirement scripts/requirements.txt
	touch $@

$(EP_VENV)/.test: onnxruntime-ep/tests/requirements.txt
	python3 -m venv $(EP_VENV)
	$(EP_VENV)/bin/python -m pip install --quiet --requirement $<
	touch $@

$(EP_VENV)-oldest/.test: onnxruntime-ep/tests/requirements-oldest.txt
	python3 -m venv $(EP_VENV)-oldest
	$(EP_VENV)-oldest/bin/python -m pip install --quiet --requirement $<
	touch $@

# The server's package without what it depends on: only its program is run.
$(TRITON_VENV)/.test: triton/tests/requirements.txt triton/tests/server.txt
	python3 -m venv $(TRITON_VENV)
	$(TRITON_VENV)/bin/python -m pip install --quiet --requirement $<
	$(TRITON_VENV)/bin/python -m pip install --quiet --no-deps --requirement triton/tests/server.txt
	touch $@

$(SERVE_VENV)/.test: scripts/requirements-serve.txt scripts/requirements.txt
	python3 -m venv $(SERVE_VENV)
	$(SERVE_VENV)/bin/python -m pip install --quiet --requirement $<
	touch $@

$(VENV)/.full: scripts/requirements-full.txt $(VENV)/.test
	$(PYTHON) -m pip install --quiet --requirement scripts/requirements-full.txt
	touch $@

$(VENV)/.bench: scripts/requirements-bench.txt $(VENV)/.full
	$(PYTHON) -m pip install --quiet --requirement scripts/requirements-bench.txt
	touch $@

build/onnx-data/VERSION: scripts/onnx_cases.py $(VENV)/.test
	$(PYTHON) scripts/onnx_cases.py $(BUILD)/onnx-data

build/models/.exported: scripts/models/*.py $(VENV)/.full
	$(PYTHON) scripts/models/export.py --out $(BUILD)/models
	touch $@ $(BUILD)/models/.clients $(BUILD)/models/.resnet50

# Those that onnxruntime/clients/cases.py takes, of the 14.
build/models/.clients: scripts/models/*.py $(VENV)/.full
	$(PYTHON) scripts/models/export.py --out $(BUILD)/models all_minilm_l6_v2 lstm_classifier mobilenet_v3_large
	touch $@

build/models/.resnet50: scripts/models/*.py $(VENV)/.full
	$(PYTHON) scripts/models/export.py --out $(BUILD)/models resnet50
	touch $@

build/quantized/.written: scripts/models/quantize.py build/models/.exported
	$(PYTHON) scripts/models/quantize.py --models $(BUILD)/models --out $(BUILD)/quantized
	touch $@

# With a test of its own, whose library is that of all tests. Programs that ask for a version of HIP's
# runtime find it under that version's name.
emulator: ## build the emulated AMD GPU as build/emulator/libamdhip64.so
	$(TEST) --quiet --no-run --test rooms
	mkdir -p $(BUILD)/emulator
	for name in libamdhip64.so libamdhip64.so.5 libamdhip64.so.6 libamdhip64.so.7; do \
		cp -f target/debug/deps/libamdhip64.so $(BUILD)/emulator/$$name; \
	done

# --- care ---------------------------------------------------------------------------------------

format: ## format the Rust sources
	$(CARGO) fmt --all

clean: ## remove what was built, but keep tools and downloaded data
	$(CARGO) clean
	rm -rf $(BUILD)/prefix $(BUILD)/examples $(BUILD)/capi-tests $(BUILD)/docs python/build

distclean: clean ## remove everything that is not in the repository
	rm -rf $(BUILD)
