# SPDX-License-Identifier: Apache-2.0


# A text of the core, with invalid UTF-8 replaced.
cdef inline str to_str(const char *text):
    return text.decode("utf-8", "replace")


# A list of architectures: (750, "900a") of "750,900a".
cdef inline tuple to_architectures(const char *text):
    cdef list parts = [part.strip() for part in to_str(text).split(",")]
    return tuple([int(x) if x.isdecimal() else x for x in parts if x.rstrip("af").isdecimal()])
