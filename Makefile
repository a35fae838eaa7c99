# SPDX-License-Identifier: Apache-2.0
# What people ask for; `make help` lists it. What is built, and of what, says build_backend/build.mk.

include build_backend/settings.mk

CLANG_FORMAT := $(if $(VENV),$(VENV)/bin/)clang-format

# The build uses all cores unless the user gave a -j; what follows it runs one after the other.
.NOTPARALLEL:
JOBS  = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(CPUS))
build = +@$(MAKE) $(JOBS) --no-print-directory --output-sync=line -f build_backend/build.mk

.PHONY: all demo test test-all asan-test elsewhere-test gpu-test framework-test array-api-test array-api-extra-test array-api-compat-test cupy-test dask-test cluster-test scipy-test sklearn-test bench gallery pictures site site-test instructions lint format abi abi-test fuzz hostile wheels wheel-test sdist release-check install clean help archive core runtime plugins python
all: ## Build everything into build/ (the default)
archive: ## Build libcuplug.a
core: ## Build libcuplug
runtime: ## Build libcuplug_runtime, which the Python package uses
plugins: ## Build the stock plugins
python: ## Build the Python package
all archive core runtime plugins python:
	$(build) $@

# Of the stock plugins it builds those that it shows.
COMMAND := $(if $(VENV),$(VENV)/bin/cuplug,$(RUN) -m cuplug)
demo: ## Run gather on 128 Mi values, on the CPU and on the GPU if there is one
	$(build) demo
	@$(RUN) examples/demo.py '$(COMMAND)' '$(if $(VENV),$(PY),$(RUN))'

# On all CPUs, where pytest-xdist is installed, which is asked once the packages are; PYTEST=-n0 is
# for one process. A worker that dies ends the run: replaced workers may wait for ever.
WORKERS := --numprocesses=auto --dist=loadgroup --max-worker-restart=0
PARALLEL = $$($(PY) -c 'import xdist' 2>/dev/null && echo $(WORKERS))
test: ## Run the tests but the slow ones, and those that need a GPU where there is none
	$(build) all $(INSTALLED)/test
	$(RUN) -m pytest $(PARALLEL) $(PYTEST)

test-all: ## Run the slow tests too, and the others at their full length
	$(build) all $(INSTALLED)/test
	CUPLUG_TEST_ALL=1 $(RUN) -m pytest $(PARALLEL) $(PYTEST)

# Not the rooms whose tests compile and read files in other processes, nor emulated kernels.
SANITIZED_TESTS ?= $(filter-out %/author %/c %/commands %/compilers %/fixtures %/frameworks %/fuzz %/gallery \
  %/golden %/hostile %/house %/kernels,$(patsubst %/,%,$(wildcard tests/*/)))
asan-test: ## Run the tests of the core, of arrays and operators in a build with the address sanitizer
	@mkdir -p $(BUILD)/asan && { test ! -d $(BUILD)/cython || cp -au $(BUILD)/cython $(BUILD)/asan; } # the same C
	$(MAKE) test NVCC= SANITIZE=address,undefined BUILD=$(BUILD)/asan \
	  PYTEST='$(SANITIZED_TESTS) -k "not emulated" $(PYTEST)'

# The parts whose results depend on the path, the user and the locale.
ELSEWHERE ?= tests/author/test_drop_in.py tests/commands/test_cli.py tests/compilers/test_temporary.py \
  tests/house/test_packaging.py tests/call tests/discovery
elsewhere-test: ## Run both commands of the README in a clone with an unusual path, as an ordinary user
	sh tests/run_elsewhere.sh $(ELSEWHERE)

GPU_JOBS ?= 4
gpu-test: ## Run the tests that need a GPU, GPU_JOBS files at once, some again under compute-sanitizer
	$(build) all $(INSTALLED)/test
	$(RUN) tests/run_on_gpu.py --jobs $(GPU_JOBS) $(PYTEST)

TORCH ?= newest
framework-test: all ## Run the tests with PyTorch (each version in TORCH), JAX, Dask and others; 7 GB each
	@set -e; for version in $(TORCH); do folder=$(BUILD)/frameworks-$$version; \
	  echo "PyTorch $$version"; test -f $$folder/installed || { $(PYTHON) -m venv $$folder && \
	    $$folder/bin/python -m pip install -q --disable-pip-version-check \
	      $$($(PYTHON) build_backend/requirements.py author dev frameworks) \
	      torch$$(test $$version = newest || echo ==$$version) && touch $$folder/installed; }; \
	  $(SEARCH) $$folder/bin/python -m pytest -p no:cacheprovider $(FRAMEWORK_TESTS) $(PYTEST); done
# Of documents, what needs these libraries.
FRAMEWORK_TESTS = $(WORKERS) tests/frameworks tests/interop tests/house/test_docs.py \
  tests/gallery/test_notebook.py \
  -k 'not md-all and not md-nvcc'

cluster-test: ## Test clusters at full length: 10,000 blocks, data of five times the memory
	CUPLUG_TEST_ALL=1 CUPLUG_TEST_LARGE=1 $(MAKE) framework-test \
	  FRAMEWORK_TESTS="$(wildcard tests/frameworks/test_dask_[cmp]*.py)"

# Suites of libraries that compute with arrays of others, in an environment of their own.
SUITES := $(BUILD)/suites
SUITE_ENV = PYTHONPATH="$(abspath tests/array/suites):$(abspath $(BUILD)/python)" CUPLUG_DEVICE=$(DEVICE)
SUITE = cd $(SUITES) && $(SUITE_ENV) NOT_IN_SUITE=$(abspath tests/array/suites/not_in_$1.txt) bin/python -m pytest \
  -q -c pytest.ini --rootdir . -p other_arrays -p no:cacheprovider -W ignore --pyargs $2 $(PYTEST)
$(SUITES)/installed: tests/array/suites/requirements.txt
	$(PYTHON) -m venv $(SUITES)
	$(SUITES)/bin/python -m pip install -q --disable-pip-version-check -r $<
	touch $(SUITES)/pytest.ini $@

SCIPY ?= $(shell cat tests/array/suites/scipy_packages.txt)
scipy-test: all $(SUITES)/installed ## Run SciPy's tests on cuplug's arrays: of the packages in SCIPY
	$(call SUITE,scipy,$(SCIPY:%=scipy.%) -m array_api_backends)

sklearn-test: all $(SUITES)/installed ## Run scikit-learn's tests of the array API on cuplug's arrays
	$(call SUITE,sklearn,sklearn -k array_api)

ARRAY_API_TESTS ?=
array-api-test: all ## Run the public suite array-api-tests, whose folder ARRAY_API_TESTS names
	@test -d "$(ARRAY_API_TESTS)" || { echo "ARRAY_API_TESTS: wanted the folder of array-api-tests"; exit 2; }
	$(build) $(INSTALLED)/array-api
	cd "$(ARRAY_API_TESTS)" && PYTHONPATH="$(abspath $(BUILD)/python)" PYTHONDONTWRITEBYTECODE=1 \
	  ARRAY_API_TESTS_MODULE=cuplug.array_api CUPLUG_DEVICE=$(DEVICE) $(abspath $(PY)) -m pytest -q -p no:cacheprovider --rootdir . \
	  -W ignore --disable-deadline --max-examples $(EXAMPLES) --skips-file $(abspath tests/array/not_in_array_api.txt) array_api_tests
DEVICE ?= cpu
EXAMPLES ?= 10

# cuplug takes the place of CuPy in its list of libraries; it has functions of its own for CuPy.
ARRAY_API_EXTRA ?=
array-api-extra-test: all $(SUITES)/installed ## Run the tests of array-api-extra, whose folder ARRAY_API_EXTRA names
	@test -d "$(ARRAY_API_EXTRA)/tests" || { echo "ARRAY_API_EXTRA: got no folder of array-api-extra"; exit 2; }
	cd "$(ARRAY_API_EXTRA)" && PYTHONPATH="src:$(abspath tests/array/suites):$(abspath $(BUILD)/python)" CUPLUG_DEVICE=$(DEVICE) \
	  $(abspath $(SUITES))/bin/python -m pytest -q -c $(abspath $(SUITES))/pytest.ini --rootdir . -p other_arrays -p no:cacheprovider tests/main \
	  -W error::DeprecationWarning -k 'cupy and not test_delegates' $(PYTEST)

ARRAY_API_COMPAT ?=
array-api-compat-test: all $(SUITES)/installed ## Run the tests of array-api-compat, whose folder ARRAY_API_COMPAT names
	@test -d "$(ARRAY_API_COMPAT)/tests" || { echo "ARRAY_API_COMPAT: got no folder of array-api-compat"; exit 2; }
	cd "$(ARRAY_API_COMPAT)" && PYTHONPATH="src:$(abspath tests/array/suites):$(abspath $(BUILD)/python)" CUPLUG_DEVICE=$(DEVICE) \
	  $(abspath $(SUITES))/bin/python -m pytest -q -c $(abspath $(SUITES))/pytest.ini --rootdir . -p other_arrays -p no:cacheprovider tests \
	  -k cuplug $(PYTEST)

# `cupy` is NumPy's functions of cuplug's arrays: tests/array/suites/cupy_of_cuplug.py.
CUPY ?=
CUPY_TESTS ?= $(shell cat tests/array/suites/cupy_tests.txt)
cupy-test: all $(SUITES)/installed ## Run CuPy's tests, whose folder CUPY names, of the packages in CUPY_TESTS
	@test -d "$(CUPY)/tests/cupy_tests" || { echo "CUPY: got no folder of CuPy"; exit 2; }
	cd "$(CUPY)/tests" && CUPY="$(abspath $(CUPY))" $(SUITE_ENV) NOT_IN_SUITE=$(abspath tests/array/suites/not_in_cupy.txt) \
	  PYTHONDONTWRITEBYTECODE=1 $(abspath $(SUITES))/bin/python -m pytest -q -c $(abspath $(SUITES))/pytest.ini --rootdir . --noconftest \
	  -p cupy_of_cuplug -p no:cacheprovider -W ignore $(CUPY_TESTS:%=cupy_tests/%_tests) $(PYTEST)

# `cupy` is NumPy's functions of cuplug's arrays: tests/array/suites/cupy_in_dask.py.
DASK_TESTS ?= $(shell cat tests/array/suites/dask_tests.txt)
dask-test: all $(SUITES)/installed ## Run Dask's tests of CuPy's arrays on cuplug's arrays: of the modules in DASK_TESTS
	cd $(SUITES) && $(SUITE_ENV) NOT_IN_SUITE=$(abspath tests/array/suites/not_in_dask.txt) bin/python -m pytest \
	  -q -c pytest.ini --rootdir . -p cupy_in_dask -p no:cacheprovider -W ignore --pyargs \
	  $(DASK_TESTS:%=dask.array.tests.test_cupy_%) $(PYTEST)

bench: ## Measure against the peers that are installed, and draw it
	$(build) all $(INSTALLED)/bench
	$(RUN) benchmarks/run.py --output benchmarks/results
	$(RUN) benchmarks/pictures.py --output $(BUILD)/pictures \
	  --table "$$(ls -t benchmarks/results/*.json | head -n 1)"
	$(RUN) benchmarks/pictures.py

gallery: all ## Draw the pictures of docs/gallery.md
	@set -e; for each in mandelbrot heat kmeans image_filter equalisation life; do \
	  echo "draw $$each"; $(RUN) examples/gallery/$$each.py; done

pictures: ## Draw docs/pictures/ from the committed table
	$(build) $(INSTALLED)/bench
	$(PY) benchmarks/pictures.py

site: all ## Make the site of docs/ in build/site; a warning is an error
	$(build) $(INSTALLED)/site
	$(RUN) -m sphinx -q -W --keep-going -b html -d $(BUILD)/site-pages docs $(BUILD)/site

site-test: site ## Try the site in Chromium, for readers who listen or use the keyboard alone
	$(build) $(INSTALLED)/site-test
	$(RUN) -m pytest tests/house/test_accessible.py -m slow $(PYTEST)

instructions: all ## Count instructions per call; needs valgrind
	$(RUN) benchmarks/instructions.py

C_FILES := git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh'
lint: ## Check format, style and types
	$(build) $(INSTALLED)/lint types
	$(C_FILES) | xargs $(CLANG_FORMAT) --dry-run -Werror
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

format: ## Format all sources
	$(build) $(INSTALLED)/lint
	$(C_FILES) | xargs $(CLANG_FORMAT) -i
	$(PY) -m ruff check --fix-only -q
	$(PY) -m ruff format

# Types come from debug information, which the library itself does not have.
define DUMP_ABI
	@$(MAKE) -s core NVCC= CFLAGS="-g -O1" BUILD=$(BUILD)/abi
	@abidw --suppressions core/libcuplug.abignore --headers-dir include/cuplug --drop-private-types \
	  --exported-interfaces-only --no-show-locs --no-comp-dir-path --no-corpus-path --no-architecture \
	  --out-file $(1) $(BUILD)/abi/python/cuplug/lib/libcuplug.so.1
endef
abi-test: ## Compare the ABI of libcuplug with tests/golden/libcuplug.abi; needs abigail-tools
	$(call DUMP_ABI,$(BUILD)/abi/libcuplug.abi)
	@abidiff tests/golden/libcuplug.abi $(BUILD)/abi/libcuplug.abi || \
	  { echo "the ABI differs from tests/golden/libcuplug.abi; \`make abi\` accepts an addition"; exit 1; }

abi: ## Write the ABI of libcuplug to tests/golden/libcuplug.abi
	$(call DUMP_ABI,tests/golden/libcuplug.abi)

FUZZ_SECONDS ?= 60
FUZZ_FLAGS = -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
fuzz: ## Fuzz the table reader, the signature parser and calls with clang's libFuzzer
	@mkdir -p $(BUILD)/fuzz
	for target in table signature bind; do \
	  clang -std=c11 -D_GNU_SOURCE -g -O1 $(FUZZ_FLAGS) -Iinclude -Icore -Iruntime \
	    tests/fuzz/fuzz_$$target.c core/*/*.c runtime/base/core.c runtime/entry/define.c runtime/signature/terms.c -ldl -o $(BUILD)/fuzz/$$target && mkdir -p $(BUILD)/fuzz/new_$$target && \
	  $(BUILD)/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) $(BUILD)/fuzz/new_$$target tests/fuzz/corpus/$$target || exit 1; done

MINUTES ?= 60
hostile: all ## Attack cuplug for MINUTES minutes: damaged files, lies, races, lack of everything
	$(build) $(INSTALLED)/test
	$(RUN) tests/hostile/run.py --minutes $(MINUTES)

PYTHONS ?= python3.11 python3.12 python3.13 python3.14 python3.14t python3.15
DIST ?= dist
wheels: ## Build wheels for PYTHONS, those of them that are here, into DIST
	$(build) $(INSTALLED)/wheels
	CC="$(CC)" NVCC="$(NVCC)" $(PY) build_backend/wheels.py $(DIST) $(PYTHONS)

wheel-test: ## Build a wheel twice, and try it in a clean environment
	$(build) all $(INSTALLED)/wheel-test
	$(RUN) -m pytest tests/house/test_wheels.py tests/house/test_release.py -m "slow or not slow" $(PYTEST)

sdist: ## Pack the sources into DIST
	$(build) $(INSTALLED)/build
	@mkdir -p $(DIST)
	PYTHONPATH=build_backend $(PY) -c 'import backend; print("$(DIST)/" + backend.build_sdist("$(DIST)"))'

TAG ?=
release-check: ## Hold all versions and the changelog against each other, and against TAG
	$(PYTHON) build_backend/release.py $(TAG)

# The files that pkg-config and CMake read find the headers from where they lie.
UP = $(shell realpath -m --relative-to=$(LIBDIR) $(PREFIX))
install: archive core plugins ## Install the libraries, headers, stock plugins, and what pkg-config and CMake read
	install -d $(addprefix $(DESTDIR),$(addprefix $(LIBDIR)/,cuplug pkgconfig cmake/cuplug) $(PREFIX)/include/cuplug)
	install -m 755 $(LIBRARY) $(DESTDIR)$(LIBDIR)
	install -m 644 $(ARCHIVE) $(DESTDIR)$(LIBDIR)
	ln -sf libcuplug.so.1 $(DESTDIR)$(LIBDIR)/libcuplug.so
	install -m 644 $(STOCK) $(FIXTURES) $(DESTDIR)$(LIBDIR)/cuplug
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/cuplug
	install -m 644 core/cuplug.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 $(CMAKE_FILES) $(DESTDIR)$(LIBDIR)/cmake/cuplug
	sed -i 's|^prefix=.*|prefix=$${pcfiledir}/../$(UP)|' $(DESTDIR)$(LIBDIR)/pkgconfig/cuplug.pc
	sed -i 's|{_cuplug_lib}/\.\."|{_cuplug_lib}/$(UP)"|' $(DESTDIR)$(LIBDIR)/cmake/cuplug/cuplug-config.cmake

clean: ## Remove what was built (the virtual environment stays)
	rm -rf $(BUILD)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14
