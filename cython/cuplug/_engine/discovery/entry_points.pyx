# SPDX-License-Identifier: Apache-2.0
"""A first search of installed packages for a group of entry points.

It is in C because it precedes the first look-up of an operator: an environment has hundreds of
packages, and most have no such file.
"""

import os
import sys

from libc.string cimport strlen

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR
    ctypedef struct entry "struct dirent":
        char d_name[256]
    DIR *opendir(const char *path)
    entry *readdir(DIR *directory)
    int closedir(DIR *directory)
    int dirfd(DIR *directory)

cdef extern from "<fcntl.h>" nogil:
    int openat(int directory, const char *path, int flags)
    int O_RDONLY
    int O_CLOEXEC

cdef extern from "<stdio.h>" nogil:
    int snprintf(char *text, size_t room, const char *format, ...)

cdef extern from "<string.h>" nogil:
    int strcmp(const char *a, const char *b)
    void *memmem(const void *haystack, size_t n, const void *needle, size_t m)

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int file, void *to, size_t n)
    int close(int file)


def any_package_mentions(bytes group) -> bool:
    """Return whether a package on `sys.path` may name `group` in its entry_points.txt.

    Files there, such as zip archives, and texts that are too long are not searched: for these,
    return True.
    """
    for place in sys.path:
        if may_mention(place, group):
            return True
    return False


cdef bint may_mention(object place, bytes group) except *:
    """Check one item of `sys.path`. Items that are not paths are skipped, as in Python."""
    try:
        path = os.fsencode(place or os.curdir)
    except (TypeError, UnicodeEncodeError):
        return False
    return mentions(path, group) or os.path.isfile(path)


cdef bint mentions(bytes directory, bytes group) except *:
    cdef const char *path = directory
    cdef const char *text = group
    cdef bint found = False
    cdef entry *e
    with nogil:
        d = opendir(path)
        while d != NULL and not found:
            e = readdir(d)
            if e == NULL:
                break
            if is_metadata(e.d_name):
                found = has_group(dirfd(d), e.d_name, text)
        if d != NULL:
            closedir(d)
    return found


cdef bint is_metadata(const char *name) noexcept nogil:
    cdef size_t n = strlen(name)
    return n > 10 and (
        strcmp(name + n - 10, b".dist-info") == 0 or strcmp(name + n - 9, b".egg-info") == 0
    )


cdef bint has_group(int directory, const char *package, const char *group) noexcept nogil:
    cdef char path[288]
    cdef char text[65536]
    cdef ssize_t n
    snprintf(path, sizeof(path), b"%s/entry_points.txt", package)
    cdef int file = openat(directory, path, O_RDONLY | O_CLOEXEC)
    if file < 0:
        return False
    n = read(file, text, sizeof(text))
    close(file)
    if n == <ssize_t>sizeof(text):
        return True
    return n > 0 and memmem(text, n, group, strlen(group)) != NULL
