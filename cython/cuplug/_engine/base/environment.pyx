# SPDX-License-Identifier: Apache-2.0
"""Environment variables, which are ignored in a process with raised privileges.

Another user than the one that such a process runs as can set them. The core also reads them with
secure_getenv.
"""

import os

cdef extern from "<sys/auxv.h>" nogil:
    unsigned long getauxval(unsigned long kind)
    enum:
        AT_SECURE

privileged: bool = getauxval(AT_SECURE) != 0

# The search path of programs that cuplug runs, and preloaded libraries that they do not inherit.
PATH = "/usr/local/bin:/usr/bin:/bin"
SANITIZERS = ("libasan.", "libhwasan.", "liblsan.", "libtsan.", "libubsan.", "libclang_rt.")


def variable(name: str, default: str = "") -> str:
    """Return the value of a variable; the default if it is unset or ignored."""
    return default if privileged else os.environ.get(name, default)


def path() -> str:
    """Return the search path for programs, separated by ":"."""
    return PATH if privileged else os.environ.get("PATH", os.defpath)


def for_programs(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that is run, with more variables.

    Sanitizers that are preloaded into Python are removed, because compilers leak or crash with
    them.
    """
    if privileged:
        return {"PATH": PATH, **more}
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    kept = [file for file in preloaded if not os.path.basename(file).startswith(SANITIZERS)]
    return {**os.environ, **({"LD_PRELOAD": " ".join(kept)} if preloaded else {}), **more}


def home() -> str:
    """Return the folder of the user that the process runs as; "~" if the user has none."""
    if not privileged:
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a user without an entry, as in containers
        return "~"
