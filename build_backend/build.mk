# SPDX-License-Identifier: Apache-2.0
# Builds all of cuplug into $(BUILD): the core, the runtime, the stock plugins and the Python package.
# Operators, core files and Cython modules are found by wildcard. Called by the Makefile.

include build_backend/settings.mk

space  := $(subst ,, )
CFLAGS ?= -O2
# Code that overran its stack or a buffer ends the process before it can be misused. Only optimizing
# compilers check buffers; level 3 needs a compiler and a C library that know it, and others warn.
OPTIMIZED := $(if $(SANITIZE),,$(filter-out -O0,$(filter -O%,$(CFLAGS))))
FORTIFY   := $(if $(OPTIMIZED),$(shell echo '\#include <stdlib.h>' | \
  $(CC) -O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fsyntax-only -x c - 2>/dev/null && echo 3 || echo 2))
HARDENED  := $(if $(OPTIMIZED),-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY))
# Operators are called on stacks of 64 KiB, of which one function may take half.
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -Wall -Wextra $(WERROR) -Iinclude \
  $(HARDENED) $(CFLAGS) $(if $(SANITIZE),-g -fno-omit-frame-pointer -fsanitize=$(SANITIZE),-Wframe-larger-than=32768)
# Loops with a condition become vector instructions only where floating-point exceptions may differ.
# A product and a sum are rounded each, whether or not the CPU can do both at once. Roots are
# instructions where nobody asks for errno.
VECTORISED := $(if $(SANITIZE),-O1,-O3) -fno-trapping-math -fno-math-errno -ffp-contract=off
ALL_LDFLAGS := -Wl,-z,now $(if $(SANITIZE),-fsanitize=$(SANITIZE),-Wl,-z,defs) $(LDFLAGS)

# The architectures to compile CUDA code for; without any it is left out. A GPU that is newer than
# nvcc runs what was made for the newest that nvcc knows. Without a GPU, the architectures are those
# of `cuplug build`; the demo and the tests then leave CUDA code as it is, since they cannot run it.
KNOWN    = $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
PRESENT  = $(subst .,,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -x '[0-9.]*' | sort -uV))
NATIVE   = $(filter $(foreach gpu,$(PRESENT),$(or $(filter $(gpu),$(KNOWN)),$(lastword $(KNOWN)))),$(KNOWN))
ALL      = $(firstword $(KNOWN))-virtual $(filter $(KNOWN),80 90 100 120)
EARLIER  = $(foreach arch,80 90,$(if $(findstring sm_$(arch),$(file <$(BUILD)/cuda.config)),$(arch)))
USUAL    = $(filter $(KNOWN),$(if $(filter demo %/test,$(MAKECMDGOALS)),$(EARLIER),80 90))
CHOSEN  := $(or $(strip $(CUDA_ARCHS)),$(file <$(BUILD)/archs),native)
WANTED  := $(if $(NVCC),$(if $(filter all,$(CHOSEN)),$(ALL),$(or $(filter-out native,$(CHOSEN)),$(NATIVE),$(USUAL))))
MACHINE := $(filter-out %-virtual,$(WANTED))
# PTX of 90a or 100f would not run on GPUs that are newer.
PTX     := $(or $(patsubst %-virtual,%,$(filter %-virtual,$(WANTED))),$(lastword $(filter-out %a %f,$(MACHINE))))
GENCODE := $(foreach arch,$(MACHINE),-gencode=arch=compute_$(arch)$(comma)code=sm_$(arch)) \
  $(foreach arch,$(PTX),-gencode=arch=compute_$(arch)$(comma)code=compute_$(arch))
ARCHS   := $(shell printf '%s\n' $(MACHINE) $(PTX) | tr -d af | sort -un)
LEFT_OUT = CUDA code is left out: there is no $(if $(NVCC),GPU here (`make` compiles it),nvcc)

CORE       := $(patsubst core/%.c,$(BUILD)/core/%.o,$(wildcard core/*/*.c))
RUNTIME_PARTS := $(patsubst runtime/%.c,$(BUILD)/runtime/%.o,$(wildcard runtime/*/*.c))
HOST_SIDES := $(patsubst plugins/%.c,$(BUILD)/plugins/%.o,$(wildcard plugins/*/*.c plugins/*/*/*.c))
CUDA_SIDES := $(if $(ARCHS),$(patsubst plugins/%,$(BUILD)/plugins/%.o,$(wildcard plugins/*/*.cu plugins/*/*/*.cu)))
# What goes into a plugin, and where it lies.
sides    = $(filter $(1:%=$(BUILD)/plugins/%/%),$(HOST_SIDES) $(CUDA_SIDES))
library  = $(1:%=$(PACKAGE)/lib/cuplug/lib%.so)
# What the demo calls, and tells to try next: the others, some of CUB's algorithms, take minutes.
DEMO     = $(sort $(shell sed -n 's/.*from cuplug.ops import \([a-z_]*\).*/\1/p' examples/demo.py))

$(if $(shell sh build_backend/prerequisites.sh compiler "$(CC)" "$(if $(ARCHS),$(NVCC))" && echo fine),,$(error The build cannot begin))

# A file for each set of settings, rewritten only when they change: what depends on it is rebuilt.
settle = $(if $(subst <$(strip $2)>,,<$(file <$1)>),$(shell mkdir -p $(dir $1))$(file >$1,$(strip $2))changed)
SETTLED := $(call settle,$(BUILD)/core.config,$(CC) $(ALL_CFLAGS))
SETTLED += $(call settle,$(BUILD)/link.config,$(CORE) $(RUNTIME_PARTS) $(LINKER) $(ALL_LDFLAGS))
SETTLED += $(call settle,$(BUILD)/plugins.config,$(CC) $(ALL_CFLAGS) $(VECTORISED))
SETTLED += $(call settle,$(BUILD)/archs,$(CHOSEN))
SETTLED += $(if $(call settle,$(BUILD)/cuda.config,nvcc: $(NVCC) $(NVCCFLAGS) $(GENCODE)),$(if $(ARCHS),,$(info $(LEFT_OUT))))

.PHONY: all archive core runtime demo importable plugins python stale types
all: python core plugins
core: $(LIBRARY)
archive: $(ARCHIVE)
runtime: $(RUNTIME)
plugins: $(STOCK) $(FIXTURES)
demo: $(INSTALLED)/build $(call library,$(DEMO)) importable

# A build for C programs alone needs no Python.
ifneq ($(filter-out archive core runtime plugins,$(or $(MAKECMDGOALS),all)),)
include build_backend/environment.mk
include build_backend/python.mk
endif

.SECONDARY:
.DELETE_ON_ERROR:

# Before a command, a line says what it does. What is made for the first time is counted.
MADE.core    := $(CORE) $(LIBRARY)
MADE.plugins := $(HOST_SIDES) $(CUDA_SIDES) $(STOCK)
MADE.runtime := $(RUNTIME_PARTS) $(RUNTIME)
MADE.python  := $(MADE.core) $(MADE.runtime) $(MADE.plugins) $(MODULES)
MADE.all     := $(MADE.python)
MADE.demo    := $(MADE.core) $(MADE.runtime) $(IMPORTED) $(call sides,$(DEMO)) $(call library,$(DEMO))
MADE    := $(sort $(foreach goal,$(MAKECMDGOALS),$(MADE.$(goal))))
MISSING := $(filter-out $(wildcard $(MADE)),$(MADE))
count    = $(if $(filter $@,$(MISSING)),$(eval BEGUN += $@)[$(words $(BEGUN))/$(words $(MISSING))] )
say      = $(if $(V),,$(info $(count)$(1))@)

# ---- The core, and the runtime of the Python package

# Calls come from threads with stacks of 64 KiB, too: no frame takes a large part of one.
FRAMES := $(if $(SANITIZE),,-Wframe-larger-than=16384)

$(BUILD)/core/%.o: core/%.c $(BUILD)/core.config
	@mkdir -p $(@D)
	$(call say,compile $<)$(CCACHE) $(CC) $(ALL_CFLAGS) $(FRAMES) -Icore -MMD -MP -c $< -o $@

$(BUILD)/runtime/%.o: runtime/%.c $(BUILD)/core.config
	@mkdir -p $(@D)
	$(call say,compile $<)$(CCACHE) $(CC) $(ALL_CFLAGS) $(FRAMES) -Iruntime -Icore -MMD -MP -c $< -o $@

# Their loops move elements of strided arrays. They are short: where they meet the end of a line,
# they take a quarter longer.
$(BUILD)/core/host/strided_copy.o: ALL_CFLAGS += -O3 -falign-loops=32

# Its threads run its code until the process ends: dlclose of a module that needs it must not unmap it.
$(LIBRARY): $(CORE) core/libcuplug.map $(BUILD)/link.config
	@mkdir -p $(@D)
	$(call say,link $@)$(LINKER) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,--version-script,core/libcuplug.map $(CORE) $(ALL_LDFLAGS) -ldl -o $@
	@ln -sf libcuplug.so.1 $(@D)/libcuplug.so

$(ARCHIVE): $(CORE) $(BUILD)/link.config
	@rm -f $@
	$(call say,archive $@)$(AR) rcs $@ $(CORE)

# Operators hold its entries until the process ends.
$(RUNTIME): $(RUNTIME_PARTS) $(BUILD)/link.config | $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,link $@)$(LINKER) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' $(RUNTIME_PARTS) $(ALL_LDFLAGS) $(LIBRARY) -o $@

# ---- The plugins: <name>.c with host entries and the table, <name>.cu with CUDA entries

ARCH_LIST := $(subst $(space),$(comma),$(strip $(ARCHS:%=%0)))
SIDES      = $(if $(filter $(BUILD)/plugins/$(*D)/%,$(CUDA_SIDES)),-DCUPLUG_ARCHITECTURES=$(ARCH_LIST),-DCUPLUG_HOST_ONLY)

# Machine code for all GPUs is 20 times smaller compressed; nvcc before 12.8 cannot.
COMPRESS  := $(if $(ARCHS),$(shell $(NVCC) --help | grep -q compress-mode && echo -compress-mode=size))
# The CUDA runtime is linked statically; what nvcc's C++ compiler links, where something needs it.
CXX_PARTS  = $(foreach part,libstdc++.so libgcc_s.so.1 libgcc.a,$(shell $(or $(NVCC_CCBIN),g++) -print-file-name=$(part)))
CUDA_LIBS := $(if $(ARCHS),$(shell $(NVCC) -dryrun -shared x.o 2>&1 | sed -n 's/.*LIBRARIES= *//p') \
  -lcudart_static -lpthread -ldl -lrt -Wl$(comma)--as-needed $(CXX_PARTS))

$(BUILD)/plugins/%.o: plugins/%.c $(BUILD)/plugins.config $(BUILD)/cuda.config
	@mkdir -p $(@D)
	$(call say,compile $<)$(CCACHE) $(CC) $(ALL_CFLAGS) $(VECTORISED) -Wno-pass-failed $(SIDES) -Iplugins -MMD -MP -c $< -o $@

# A table says whether there is a CUDA side, which may have come since.
$(foreach side,$(CUDA_SIDES),$(eval $(side:.cu.o=.o): $(side:$(BUILD)/%.o=%)))

$(BUILD)/nvcc.works: $(BUILD)/cuda.config
	@sh build_backend/prerequisites.sh cuda $@ $(NVCC) $(NVCCFLAGS)

$(BUILD)/plugins/%.cu.o: plugins/%.cu $(BUILD)/cuda.config | $(BUILD)/nvcc.works
	@mkdir -p $(@D)
	$(call say,compile $<)$(CCACHE) $(NVCC) -O3 -std=c++17 $(NVCCFLAGS) $(COMPRESS) $(GENCODE) --threads 2 -Iinclude -Iplugins \
	  -Xcompiler -fPIC,-fvisibility=hidden,-Wall -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(foreach name,$(PLUGINS),$(eval $(call library,$(name)): $(call sides,$(name))))
$(STOCK): $(BUILD)/link.config
	@mkdir -p $(@D)
	$(call say,link $@)$(LINKER) -shared $(filter %.o,$^) $(ALL_LDFLAGS) $(if $(filter %.cu.o,$^),$(CUDA_LIBS)) -Wl,--as-needed -lm -o $@

# Arguments for `cuplug test`.
$(FIXTURES): $(PACKAGE)/lib/cuplug/lib%.fixture.py: plugins/%/fixture.py
	@mkdir -p $(@D)
	@ln -sfr $< $@

-include $(wildcard $(BUILD)/core/*/*.d $(BUILD)/runtime/*/*.d $(BUILD)/plugins/*/*.d $(BUILD)/plugins/*/*/*.d)
