# SPDX-License-Identifier: Apache-2.0
# Names what is missing on this machine before the build would, with the command that installs it.
#   prerequisites.sh compiler CC NVCC         NVCC may be empty
#   prerequisites.sh cuda FILE NVCC [FLAG...] FILE: where what nvcc makes of nothing goes
#   prerequisites.sh python PYTHON VENV       VENV may be empty: PYTHON's own packages serve

missing() {
  echo "cuplug needs $1, which was not found: $2" >&2
  exit 1
}

# Whether a Python runs this code without an error.
runs() {
  "$1" -c "$2" 2>/dev/null
}

compiler() {
  command -v "${1%% *}" >/dev/null || missing "a C compiler ($1)" "apt-get install gcc"
  printf '#include <stdint.h>\n#include <stdlib.h>\n' | $1 -x c -E - >/dev/null 2>&1 ||
    missing "the C library's headers" "apt-get install libc6-dev"
  [ -z "$2" ] || command -v "${NVCC_CCBIN:-g++}" >/dev/null ||
    missing "a C++ compiler for $2" "apt-get install g++ (or make NVCC=, which builds without CUDA)"
}

# nvcc takes C++ compilers and C libraries up to some version.
cuda() {
  made=$1
  shift
  said=$("$@" -x cu -ptx -o "$made" /dev/null 2>&1) && return
  printf '%s\n' "$said" | grep -m 1 error >&2 || printf '%s\n' "$said" >&2
  missing "a C++ compiler and a C library that $1 takes" \
    "install a newer CUDA toolkit, or an older compiler (make NVCC_CCBIN=g++-14); make NVCC= builds without CUDA"
}

python() {
  command -v "$1" >/dev/null || missing "Python 3.11 or newer" "apt-get install python3"
  runs "$1" 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    missing "Python 3.11 or newer ($("$1" --version) is here)" "make PYTHON=python3.11 ..."
  runs "$1" 'import os, sys, sysconfig as s; sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))' ||
    missing "Python's headers (Python.h)" "apt-get install python3-dev"
  if [ -n "$2" ]; then
    runs "$1" 'import venv, ensurepip' ||
      missing "Python's venv module" "apt-get install python3-venv (or make VENV= with this Python's packages)"
    return
  fi
  for package in numpy setuptools Cython; do
    runs "$1" "import $package" ||
      missing "the package $package in $1" "$1 -m pip install $package (or make without VENV=)"
  done
}

"$@"
