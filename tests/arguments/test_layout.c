/* SPDX-License-Identifier: Apache-2.0 */
/* The offset and the size of each field of the public structures: compiling this is the test. It is
 * also compiled as C17 and as C++. Numbers may be added here, but never changed. */
#include <cuplug/fault.h>
#include <cuplug/format.h>
#include <cuplug/plugin.h>
#include <internal/frame.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define ASSERT(condition, text) static_assert(condition, text)
#else
#define ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define SIZE(type, bytes) ASSERT(sizeof(type) == (bytes), #type)
#define FIELD(type, field, offset, bytes)                               \
  ASSERT(offsetof(type, field) == (offset), #type "." #field " moved"); \
  ASSERT(sizeof(((type *)0)->field) == (bytes), #type "." #field " has another size")

/* plugin.h */

SIZE(cuplug_error, 4096);
FIELD(cuplug_error, status, 0, 4);
FIELD(cuplug_error, cuda_code, 4, 4);
FIELD(cuplug_error, message_bytes, 8, 4);
FIELD(cuplug_error, reserved, 12, 4);
FIELD(cuplug_error, message, 16, 4080);

SIZE(cuplug_device, 8);
FIELD(cuplug_device, type, 0, 4);
FIELD(cuplug_device, id, 4, 4);

SIZE(cuplug_dtype, 4);
FIELD(cuplug_dtype, code, 0, 1);
FIELD(cuplug_dtype, bits, 1, 1);
FIELD(cuplug_dtype, lanes, 2, 2);

SIZE(cuplug_tensor, 48);
FIELD(cuplug_tensor, data, 0, 8);
FIELD(cuplug_tensor, device, 8, 8);
FIELD(cuplug_tensor, ndim, 16, 4);
FIELD(cuplug_tensor, dtype, 20, 4);
FIELD(cuplug_tensor, shape, 24, 8);
FIELD(cuplug_tensor, strides, 32, 8);
FIELD(cuplug_tensor, byte_offset, 40, 8);

SIZE(cuplug_scalar, 16);
FIELD(cuplug_scalar, f, 0, 8);
FIELD(cuplug_scalar, i, 0, 8);
FIELD(cuplug_scalar, u, 0, 8);
FIELD(cuplug_scalar, c, 0, 16);
FIELD(cuplug_scalar, s, 0, 8);
FIELD(cuplug_scalar, handle, 0, 8);
FIELD(cuplug_scalar, list, 0, 16);
SIZE(cuplug_items, 16);
FIELD(cuplug_items, items, 0, 8);
FIELD(cuplug_items, n, 8, 8);

SIZE(cuplug_fault, 64);
FIELD(cuplug_fault, claimed, 0, 4);
FIELD(cuplug_fault, status, 4, 4);
FIELD(cuplug_fault, tensor, 8, 4);
FIELD(cuplug_fault, text, 12, 4);
FIELD(cuplug_fault, position, 16, 8);
FIELD(cuplug_fault, value, 24, 8);
FIELD(cuplug_fault, low, 32, 8);
FIELD(cuplug_fault, high, 40, 8);
FIELD(cuplug_fault, summary, 48, 8);
FIELD(cuplug_fault, reserved_tail, 56, 8);

SIZE(cuplug_grid, 48);
FIELD(cuplug_grid, blocks, 0, 12);
FIELD(cuplug_grid, threads, 12, 12);
FIELD(cuplug_grid, shared_bytes, 24, 4);
FIELD(cuplug_grid, flags, 28, 4);
FIELD(cuplug_grid, cluster, 32, 12);
FIELD(cuplug_grid, reserved, 44, 4);

SIZE(cuplug_call, 120);
FIELD(cuplug_call, struct_bytes, 0, 4);
FIELD(cuplug_call, abi_version, 4, 4);
FIELD(cuplug_call, device, 8, 8);
FIELD(cuplug_call, stream, 16, 8);
FIELD(cuplug_call, tensors, 24, 8);
FIELD(cuplug_call, outputs, 32, 8);
FIELD(cuplug_call, scalars, 40, 8);
FIELD(cuplug_call, none_mask, 48, 8);
FIELD(cuplug_call, n_tensors, 56, 4);
FIELD(cuplug_call, n_scalars, 60, 4);
FIELD(cuplug_call, fault, 64, 8);
FIELD(cuplug_call, services, 72, 8);
FIELD(cuplug_call, run, 80, 8);
FIELD(cuplug_call, max_threads, 88, 4);
FIELD(cuplug_call, n_inputs, 92, 4);
FIELD(cuplug_call, supplied_mask, 96, 8);
FIELD(cuplug_call, state, 104, 8);
FIELD(cuplug_call, context, 112, 8);

SIZE(cuplug_services, 88);
FIELD(cuplug_services, struct_bytes, 0, 4);
FIELD(cuplug_services, reserved, 4, 4);
FIELD(cuplug_services, fail, 8, 8);
FIELD(cuplug_services, workspace, 16, 8);
FIELD(cuplug_services, output, 24, 8);
FIELD(cuplug_services, launch, 32, 8);
FIELD(cuplug_services, parallel, 40, 8);
FIELD(cuplug_services, threads, 48, 8);
FIELD(cuplug_services, interrupted, 56, 8);
FIELD(cuplug_services, device_attribute, 64, 8);
FIELD(cuplug_services, second_stream, 72, 8);
FIELD(cuplug_services, set_handle, 80, 8);

/* host.h */

SIZE(cuplug_argument, 56);
FIELD(cuplug_argument, kind, 0, 4);
FIELD(cuplug_argument, flags, 4, 4);
FIELD(cuplug_argument, tensor, 8, 48);
FIELD(cuplug_argument, scalar, 8, 16);

/* Structures that may grow at their end: then the size is larger, and these numbers remain. */
SIZE(cuplug_options, 48);
FIELD(cuplug_options, struct_bytes, 0, 4);
FIELD(cuplug_options, reserved, 4, 4);
FIELD(cuplug_options, device, 8, 8);
FIELD(cuplug_options, stream, 16, 8);
FIELD(cuplug_options, allocate, 24, 8);
FIELD(cuplug_options, progress, 32, 8);
FIELD(cuplug_options, user, 40, 8);

SIZE(cuplug_device_info, 144);
FIELD(cuplug_device_info, struct_bytes, 0, 4);
FIELD(cuplug_device_info, compute_capability, 4, 4);
FIELD(cuplug_device_info, memory_bytes, 8, 8);
FIELD(cuplug_device_info, name, 16, 128);

SIZE(cuplug_memory_info, 56);
FIELD(cuplug_memory_info, struct_bytes, 0, 4);
FIELD(cuplug_memory_info, reserved, 4, 4);
FIELD(cuplug_memory_info, total_bytes, 8, 8);
FIELD(cuplug_memory_info, free_bytes, 16, 8);
FIELD(cuplug_memory_info, reserved_bytes, 24, 8);
FIELD(cuplug_memory_info, used_bytes, 32, 8);
FIELD(cuplug_memory_info, peak_used_bytes, 40, 8);
FIELD(cuplug_memory_info, pinned_bytes, 48, 8);

/* Statuses, numbers of the note, and flags. */
ASSERT(CUPLUG_OK == 0 && CUPLUG_ERROR_VALUE == 100 && CUPLUG_ERROR_TYPE == 200, "statuses");
ASSERT(CUPLUG_ERROR_INDEX == 300 && CUPLUG_ERROR_MEMORY == 400, "statuses");
ASSERT(CUPLUG_ERROR_CUDA == 500 && CUPLUG_ERROR_PLUGIN == 600, "statuses");
ASSERT(CUPLUG_ERROR_NOT_FOUND == 700, "statuses");
ASSERT(CUPLUG_NOTE_PLUGIN == 0x70756332u && CUPLUG_NOTE_OPERATOR == 0x6f756332u, "the notes");
ASSERT(CUPLUG_ABI_MAJOR == 2 && sizeof(CUPLUG_NOTE_OWNER) == 8, "the notes");
ASSERT(CUPLUG_OVERLOAD_TAKES_STRIDES == 1 && CUPLUG_OVERLOAD_PREFERS_CUDA == 2, "row flags");
ASSERT(CUPLUG_OVERLOAD_NONBLOCKING == 4 && CUPLUG_OVERLOAD_NO_SPLIT == 8, "row flags");
ASSERT(CUPLUG_OVERLOAD_HANDLES == 64 && CUPLUG_OVERLOAD_ELEMENT_RANGES == 256, "row flags");
ASSERT(CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES == 16 && CUPLUG_OVERLOAD_IN_PLACE == 32, "row flags");
ASSERT(CUPLUG_PARAMETER_ARRAY == 0 && CUPLUG_PARAMETER_OUTPUT == 5, "kinds of parameters");
ASSERT(CUPLUG_PARAMETER_LIST == 6 && CUPLUG_PARAMETER_ARRAYS == 7, "kinds of parameters");
ASSERT(CUPLUG_ARGUMENT_ARRAY == 1 && CUPLUG_ARGUMENT_STRING == 8, "kinds of arguments");
ASSERT(CUPLUG_ARGUMENT_NONE == 9 && CUPLUG_ARGUMENT_OTHER == 11 && CUPLUG_ARGUMENT_HANDLE == 12,
       "kinds of arguments");
ASSERT(CUPLUG_ARGUMENT_DTYPE == 13 && CUPLUG_PARAMETER_DTYPE == 9, "kinds of dtypes");
ASSERT(CUPLUG_ORIGIN_LOADED == 6 && CUPLUG_STATE_MISSING == 6, "listings");
ASSERT(CUPLUG_FLOAT32 == 0x02200001 && CUPLUG_BOOL == 0x06080001, "dtype numbers");

CUPLUG_ENTRY int first_host(const cuplug_call *call) {
  return CUPLUG_HAS_FIELD(call, run) ? CUPLUG_OK : CUPLUG_ERROR_PLUGIN;
}
CUPLUG_ENTRY int second_cuda(const cuplug_call *call) {
  return cuplug_failf(call, CUPLUG_ERROR_VALUE, "n: got %d", 1);
}

/* The table of a plugin: all three forms of an operator, with and without properties. */
CUPLUG_HOST_OPERATOR(first_host, "first()", "First.");
CUPLUG_CUDA_OPERATOR(second_cuda, "second()", "Second." CUPLUG_TAKES_STRIDES CUPLUG_COST(n, 4 * n));
CUPLUG_OPERATOR(second_cuda, first_host, "third()",
                "Third." CUPLUG_GRADIENT(third_backward) CUPLUG_LINEAR(x, y));
CUPLUG_PLUGIN(layout, "1.2.3");

static int n_failed;

#define CHECK_NOTE(note, kind, wanted)                                                     \
  check((note).owner_bytes == 8 && (note).note_kind == (kind) &&                           \
            !memcmp((note).owner, "cuplug\0", 8) && (note).text_bytes == sizeof(wanted) && \
            !memcmp((note).text, wanted, sizeof(wanted)),                                  \
        wanted)

static void check(int condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "test_layout: not true: %s\n", what);
  n_failed++;
}

int main(void) {
  CHECK_NOTE(cuplug_symbols, CUPLUG_NOTE_PLUGIN,
             "abi=2.0\0name=layout\0version=1.2.3\0architectures=");
  CHECK_NOTE(cuplug_operator_0, CUPLUG_NOTE_OPERATOR,
             "order=0\0host=first_host\0signature=first()\0doc=First.");
  CHECK_NOTE(cuplug_operator_1, CUPLUG_NOTE_OPERATOR,
             "order=1\0cuda=second_cuda\0signature=second()\0doc=Second.\0!takes_strides\0flops=n\0"
             "bytes=4 * n");
  CHECK_NOTE(cuplug_operator_2, CUPLUG_NOTE_OPERATOR,
             "order=2\0cuda=second_cuda\0host=first_host\0signature=third()\0doc=Third.\0"
             "gradient=third_backward\0linear=x, y");
  return n_failed != 0;
}
