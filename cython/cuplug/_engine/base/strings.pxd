# SPDX-License-Identifier: Apache-2.0


# A text of the core, with invalid UTF-8 replaced.
cdef inline str to_str(const char *text):
    return text.decode("utf-8", "replace")


# The numbers of a list of architectures, "750,900".
cdef inline tuple to_architectures(const char *text):
    return tuple([int(part) for part in to_str(text).split(",") if part.strip().isdigit()])
