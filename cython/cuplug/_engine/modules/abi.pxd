# SPDX-License-Identifier: Apache-2.0
# The part of the C ABI of tvm-ffi 0.1 that calls need, in cuplug's own declarations.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport cuplug_tensor


cdef extern from *:
    """
    #ifndef CUPLUG_TVM_ABI
    #define CUPLUG_TVM_ABI
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    enum {
      TVM_NONE = 0, TVM_INT = 1, TVM_BOOL = 2, TVM_FLOAT = 3, TVM_POINTER = 4, TVM_DTYPE = 5,
      TVM_DEVICE = 6, TVM_RAW_TENSOR = 7, TVM_RAW_TEXT = 8, TVM_SMALL_TEXT = 11,
      TVM_SMALL_BYTES = 12, TVM_OBJECT = 64, TVM_TEXT = 65, TVM_BYTES = 66, TVM_SHAPE = 69,
      TVM_TENSOR = 70, TVM_ARRAY = 71
    };

    typedef void (*tvm_deleter)(void *self, int what); /* bit 0: the value, bit 1: its memory */

    typedef struct { /* the start of each object */
      uint64_t counts; /* references: strong ones in the lower 32 bits, weak ones in the upper */
      int32_t type;
      uint32_t padding;
      tvm_deleter deleter;
    } tvm_object;

    typedef struct {
      int32_t type;
      uint32_t n_small; /* bytes of a short text; else 0 */
      union {
        int64_t i;
        double f;
        const void *p;
        char small[8];
      } value;
    } tvm_any;

    typedef struct {
      tvm_object head;
      cuplug_tensor tensor; /* a DLTensor */
      void *owner;
      int64_t numbers[]; /* its sizes and strides */
    } tvm_tensor;

    typedef struct {
      const char *data;
      size_t n;
    } tvm_bytes;

    typedef struct { /* also of shapes, whose data are int64_t */
      tvm_object head;
      tvm_bytes text;
    } tvm_text;

    typedef struct {
      tvm_object head;
      tvm_bytes kind, message;
    } tvm_error;

    typedef int tvm_call(void *self, const tvm_any *args, int32_t n, tvm_any *result);

    typedef struct {
      tvm_object head;
      tvm_call *call;
    } tvm_callable;

    _Static_assert(sizeof(tvm_object) == 24 && sizeof(tvm_any) == 16 && sizeof(cuplug_tensor) == 48,
                   "as tvm-ffi has them");

    /* Before each object: how an allocator takes its memory back; NULL if the deleter does. A
     * multiple of 16 bytes, as malloc aligns. */
    #define TVM_PREFIX_BYTES 16

    #define TVM_STRONG ((uint64_t)1)
    #define TVM_WEAK ((uint64_t)1 << 32)

    static inline void tvm_retain(tvm_object *x) {
      __atomic_fetch_add(&x->counts, TVM_STRONG, __ATOMIC_RELAXED);
    }

    static inline void tvm_release(tvm_object *x) {
      const uint64_t before = __atomic_fetch_sub(&x->counts, TVM_STRONG, __ATOMIC_ACQ_REL);
      if (before == (TVM_STRONG | TVM_WEAK)) {
        if (x->deleter) x->deleter(x, 3);
      } else if ((uint32_t)before == 1) {
        if (x->deleter) x->deleter(x, 1);
        if (__atomic_fetch_sub(&x->counts, TVM_WEAK, __ATOMIC_ACQ_REL) == TVM_WEAK && x->deleter)
          x->deleter(x, 2);
      }
    }

    /* A tensor object of one reference, with compact strides where `from` has none; or NULL. */
    static inline tvm_tensor *tvm_make_tensor(const cuplug_tensor *from, void *owner,
                                              tvm_deleter deleter) {
      const int n = from->ndim;
      char *block = malloc(TVM_PREFIX_BYTES + sizeof(tvm_tensor) + 2 * (size_t)n * sizeof(int64_t));
      if (!block) return NULL;
      memset(block, 0, TVM_PREFIX_BYTES);
      tvm_tensor *x = (tvm_tensor *)(block + TVM_PREFIX_BYTES);
      x->head = (tvm_object){TVM_STRONG | TVM_WEAK, TVM_TENSOR, 0, deleter};
      x->tensor = *from;
      x->owner = owner;
      x->tensor.shape = x->numbers;
      x->tensor.strides = x->numbers + n;
      int64_t step = 1;
      for (int k = n - 1; k >= 0; k--) {
        x->tensor.shape[k] = from->shape[k];
        x->tensor.strides[k] = from->strides ? from->strides[k] : step;
        step *= from->shape[k];
      }
      return x;
    }

    static inline void tvm_free_tensor(void *x) { free((char *)x - TVM_PREFIX_BYTES); }

    /* 1 if others than the caller hold references. */
    static inline int tvm_is_shared(const tvm_object *x) {
      return __atomic_load_n(&x->counts, __ATOMIC_ACQUIRE) != (TVM_STRONG | TVM_WEAK);
    }
    #endif
    """
    enum:
        TVM_NONE
        TVM_INT
        TVM_BOOL
        TVM_FLOAT
        TVM_POINTER
        TVM_DTYPE
        TVM_DEVICE
        TVM_RAW_TENSOR
        TVM_RAW_TEXT
        TVM_SMALL_TEXT
        TVM_SMALL_BYTES
        TVM_OBJECT
        TVM_TEXT
        TVM_BYTES
        TVM_SHAPE
        TVM_TENSOR
        TVM_ARRAY

    ctypedef void (*tvm_deleter)(void *self, int what) noexcept nogil

    ctypedef struct tvm_object:
        uint64_t counts
        int32_t type
        tvm_deleter deleter

    ctypedef union tvm_value:
        int64_t i
        double f
        const void *p
        char small[8]

    ctypedef struct tvm_any:
        int32_t type
        uint32_t n_small
        tvm_value value

    ctypedef struct tvm_tensor:
        tvm_object head
        cuplug_tensor tensor
        void *owner

    ctypedef struct tvm_bytes:
        const char *data
        size_t n

    ctypedef struct tvm_text:
        tvm_bytes text

    ctypedef struct tvm_error:
        tvm_bytes kind
        tvm_bytes message

    ctypedef int tvm_call(
        void *self, const tvm_any *args, int32_t n, tvm_any *result
    ) noexcept nogil

    ctypedef struct tvm_callable:
        tvm_call *call

    void tvm_retain(tvm_object *x) noexcept nogil
    void tvm_release(tvm_object *x) noexcept nogil
    tvm_tensor *tvm_make_tensor(
        const cuplug_tensor *source, void *owner, tvm_deleter deleter
    ) noexcept nogil
    void tvm_free_tensor(void *x) noexcept nogil
    bint tvm_is_shared(const tvm_object *x) noexcept nogil
