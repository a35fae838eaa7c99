# SPDX-License-Identifier: Apache-2.0
# Names what is missing on this machine before the build would, with the command that installs it.
# Arguments: Python, C compiler, virtual environment ("" for none).
python=$1 compiler=$2 environment=$3

missing() {
  echo "cuplug needs $1, which was not found: $2" >&2
  exit 1
}

command -v "$python" >/dev/null || missing "Python 3.11 or newer" "apt-get install python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  missing "Python 3.11 or newer ($("$python" --version) is here)" "make PYTHON=python3.11 ..."
command -v "${compiler%% *}" >/dev/null || missing "a C compiler ($compiler)" "apt-get install gcc"
echo '#include <stdint.h>
#include <stdlib.h>' | $compiler -E - >/dev/null 2>&1 || missing "the C library's headers" "apt-get install libc6-dev"
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
  missing "Python's headers (Python.h)" "apt-get install python3-dev"
if [ -n "$environment" ]; then
  "$python" -c 'import venv, ensurepip' 2>/dev/null ||
    missing "Python's venv module" "apt-get install python3-venv (or make VENV= with the packages of this Python)"
else
  for package in numpy Cython; do
    "$python" -c "import $package" 2>/dev/null ||
      missing "the package $package in $python" "$python -m pip install $package (or leave VENV= out)"
  done
fi
