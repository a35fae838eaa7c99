# SPDX-License-Identifier: Apache-2.0
cdef bint packages_are_read

# Puts the directories that installed packages name on the search path, once.
cdef int read_packages() except -1
