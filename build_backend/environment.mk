# SPDX-License-Identifier: Apache-2.0
# The virtual environment, what is installed there, and the command `cuplug` in it.
# With VENV= the packages of $(PYTHON) serve, and nothing is installed.

# The extras of pyproject.toml that a purpose needs, beside what every build does.
EXTRAS.test  := author dev
EXTRAS.lint  := author lint
EXTRAS.bench := author bench
EXTRAS.array-api := array-api
EXTRAS.wheels := wheels
EXTRAS.wheel-test := author dev wheels
EXTRAS.site  := author site
EXTRAS.site-test := dev site-test
PURPOSES     := $(patsubst EXTRAS.%,$(INSTALLED)/%,$(filter EXTRAS.%,$(.VARIABLES)))

needs = $(PYTHON) build_backend/requirements.py $(EXTRAS.$(notdir $1))
SETTLED += $(call settle,$(INSTALLED)/environment.config,$(VENV) $(PYTHON))
SETTLED += $(foreach made,$(INSTALLED)/build $(filter $(PURPOSES),$(MAKECMDGOALS)),$(call settle,$(made).config,$(shell $(call needs,$(made)) 2>/dev/null)))

# Python compiles what it imports when it first does, which is less than all that is installed.
install = $(if $(VENV),$(call say,install what $1 needs into $(VENV))$(PY) -m pip install --quiet --disable-pip-version-check --no-compile $$($(call needs,$@)) || \
  { echo "Without network: make VENV= uses the packages of $(PYTHON)" >&2; exit 1; })

$(INSTALLED)/build: $(INSTALLED)/build.config $(INSTALLED)/environment.config
	@sh build_backend/prerequisites.sh python "$(PYTHON)" "$(VENV)"
	$(if $(VENV),@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV))
	$(call install,the build)
	@touch $@

$(PURPOSES): %: %.config $(INSTALLED)/build
	$(call install,make $(@F))
	@touch $@

# The build that was made last is the environment's cuplug, unless it needs sanitizers.
ifneq ($(and $(VENV),$(if $(SANITIZE),,1)),)
SETTLED += $(call settle,$(INSTALLED)/folder.config,$(abspath $(BUILD)))
python demo: $(VENV)/bin/cuplug
$(VENV)/bin/cuplug: build_backend/link.py pyproject.toml include/cuplug/host.h $(INSTALLED)/folder.config $(INSTALLED)/build
	@$(PY) build_backend/link.py "$(abspath $(BUILD)/python)"
endif
