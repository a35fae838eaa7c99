# SPDX-License-Identifier: Apache-2.0
# The Cython modules, built with the Python that $(PY) names. Called by the Makefile.

PYTHON_FACTS := $(shell $(PY) build_backend/python_facts.py)
SUFFIX   := $(word 1,$(PYTHON_FACTS))
INCLUDES := $(addprefix -I,$(wordlist 2,9,$(PYTHON_FACTS)))

PYX     := $(wildcard cython/cuplug/*.pyx cython/cuplug/*/*.pyx)
MODULES := $(PYX:cython/cuplug/%.pyx=$(PACKAGE)/%$(SUFFIX))
TYPED   := $(BUILD)/generated/typed.pxd
HEADERS := $(wildcard include/cuplug/*.h)

# Cython's C is not ours to warn about; symbols other than the module's init stay hidden.
COMPILE = $(CC) -O2 -g0 -fPIC -fvisibility=hidden -fwrapv -fno-strict-aliasing -w -Iinclude $(INCLUDES) \
  -DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -shared -Wl,-rpath,'$$ORIGIN/$(if $(findstring /,$*),../)lib' \
  -L$(PACKAGE)/lib -Wl,--no-as-needed -lcuplug -Wl,--as-needed
CYTHON  = $(PY) -m cython -3 -M -X freethreading_compatible=True -I $(BUILD)/python -Wextra $(WERROR)

.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all
all: $(MODULES) $(PACKAGE)/typed.pxd $(PACKAGE)/ops.pyi
	@:

say = $(if $(V),,@echo "  $(1)" && )

$(BUILD)/cython/%.c: cython/cuplug/%.pyx build_backend/python.mk
	@mkdir -p $(@D)
	$(call say,compile $<)$(CYTHON) --module-name cuplug.$(subst /,.,$*) $< -o $@

$(PACKAGE)/%$(SUFFIX): $(BUILD)/cython/%.c $(HEADERS)
	@mkdir -p $(@D)
	@$(if $(V),set -x; )$(COMPILE) $< -o $@

# From the symbol tables of the stock plugins, read by the modules just built.
GENERATORS := $(addprefix cython/cuplug/,author/bind.py author/memoryviews.py author/stubs.py signature/signature.py discovery/table.py)
$(TYPED): $(MODULES) $(PACKAGE)/lib/cuplug $(wildcard $(PACKAGE)/lib/cuplug/*.so) $(wildcard $(GENERATORS))
	@mkdir -p $(@D)
	$(call say,generate $@)$(RUN) -m cuplug.author.bind --stock $(@D)
	@touch $@

$(PACKAGE)/typed.pxd $(PACKAGE)/ops.pyi: $(PACKAGE)/%: $(TYPED)
	@cp $(BUILD)/generated/$(@F) $@

# A file that is gone, though one of these names it, has changed.
%.pxd: ;
-include $(wildcard $(BUILD)/cython/*.c.dep $(BUILD)/cython/*/*.c.dep)
