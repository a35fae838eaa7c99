# SPDX-License-Identifier: Apache-2.0
# The virtual environment, what is installed there, and the command `cuplug` in it.
# With VENV= the packages of $(PYTHON) serve, and nothing is installed.

# The extras of pyproject.toml that a purpose needs, beside what every build does.
EXTRAS.test  := author dev
EXTRAS.lint  := author lint
EXTRAS.bench := author
PURPOSES     := $(addprefix $(INSTALLED)/,test lint bench)

$(INSTALLED)/environment.config: SETTINGS = $(VENV) $(PYTHON)
$(INSTALLED)/python: $(INSTALLED)/environment.config | $(BUILD)/compiler.stamp
	@sh build_backend/prerequisites.sh python "$(PYTHON)" "$(VENV)"
	$(if $(VENV),@test -x $(VENV)/bin/pip || { echo "make the virtual environment $(VENV)"; $(PYTHON) -m venv $(VENV); })
	@touch $@

# Python compiles what it imports when it first does, which is less than all that is installed.
$(PURPOSES): $(INSTALLED)/build
$(INSTALLED)/%.config: SETTINGS = $(shell $(PYTHON) build_backend/requirements.py $(EXTRAS.$*) 2>/dev/null)
$(INSTALLED)/build $(PURPOSES): $(INSTALLED)/%: $(INSTALLED)/%.config $(INSTALLED)/python
ifneq ($(VENV),)
	$(call say,install what $(if $(EXTRAS.$*),make $*,the build) needs into $(VENV))$(PY) -m pip install --quiet --disable-pip-version-check --no-compile \
	  $$($(PYTHON) build_backend/requirements.py $(EXTRAS.$*)) || { echo "Without network: make VENV= uses the packages of $(PYTHON)" >&2; exit 1; }
endif
	@touch $@

# The build that was made last is the environment's cuplug.
ifneq ($(VENV),)
python: $(VENV)/bin/cuplug
$(INSTALLED)/build_folder.config: SETTINGS = $(abspath $(BUILD))
$(VENV)/bin/cuplug: build_backend/link.py pyproject.toml include/cuplug/host.h $(INSTALLED)/build_folder.config $(INSTALLED)/build
	@$(PY) build_backend/link.py "$(abspath $(BUILD)/python)"
endif
