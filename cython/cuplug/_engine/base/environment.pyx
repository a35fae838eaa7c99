# SPDX-License-Identifier: Apache-2.0
"""Variables of the environment, which count for nothing in a process with raised privileges.

The user that starts such a process sets them, and differs from the user that it runs as. The core
also reads them by secure_getenv.
"""

import os

cdef extern from "<sys/auxv.h>" nogil:
    unsigned long getauxval(unsigned long kind)
    enum:
        AT_SECURE

privileged = getauxval(AT_SECURE) != 0

# The variables and the search path of programs that are run.
PATH = "/usr/local/bin:/usr/bin:/bin"


def variable(name, default=""):
    """Return the value of a variable; the default if it is unset or ignored."""
    return default if privileged else os.environ.get(name, default)


def path():
    """Return where programs are looked for, separated by ":"."""
    return PATH if privileged else os.environ.get("PATH", os.defpath)


def for_programs(more):
    """Return the environment of a program that is run, with more variables."""
    return {"PATH": PATH, **more} if privileged else {**os.environ, **more}


def home():
    """Return the folder of the user that the process runs as."""
    if not privileged:
        return os.path.expanduser("~")
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_dir
