# SPDX-License-Identifier: Apache-2.0
# Typed functions of the stock plugins, by cuplug bind.

from libc.stdint cimport int16_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t

# gather(source: T[m, *row], index: I[*n], mode: "raise" | "wrap" | "clip" = "raise") -> T[*n, *row] where T: any, I: int32 | int64
cdef int gather_int8_int32(const int8_t[::1] source, const int[::1] index, int8_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int8_int64(const int8_t[::1] source, const int64_t[::1] index, int8_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int16_int32(const int16_t[::1] source, const int[::1] index, int16_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int16_int64(const int16_t[::1] source, const int64_t[::1] index, int16_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int32_int32(const int[::1] source, const int[::1] index, int[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int32_int64(const int[::1] source, const int64_t[::1] index, int[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int64_int32(const int64_t[::1] source, const int[::1] index, int64_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_int64_int64(const int64_t[::1] source, const int64_t[::1] index, int64_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint8_int32(const uint8_t[::1] source, const int[::1] index, uint8_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint8_int64(const uint8_t[::1] source, const int64_t[::1] index, uint8_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint16_int32(const uint16_t[::1] source, const int[::1] index, uint16_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint16_int64(const uint16_t[::1] source, const int64_t[::1] index, uint16_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint32_int32(const uint32_t[::1] source, const int[::1] index, uint32_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint32_int64(const uint32_t[::1] source, const int64_t[::1] index, uint32_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint64_int32(const uint64_t[::1] source, const int[::1] index, uint64_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_uint64_int64(const uint64_t[::1] source, const int64_t[::1] index, uint64_t[::1] out, const char *mode=*) except -1 nogil
cdef int gather_float32_int32(const float[::1] source, const int[::1] index, float[::1] out, const char *mode=*) except -1 nogil
cdef int gather_float32_int64(const float[::1] source, const int64_t[::1] index, float[::1] out, const char *mode=*) except -1 nogil
cdef int gather_float64_int32(const double[::1] source, const int[::1] index, double[::1] out, const char *mode=*) except -1 nogil
cdef int gather_float64_int64(const double[::1] source, const int64_t[::1] index, double[::1] out, const char *mode=*) except -1 nogil
cdef int gather_complex64_int32(const float complex[::1] source, const int[::1] index, float complex[::1] out, const char *mode=*) except -1 nogil
cdef int gather_complex64_int64(const float complex[::1] source, const int64_t[::1] index, float complex[::1] out, const char *mode=*) except -1 nogil
cdef int gather_complex128_int32(const double complex[::1] source, const int[::1] index, double complex[::1] out, const char *mode=*) except -1 nogil
cdef int gather_complex128_int64(const double complex[::1] source, const int64_t[::1] index, double complex[::1] out, const char *mode=*) except -1 nogil

# hello()
cdef int hello() except -1 nogil

# leaky_relu(x: T[...], slope: float = 0.01) -> T[...] where T: floating
cdef int leaky_relu_float32(const float[::1] x, float[::1] out, double slope=*) except -1 nogil
cdef int leaky_relu_float64(const double[::1] x, double[::1] out, double slope=*) except -1 nogil

# leaky_relu_backward(grad: T[...], x: T[...], slope: float = 0.01) -> T[...] where T: floating
cdef int leaky_relu_backward_float32(const float[::1] grad, const float[::1] x, float[::1] out, double slope=*) except -1 nogil
cdef int leaky_relu_backward_float64(const double[::1] grad, const double[::1] x, double[::1] out, double slope=*) except -1 nogil

# piecewise_scale(x: T[...]) -> T[...] where T: floating
cdef int piecewise_scale_float32(const float[::1] x, float[::1] out) except -1 nogil
cdef int piecewise_scale_float64(const double[::1] x, double[::1] out) except -1 nogil

# relu(x: T[...]) -> T[...] where T: floating | int8 | int16 | int32 | int64
cdef int relu_int8(const int8_t[::1] x, int8_t[::1] out) except -1 nogil
cdef int relu_int16(const int16_t[::1] x, int16_t[::1] out) except -1 nogil
cdef int relu_int32(const int[::1] x, int[::1] out) except -1 nogil
cdef int relu_int64(const int64_t[::1] x, int64_t[::1] out) except -1 nogil
cdef int relu_float32(const float[::1] x, float[::1] out) except -1 nogil
cdef int relu_float64(const double[::1] x, double[::1] out) except -1 nogil

# relu_backward(grad: T[...], x: T[...]) -> T[...] where T: floating | int8 | int16 | int32 | int64
cdef int relu_backward_int8(const int8_t[::1] grad, const int8_t[::1] x, int8_t[::1] out) except -1 nogil
cdef int relu_backward_int16(const int16_t[::1] grad, const int16_t[::1] x, int16_t[::1] out) except -1 nogil
cdef int relu_backward_int32(const int[::1] grad, const int[::1] x, int[::1] out) except -1 nogil
cdef int relu_backward_int64(const int64_t[::1] grad, const int64_t[::1] x, int64_t[::1] out) except -1 nogil
cdef int relu_backward_float32(const float[::1] grad, const float[::1] x, float[::1] out) except -1 nogil
cdef int relu_backward_float64(const double[::1] grad, const double[::1] x, double[::1] out) except -1 nogil

# scale(inout data: T[...], factor: T) where T: floating | integer | complex
cdef int scale_int8(int8_t[::1] data, int64_t factor) except -1 nogil
cdef int scale_int16(int16_t[::1] data, int64_t factor) except -1 nogil
cdef int scale_int32(int[::1] data, int64_t factor) except -1 nogil
cdef int scale_int64(int64_t[::1] data, int64_t factor) except -1 nogil
cdef int scale_uint8(uint8_t[::1] data, uint64_t factor) except -1 nogil
cdef int scale_uint16(uint16_t[::1] data, uint64_t factor) except -1 nogil
cdef int scale_uint32(uint32_t[::1] data, uint64_t factor) except -1 nogil
cdef int scale_uint64(uint64_t[::1] data, uint64_t factor) except -1 nogil
cdef int scale_float32(float[::1] data, double factor) except -1 nogil
cdef int scale_float64(double[::1] data, double factor) except -1 nogil
cdef int scale_complex64(float complex[::1] data, double complex factor) except -1 nogil
cdef int scale_complex128(double complex[::1] data, double complex factor) except -1 nogil
