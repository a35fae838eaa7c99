# SPDX-License-Identifier: Apache-2.0
# cython: boundscheck=False, wraparound=False
"""Signals in many networks of one wiring: in each step a unit takes the signal of its source, and
passes negative ones on by half. At the end negative signals are dropped.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

from cuplug cimport Array
from cuplug.typed cimport View, at, gather, leaky_relu, on_gpu, relu


cdef inline View row(float *data, int64_t n, int gpu) noexcept nogil:
    return at(data, n) if gpu < 0 else on_gpu(at(data, n), gpu)


cdef int run_network(
    float *signal, float *heard, View source, int64_t n, int n_steps, int gpu
) except -1 nogil:
    for _ in range(n_steps):
        gather(row(signal, n, gpu), source, row(heard, n, gpu))
        leaky_relu(row(heard, n, gpu), row(signal, n, gpu), 0.5)
    return relu(row(signal, n, gpu), row(heard, n, gpu))


def run(Array signals not None, Array source not None, Array out not None, int n_steps):
    """Run all networks where the arrays are; `signals` is changed, `out` gets the result.

    Parameters
    ----------
    signals, out : Array of float32, shape (networks, units)
        C-contiguous.
    source : Array of int64, shape (units,)
    """
    cdef int64_t k, n = signals.shape[1]
    cdef float *signal = <float *>signals.data
    cdef float *result = <float *>out.data
    cdef int gpu = signals.device.id if signals.device.type == 2 else -1
    cdef View wiring = at(<int64_t *>source.data, n)
    if gpu < 0:
        for k in prange(signals.shape[0], nogil=True):
            run_network(signal + k * n, result + k * n, wiring, n, n_steps, gpu)
    else:
        wiring = on_gpu(wiring, gpu)
        with nogil:
            for k in range(signals.shape[0]):
                run_network(signal + k * n, result + k * n, wiring, n, n_steps, gpu)


def run_by_hand(float[:, ::1] signals, const int64_t[::1] source, float[:, ::1] out, int n_steps):
    """Run all networks on the host, without operators."""
    cdef Py_ssize_t k, i, _
    cdef float heard
    for k in prange(signals.shape[0], nogil=True):
        for _ in range(n_steps):
            for i in range(source.shape[0]):
                out[k, i] = signals[k, source[i]]
            for i in range(source.shape[0]):
                heard = out[k, i]
                signals[k, i] = heard if heard > 0 else heard * <float>0.5
        for i in range(source.shape[0]):
            out[k, i] = signals[k, i] if signals[k, i] > 0 else 0
