# SPDX-License-Identifier: Apache-2.0
# What a user may set, and where things are. Included by the Makefile and by build.mk.

VENV   ?= .venv#        `make VENV=` uses the packages of the current Python and no network
PYTHON ?= python3#      makes the virtual environment, or is used itself when VENV is empty
BUILD  ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib# or lib64, or lib/x86_64-linux-gnu, as the system has it
CC     ?= cc
LINKER ?= $(CC)#        links what CC and NVCC compile: `make wheels` sets one for older C libraries
NVCC   ?= $(firstword $(wildcard $(shell command -v nvcc) $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc))
NVCCFLAGS ?= -lineinfo# what profilers need; half of the size
CUDA_ARCHS ?=#          "75 90", all, or native: those of the GPUs that are here, or else 80 and 90; empty: as in the build before, at first native
CROSS  ?=#             aarch64: the machine that CC and LINKER make code for, where it is not this one
CROSS_FROM ?=#         with CROSS, a build of the same sources for this machine
SANITIZE ?=#            address,undefined or thread, for the core and the host entries
WERROR ?= -Werror#      empty where a compiler to come may warn of more: `pip install` does that
V      ?=#              `make V=1` shows the commands
# ccache finds what builds in any folder have compiled, if it is installed and can write its cache.
CCACHE ?= $(if $(word 2,$(CC)),,$(shell made=$$(ccache --get-config cache_dir 2>/dev/null) && \
  mkdir -p "$$made/tmp" 2>/dev/null && test -w "$$made/tmp" && command -v ccache))
CCACHE := $(CCACHE)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

# nproc heeds what libraries set for their own threads.
CPUS    := $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
PY      := $(if $(VENV),$(VENV)/bin/python,$(PYTHON))
PACKAGE := $(BUILD)/python/cuplug
LIBRARY := $(PACKAGE)/lib/libcuplug.so.1
ARCHIVE := $(BUILD)/libcuplug.a
VERSION := $(shell sed -n 's/^\#define CUPLUG_VERSION "\(.*\)"/\1/p' include/cuplug/host.h)
RUNTIME := $(PACKAGE)/lib/libcuplug_runtime-$(VERSION).so
HEADERS := $(wildcard include/cuplug/*.h include/cuplug/*.hpp include/cuplug/*.cuh)
INTERNAL := $(wildcard include/internal/*.h include/runtime/*.h)
CMAKE_FILES := $(wildcard core/*.cmake core/*.h.in)
PLUGINS := $(sort $(patsubst plugins/%/,%,$(dir $(wildcard plugins/*/*.c))))
STOCK   := $(PLUGINS:%=$(PACKAGE)/lib/cuplug/lib%.so)
FIXTURES := $(patsubst plugins/%/fixture.py,$(PACKAGE)/lib/cuplug/lib%.fixture.py,$(wildcard plugins/*/fixture.py))
INSTALLED := $(or $(VENV),$(BUILD))/installed
# Python itself has no sanitizers: their runtimes must be there before it, and know of no leaks.
comma    := ,
SANITIZER.address   := libasan.so
SANITIZER.undefined := libubsan.so
SANITIZER.thread    := libtsan.so
SANITIZERS := $(foreach name,$(subst $(comma), ,$(SANITIZE)),$(shell $(CC) -print-file-name=$(SANITIZER.$(name))))
SANITIZED := $(if $(SANITIZE),LD_PRELOAD="$(strip $(SANITIZERS))" UBSAN_OPTIONS=halt_on_error=1 \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
  TSAN_OPTIONS=die_after_fork=0:suppressions=$(abspath tests/hostile/tsan.supp))
SEARCH  := PYTHONPATH="$(abspath $(BUILD)/python)$(addprefix :,$(PYTHONPATH))" $(SANITIZED)
RUN     := $(SEARCH) $(PY)
