# SPDX-License-Identifier: Apache-2.0
# Builds all of cuplug into $(BUILD): the core, the stock plugins and the Python package.
# `make help` lists the targets. Operators, core files and Cython modules are found by wildcard.

VENV   ?= .venv#        `make VENV=` uses the packages of the current Python and no network
PYTHON ?= python3#      makes the virtual environment, or is used itself when VENV is empty
BUILD  ?= build
PREFIX ?= /usr/local
CC     ?= cc
NVCC   ?= $(firstword $(wildcard $(shell command -v nvcc) $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= $(filter $(patsubst compute_%,%,$(if $(NVCC),$(shell $(NVCC) --list-gpu-arch))),75 80 86 89 90 100 120)
SANITIZE ?=#            address,undefined or thread, for the core and the host entries
WERROR ?= -Werror#      empty where a compiler to come may warn of more: `pip install` does that
V      ?=#              `make V=1` shows the commands

PY      := $(if $(VENV),$(VENV)/bin/python,$(PYTHON))
PACKAGE := $(BUILD)/python/cuplug
CLANG_FORMAT := $(if $(VENV),$(VENV)/bin/)clang-format
RUN     := PYTHONPATH=$(abspath $(BUILD)/python)$(addprefix :,$(PYTHONPATH)) $(PY)
NATIVE   = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -uV))
ARCHS   := $(if $(filter native,$(CUDA_ARCHS)),$(or $(NATIVE),$(error CUDA_ARCHS=native: nvidia-smi names no GPU)),$(CUDA_ARCHS))

comma  := ,
space  := $(subst ,, )
CFLAGS ?= -O2
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -Wall -Wextra $(WERROR) -Iinclude \
  $(CFLAGS) $(if $(SANITIZE),-g -fno-omit-frame-pointer -fsanitize=$(SANITIZE))
# Loops with a condition become vector instructions only where floating-point exceptions may differ.
# A product and a sum are rounded each, whether or not the CPU can do both at once.
VECTORISED := -O3 -fno-trapping-math -ffp-contract=off
LDFLAGS    += -Wl,-z,now $(if $(SANITIZE),-fsanitize=$(SANITIZE),-Wl,-z,defs)
OPENMP     := $(shell echo 'int main(void){return 0;}' | $(CC) -fopenmp -xc - -o /dev/null 2>/dev/null && echo -fopenmp)

CORE       := $(patsubst core/%.c,$(BUILD)/core/%.o,$(wildcard core/*/*.c))
PLUGINS    := $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/*.c)))
LIBRARY    := $(PACKAGE)/lib/libcuplug.so.1
STOCK      := $(PLUGINS:%=$(PACKAGE)/lib/cuplug/lib%.so)
HEADERS    := $(wildcard include/cuplug/*.h)
ROOMS      := cython/cuplug $(patsubst %/,%,$(wildcard cython/cuplug/*/))
SOURCES    := $(foreach room,$(ROOMS),$(wildcard $(addprefix $(room)/,*.py *.pyi *.pxd *.typed templates/*)))
STAGED     := $(SOURCES:cython/%=$(BUILD)/python/%) $(HEADERS:%=$(PACKAGE)/%) $(PACKAGE)/lib/pkgconfig/cuplug.pc

.PHONY: all demo test test-all gpu-test array-test bench pictures instructions lint format fuzz install clean help environment core plugins python stale FORCE
all: environment core plugins python ## Build everything into build/ (the default)
core: $(LIBRARY) ## Build libcuplug
plugins: $(STOCK) ## Build the stock plugins

# The recipe needs the environment's Python, so the modules are a make of their own once that exists.
python: environment $(LIBRARY) $(STOCK) $(STAGED) stale ## Build the Python package
	@$(MAKE) --no-print-directory -f build_backend/python.mk BUILD=$(BUILD) PY="$(PY)" CC="$(CC)" PACKAGE=$(PACKAGE) \
	  RUN="$(RUN)" SANITIZE="$(SANITIZE)" WERROR=$(WERROR) V=$(V)

# What was made of a file that is gone would be imported, listed and packaged all the same.
MODULE_OF = cython/cuplug/$(firstword $(subst ., ,$(1:$(PACKAGE)/%=%))).pyx
STALE     = $(filter-out $(STOCK),$(wildcard $(PACKAGE)/lib/cuplug/*.so)) \
  $(foreach made,$(filter-out $(PACKAGE)/lib/%,$(wildcard $(PACKAGE)/*.so $(PACKAGE)/*/*.so)),$(if $(wildcard $(call MODULE_OF,$(made))),,$(made)))
stale:
	@rm -f $(STALE)
	@test ! -d $(PACKAGE) || find $(PACKAGE) -xtype l -delete

demo: all ## Run gather on 128 Mi values, on the CPU and on the GPU if there is one
	@$(RUN) examples/demo.py

# On all CPUs, where pytest-xdist is installed; PYTEST=-n0 is for one process.
PARALLEL = $(shell $(PY) -c 'import xdist' 2>/dev/null && echo --numprocesses=auto --dist=loadgroup)
test: all ## Run the tests but the slow ones, and those that need a GPU where there is none
	$(RUN) -m pytest $(PARALLEL) $(PYTEST)

test-all: all ## Run the slow tests too, and the others at their full length
	CUPLUG_TEST_ALL=1 $(RUN) -m pytest $(PARALLEL) $(PYTEST)

gpu-test: all ## Run the tests that need a GPU, then again under compute-sanitizer
	$(RUN) -m pytest -m gpu $(PYTEST)
	@if command -v compute-sanitizer >/dev/null; then set -e; for tool in memcheck racecheck; do \
	  echo "compute-sanitizer --tool $$tool"; \
	  PYTHONPATH=$(abspath $(BUILD)/python)$(addprefix :,$(PYTHONPATH)) compute-sanitizer --target-processes application-only --launch-timeout 120 --tool $$tool --error-exitcode 1 \
	    $(PY) -m pytest -q -m "gpu and sanitizer" $(PYTEST); done; \
	else echo "compute-sanitizer was not found: its runs are left out"; fi

TORCH ?= 2.4.1 2.9.1 2.15.0
array-test: all ## Run the tests of arrays with each version of PyTorch in TORCH, and with JAX; 5 GB each
	@$(PYTHON) build_backend/requirements.py > $(BUILD)/requirements.txt
	@set -e; for version in $(TORCH); do folder=$(BUILD)/torch-$$version; \
	  echo "PyTorch $$version"; $(PYTHON) -m venv $$folder; \
	  $$folder/bin/python -m pip install -q --disable-pip-version-check -r $(BUILD)/requirements.txt torch==$$version jax; \
	  PYTHONPATH=$(abspath $(BUILD)/python) $$folder/bin/python -m pytest $(PYTEST) \
	    tests/arrays/test_torch.py tests/arrays/test_libtorch.py tests/arrays/test_dlpack.py \
	    tests/arrays/test_arrays.py tests/house/test_docs.py; done

bench: all ## Measure against the peers that are installed, and draw it
	$(RUN) benchmarks/run.py --output benchmarks/results
	$(RUN) benchmarks/pictures.py --output $(BUILD)/pictures \
	  --table "$$(ls -t benchmarks/results/*.json | head -n 1)"
	$(RUN) benchmarks/pictures.py

pictures: environment ## Draw docs/pictures/ from the committed table
	$(PY) benchmarks/pictures.py

instructions: all ## Count instructions per call; needs valgrind
	$(RUN) benchmarks/instructions.py

C_FILES := git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh'
lint: environment ## Check format, style and types
	$(C_FILES) | xargs $(CLANG_FORMAT) --dry-run -Werror
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

format: environment ## Format all sources
	$(C_FILES) | xargs $(CLANG_FORMAT) -i
	$(PY) -m ruff check --fix-only -q
	$(PY) -m ruff format

FUZZ_SECONDS ?= 60
fuzz: ## Fuzz the table reader and the signature parser with clang's libFuzzer
	@mkdir -p $(BUILD)/fuzz
	for target in table signature; do \
	  clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Icore \
	    tests/fuzz/fuzz_$$target.c core/*/*.c -ldl -o $(BUILD)/fuzz/$$target && mkdir -p $(BUILD)/fuzz/new_$$target && \
	  $(BUILD)/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) $(BUILD)/fuzz/new_$$target tests/fuzz/corpus/$$target || exit 1; done

install: core plugins ## Install the library, headers, cuplug.pc and stock plugins for C programs
	install -d $(DESTDIR)$(PREFIX)/lib/cuplug $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/cuplug
	install -m 755 $(LIBRARY) $(DESTDIR)$(PREFIX)/lib
	ln -sf libcuplug.so.1 $(DESTDIR)$(PREFIX)/lib/libcuplug.so
	install -m 644 $(STOCK) $(DESTDIR)$(PREFIX)/lib/cuplug
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/cuplug
	install -m 644 core/cuplug.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig

clean: ## Remove what was built (the virtual environment stays)
	rm -rf $(BUILD)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.SECONDARY:
.DELETE_ON_ERROR:
say = $(if $(V),,@echo "  $(1)" && )

# ---- Prerequisites: compilers, and the virtual environment unless VENV is empty

ENVIRONMENT := $(or $(VENV),$(BUILD))/environment.stamp
environment: $(ENVIRONMENT)
$(BUILD)/compiler.stamp: $(BUILD)/core.config $(BUILD)/plugins.config
	@sh build_backend/prerequisites.sh compiler "$(CC)" "$(NVCC)"
	@touch $@

$(ENVIRONMENT): pyproject.toml $(BUILD)/environment.config | $(BUILD)/compiler.stamp
	@sh build_backend/prerequisites.sh python "$(PYTHON)" "$(VENV)"
ifneq ($(VENV),)
	@test -x $(VENV)/bin/python || { echo "  make the virtual environment $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "  install what the project needs into $(VENV)"
	@$(PYTHON) build_backend/requirements.py > $(BUILD)/requirements.txt
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(BUILD)/requirements.txt || \
	  { echo "Without network: make VENV= uses the packages of $(PYTHON)" >&2; exit 1; }
endif
	@touch $@

# A file for each set of settings, rewritten only when they change: what depends on it is rebuilt.
PLUGIN_SETTINGS := $(CC) $(ALL_CFLAGS) $(VECTORISED) $(NVCC) $(ARCHS)
CORE_SETTINGS   := $(CC) $(ALL_CFLAGS) $(LDFLAGS)
$(BUILD)/plugins.config: SETTINGS = $(PLUGIN_SETTINGS)
$(BUILD)/core.config: SETTINGS = $(CORE_SETTINGS)
$(BUILD)/link.config: SETTINGS = $(CORE)
$(BUILD)/environment.config: SETTINGS = $(VENV) $(PYTHON)
$(BUILD)/%.config: FORCE
	@mkdir -p $(@D)
	@echo '$(SETTINGS)' | cmp -s - $@ || echo '$(SETTINGS)' > $@

# ---- The core

$(BUILD)/core/%.o: core/%.c $(BUILD)/core.config | $(BUILD)/compiler.stamp
	@mkdir -p $(@D)
	$(call say,compile $<)$(CC) $(ALL_CFLAGS) -Icore -MMD -MP -c $< -o $@

$(LIBRARY): $(CORE) $(BUILD)/link.config
	@mkdir -p $(@D)
	$(call say,link $@)$(CC) -shared -Wl,-soname,libcuplug.so.1 $(CORE) $(LDFLAGS) -ldl -o $@
	@ln -sf libcuplug.so.1 $(@D)/libcuplug.so

# ---- The plugins: <name>.c with host entries and the table, <name>.cu with CUDA entries

ARCH_LIST := $(subst $(space),$(comma),$(strip $(ARCHS:%=%0)))
GENCODE   := $(foreach arch,$(ARCHS),-gencode=arch=compute_$(arch)$(comma)code=sm_$(arch)) \
  $(addprefix -gencode=arch=compute_,$(foreach arch,$(lastword $(ARCHS)),$(arch)$(comma)code=compute_$(arch)))
SIDES      = $(if $(and $(NVCC),$(wildcard plugins/$*.cu)),-DCUPLUG_ARCHITECTURES=$(ARCH_LIST),-DCUPLUG_HOST_ONLY)

LINK_CUDA := $(NVCC) -shared -cudart static $(addprefix -Xlinker ,-z now $(if $(SANITIZE),,-z defs) --exclude-libs=ALL) \
  $(addprefix -Xcompiler ,$(OPENMP) $(addprefix -fsanitize=,$(subst $(comma), ,$(SANITIZE))))

$(BUILD)/plugins/%.o: plugins/%.c $(BUILD)/plugins.config | $(BUILD)/compiler.stamp
	@mkdir -p $(@D)
	$(call say,compile $<)$(CC) $(ALL_CFLAGS) $(VECTORISED) $(or $(OPENMP),-Wno-unknown-pragmas) -Wno-pass-failed $(SIDES) -Iplugins -MMD -MP -c $< -o $@

$(BUILD)/plugins/%.cu.o: plugins/%.cu $(BUILD)/plugins.config | $(BUILD)/compiler.stamp
	@mkdir -p $(@D)
	$(call say,compile $<)$(NVCC) -O3 -std=c++17 -lineinfo $(GENCODE) --threads 2 -Iinclude -Iplugins \
	  -Xcompiler -fPIC,-fvisibility=hidden,-Wall -MMD -MP -MF $(@:.o=.d) -c $< -o $@

.SECONDEXPANSION:
CUDA_OBJECTS = $(if $(NVCC),$(addprefix $(BUILD)/,$(addsuffix .o,$(wildcard plugins/$*/*.cu))))
$(PACKAGE)/lib/cuplug/lib%.so: $(BUILD)/plugins/%/$$*.o $$(CUDA_OBJECTS)
	@mkdir -p $(@D)
	$(call say,link $@)$(if $(filter %.cu.o,$^),$(LINK_CUDA),$(CC) -shared $(OPENMP) $(LDFLAGS)) $(filter %.o,$^) -o $@

# ---- The Python package

$(PACKAGE)/%: cython/cuplug/%
	@mkdir -p $(@D)
	@ln -sfr $< $@

$(PACKAGE)/include/cuplug/%: include/cuplug/%
	@mkdir -p $(@D)
	@ln -sfr $< $@

$(PACKAGE)/lib/pkgconfig/cuplug.pc: core/cuplug.pc
	@mkdir -p $(@D)
	@ln -sfr $< $@

-include $(wildcard $(BUILD)/core/*/*.d $(BUILD)/plugins/*/*.d)
