# SPDX-License-Identifier: Apache-2.0
"""Error records of the core -> exceptions."""

from cuplug cimport _host

from cuplug.errors import EXCEPTIONS, CudaError


cdef int raise_error(const _host.cuplug_error *error) except -1 with gil:
    message = (<const char *>error.message).decode("utf-8", "replace")
    name = _host.cuplug_status_name(error.status)
    exception = EXCEPTIONS[name.decode()] if name != NULL else RuntimeError
    if exception is CudaError:
        raise CudaError(message, error.cuda_code)
    raise exception(message)


def status_names():
    """Return the name of every status but OK, by number."""
    names = {}
    for status in range(1, 10000):
        if _host.cuplug_status_name(status) != NULL:
            names[status] = _host.cuplug_status_name(status).decode()
    return names
