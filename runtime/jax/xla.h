/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments that XLA passes to the functions of its foreign function interface, version 0.3 and
 * later: the part that is used here. They are declared, since the build does not depend on JAX, and
 * one build serves all versions of it. Structures contain their size, fields are added at their
 * ends, and XLA rejects versions that it does not support. A test compares this file with jaxlib's
 * header. */
#ifndef CUPLUG_RUNTIME_FRAMEWORKS_XLA_H
#define CUPLUG_RUNTIME_FRAMEWORKS_XLA_H

#include <stddef.h>
#include <stdint.h>

#define CUPLUG__XLA_MAJOR 0
#define CUPLUG__XLA_MINOR 3

/* XLA's error codes for statuses. */
enum {
  CUPLUG__XLA_INVALID_ARGUMENT = 3,
  CUPLUG__XLA_NOT_FOUND = 5,
  CUPLUG__XLA_RESOURCE_EXHAUSTED = 8,
  CUPLUG__XLA_OUT_OF_RANGE = 11,
  CUPLUG__XLA_UNIMPLEMENTED = 12,
  CUPLUG__XLA_INTERNAL = 13
};

/* X(XLA's number of a dtype, our dtype) */
#define CUPLUG__XLA_DTYPES(X)   \
  X(1, CUPLUG_BOOL)             \
  X(2, CUPLUG_INT8)             \
  X(3, CUPLUG_INT16)            \
  X(4, CUPLUG_INT32)            \
  X(5, CUPLUG_INT64)            \
  X(6, CUPLUG_UINT8)            \
  X(7, CUPLUG_UINT16)           \
  X(8, CUPLUG_UINT32)           \
  X(9, CUPLUG_UINT64)           \
  X(10, CUPLUG_FLOAT16)         \
  X(16, CUPLUG_BFLOAT16)        \
  X(11, CUPLUG_FLOAT32)         \
  X(12, CUPLUG_FLOAT64)         \
  X(15, CUPLUG_COMPLEX64)       \
  X(18, CUPLUG_COMPLEX128)      \
  X(20, CUPLUG_FLOAT8_E4M3FN)   \
  X(19, CUPLUG_FLOAT8_E5M2)     \
  X(25, CUPLUG_FLOAT8_E4M3FNUZ) \
  X(24, CUPLUG_FLOAT8_E5M2FNUZ) \
  X(33, CUPLUG_FLOAT8_E8M0FNU)

typedef struct cuplug__xla_error cuplug__xla_error;
typedef struct cuplug__xla_context cuplug__xla_context;
typedef struct cuplug__xla_metadata cuplug__xla_metadata;

typedef struct cuplug__xla_extension {
  size_t struct_bytes;
  int32_t type; /* 1: a request for the metadata */
  struct cuplug__xla_extension *next;
  cuplug__xla_metadata *metadata; /* of type 1 */
} cuplug__xla_extension;

#define CUPLUG__XLA_ASKS_METADATA 1
#define CUPLUG__XLA_CAN_BE_REPLAYED 1u /* a trait: calls may become part of a CUDA graph */

struct cuplug__xla_metadata {
  size_t struct_bytes;
  struct {
    size_t struct_bytes;
    cuplug__xla_extension *extensions;
    int32_t major, minor;
  } version;
  uint32_t traits;
  int64_t state_type; /* 0: none */
};

/* ---- XLA's functions: each receives a structure that begins with these fields ------------------
 */

typedef struct cuplug__xla_error_args {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  const char *message;
  int32_t code;
} cuplug__xla_error_args;

typedef struct cuplug__xla_span {
  const char *text; /* not zero-terminated */
  size_t n;
} cuplug__xla_span;

typedef struct cuplug__xla_type_info {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  void (*destroy)(void *state);
} cuplug__xla_type_info;

typedef struct cuplug__xla_type_args {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  cuplug__xla_span name;
  int64_t *type; /* 0: XLA sets it */
  const cuplug__xla_type_info *info;
} cuplug__xla_type_args;

typedef struct cuplug__xla_state_args {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  cuplug__xla_context *context;
  int32_t stage; /* 0: at instantiation */
  int64_t *type;
  void *state;
} cuplug__xla_state_args;

typedef struct cuplug__xla_stream_args {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  cuplug__xla_context *context;
  void *stream;
} cuplug__xla_stream_args;

typedef struct cuplug__xla_device_args {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  cuplug__xla_context *context;
  int32_t device;
} cuplug__xla_device_args;

typedef void cuplug__xla_unused(void);
typedef struct cuplug__xla_api {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  struct {
    size_t struct_bytes;
    cuplug__xla_extension *extensions;
    int32_t major, minor;
  } version;
  const void *internal;
  cuplug__xla_error *(*create_error)(cuplug__xla_error_args *);
  cuplug__xla_unused *of_errors[2];
  cuplug__xla_unused *register_handler;
  cuplug__xla_error *(*get_stream)(cuplug__xla_stream_args *);
  cuplug__xla_error *(*register_type)(cuplug__xla_type_args *);
  cuplug__xla_unused *get_context;
  cuplug__xla_error *(*set_state)(cuplug__xla_state_args *);
  cuplug__xla_error *(*get_state)(cuplug__xla_state_args *);
  cuplug__xla_unused *of_memory_and_threads[8];
  cuplug__xla_error *(*get_device)(cuplug__xla_device_args *);
} cuplug__xla_api;

/* ---- One call of our function ---------------------------------------------------------------- */

typedef struct cuplug__xla_buffer {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  int32_t dtype;
  void *data;
  int64_t ndim;
  int64_t *shape;
} cuplug__xla_buffer;

typedef struct cuplug__xla_buffers {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  int64_t n;
  int32_t *kinds; /* 1: a cuplug__xla_buffer; no other types exist */
  cuplug__xla_buffer **buffers;
} cuplug__xla_buffers;

typedef enum cuplug__xla_attribute {
  CUPLUG__XLA_ARRAY = 1,  /* cuplug__xla_array */
  CUPLUG__XLA_SCALAR = 3, /* cuplug__xla_scalar */
  CUPLUG__XLA_STRING = 4  /* cuplug__xla_span */
} cuplug__xla_attribute;

typedef struct cuplug__xla_scalar {
  int32_t dtype;
  const void *value;
} cuplug__xla_scalar;

typedef struct cuplug__xla_array {
  int32_t dtype;
  size_t n;
  const void *values;
} cuplug__xla_array;

typedef struct cuplug__xla_attributes {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  int64_t n;
  int32_t *kinds;           /* cuplug__xla_attribute */
  cuplug__xla_span **names; /* in the order of the names */
  void **values;
} cuplug__xla_attributes;

typedef struct cuplug__xla_call {
  size_t struct_bytes;
  cuplug__xla_extension *extensions;
  const cuplug__xla_api *api;
  cuplug__xla_context *context;
  int32_t stage;
  cuplug__xla_buffers operands;
  cuplug__xla_buffers results;
  cuplug__xla_attributes attributes;
} cuplug__xla_call;

#endif
