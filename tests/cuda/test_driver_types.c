/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations of the CUDA driver in core/cuda/driver.h and runtime/kernels/driver.h, compared
 * with the toolkit's cuda.h, if available. Compiling is most of the test. */
#include <stdio.h>
#include <string.h>

/* By its path: <cuda.h> would be the core's own header of that name. */
#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#elif __has_include("/usr/include/cuda.h")
#include "/usr/include/cuda.h"
#endif

#ifndef CUDA_VERSION
int main(void) {
  puts("skipped: no cuda.h");
  return 0;
}
#else
#include "cuda/driver.h"
#include "kernels/driver.h"

/* Prototypes: the field of the table takes the toolkit's function. */
#define SAME_PROTOTYPE(table, function, symbol)                                           \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&function),                      \
                                              __typeof__(((struct table *)0)->function)), \
                 symbol);
#define CUPLUG__X(function, symbol, parameters) \
  SAME_PROTOTYPE(cuplug__driver_table, function, symbol)
CUPLUG__DRIVER_LIST(CUPLUG__X)
CUPLUG__LOADING_LIST(CUPLUG__X)
#undef CUPLUG__X
#define CUPLUG__X(function, symbol, parameters) \
  SAME_PROTOTYPE(cuplug__kernel_functions, function, symbol)
CUPLUG__LIBRARY_LIST(CUPLUG__X)
CUPLUG__NEWER_LIST(CUPLUG__X)
CUPLUG__TEXTURE_LIST(CUPLUG__X)
#undef CUPLUG__X

#define SAME_FIELD(ours, our_field, theirs, their_field)                                   \
  _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&             \
                     sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), \
                 #our_field)
#define SAME_POOL(ours, theirs) SAME_FIELD(cuplug__pool_properties, ours, CUmemPoolProps, theirs)
_Static_assert(sizeof(cuplug__pool_properties) == 88, "size");
_Static_assert(sizeof(cuplug__pool_properties) == sizeof(CUmemPoolProps), "size");
SAME_POOL(allocation_type, allocType);
SAME_POOL(handle_types, handleTypes);
SAME_POOL(location_type, location.type);
SAME_POOL(location_id, location.id);
SAME_POOL(security_attributes, win32SecurityAttributes);
SAME_POOL(max_bytes, maxSize);
SAME_POOL(usage, usage);
SAME_POOL(reserved, reserved);

#define SAME_TEXELS(ours, theirs) SAME_FIELD(cuplug__texels, ours, CUDA_ARRAY3D_DESCRIPTOR, theirs)
_Static_assert(sizeof(cuplug__texels) == sizeof(CUDA_ARRAY3D_DESCRIPTOR), "size");
SAME_TEXELS(width, Width);
SAME_TEXELS(depth, Depth);
SAME_TEXELS(format, Format);
SAME_TEXELS(n_channels, NumChannels);
SAME_TEXELS(flags, Flags);
_Static_assert((int)CUPLUG__ARRAY_SURFACE == (int)CUDA_ARRAY3D_SURFACE_LDST, "flag");

#define SAME_COPY(ours, theirs) SAME_FIELD(cuplug__copy_3d, ours, CUDA_MEMCPY3D, theirs)
_Static_assert(sizeof(cuplug__copy_3d) == sizeof(CUDA_MEMCPY3D), "size");
SAME_COPY(from.x_bytes, srcXInBytes);
SAME_COPY(from.memory_type, srcMemoryType);
SAME_COPY(from.host, srcHost);
SAME_COPY(from.device, srcDevice);
SAME_COPY(from.array, srcArray);
SAME_COPY(from.pitch_bytes, srcPitch);
SAME_COPY(from.height, srcHeight);
SAME_COPY(to.x_bytes, dstXInBytes);
SAME_COPY(to.memory_type, dstMemoryType);
SAME_COPY(to.device, dstDevice);
SAME_COPY(to.array, dstArray);
SAME_COPY(to.pitch_bytes, dstPitch);
SAME_COPY(to.height, dstHeight);
SAME_COPY(width_bytes, WidthInBytes);
SAME_COPY(depth, Depth);
_Static_assert((int)CUPLUG__COPY_DEVICE == (int)CU_MEMORYTYPE_DEVICE, "memory");
_Static_assert((int)CUPLUG__COPY_ARRAY == (int)CU_MEMORYTYPE_ARRAY, "memory");

_Static_assert(sizeof(cuplug__resource) == sizeof(CUDA_RESOURCE_DESC), "size");
SAME_FIELD(cuplug__resource, of.array, CUDA_RESOURCE_DESC, res.array.hArray);
SAME_FIELD(cuplug__resource, flags, CUDA_RESOURCE_DESC, flags);
_Static_assert((int)CUPLUG__RESOURCE_ARRAY == (int)CU_RESOURCE_TYPE_ARRAY, "type");

#define SAME_SAMPLER(ours, theirs) SAME_FIELD(cuplug__sampler, ours, CUDA_TEXTURE_DESC, theirs)
_Static_assert(sizeof(cuplug__sampler) == sizeof(CUDA_TEXTURE_DESC), "size");
SAME_SAMPLER(addressing, addressMode);
SAME_SAMPLER(filter, filterMode);
SAME_SAMPLER(flags, flags);
SAME_SAMPLER(border, borderColor);
_Static_assert((int)CUPLUG__READ_AS_INTEGER == (int)CU_TRSF_READ_AS_INTEGER, "flag");
_Static_assert((int)CUPLUG__NORMALIZED == (int)CU_TRSF_NORMALIZED_COORDINATES, "flag");

#define SAME_LAUNCH(ours, theirs) SAME_FIELD(cuplug__launch_config, ours, CUlaunchConfig, theirs)
_Static_assert(sizeof(cuplug__launch_attribute) == sizeof(CUlaunchAttribute), "size");
SAME_FIELD(cuplug__launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(cuplug__launch_attribute, value, CUlaunchAttribute, value);
_Static_assert((int)CUPLUG__LAUNCH_COOPERATIVE == (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE, "id");
_Static_assert((int)CUPLUG__LAUNCH_CLUSTER == (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, "id");
_Static_assert((int)CUPLUG__LAUNCH_PROGRAMMATIC ==
                   (int)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
               "id");
_Static_assert(sizeof(cuplug__launch_config) == sizeof(CUlaunchConfig), "size");
SAME_LAUNCH(blocks[0], gridDimX);
SAME_LAUNCH(blocks[2], gridDimZ);
SAME_LAUNCH(threads[0], blockDimX);
SAME_LAUNCH(threads[2], blockDimZ);
SAME_LAUNCH(shared_bytes, sharedMemBytes);
SAME_LAUNCH(stream, hStream);
SAME_LAUNCH(attributes, attrs);
SAME_LAUNCH(n_attributes, numAttrs);

#define SAME_TYPE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
SAME_TYPE(int, CUresult);
SAME_TYPE(int, CUdevice);
SAME_TYPE(int, CUdevice_attribute);
SAME_TYPE(int, CUmemPool_attribute);
SAME_TYPE(int, CUpointer_attribute);
SAME_TYPE(int, CUstreamCaptureMode);
SAME_TYPE(int, CUstreamCaptureStatus);
SAME_TYPE(unsigned long long, CUdeviceptr);
SAME_TYPE(int, CUjit_option);
SAME_TYPE(int, CUlibraryOption);
SAME_TYPE(int, CUfunction_attribute);

#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_NUMBER(CUPLUG__CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(CUPLUG__CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME_NUMBER(CUPLUG__CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME_NUMBER(CUPLUG__CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_NUMBER(CUPLUG__CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_NUMBER(CUPLUG__CU_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME_NUMBER(CUPLUG__CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME_NUMBER(CUPLUG__CU_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_NUMBER(CUPLUG__CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME_NUMBER(CUPLUG__CU_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_NUMBER(CUPLUG__CU_CAPTURE_ISOLATION, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME_NUMBER(CUPLUG__CU_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_NUMBER(CUPLUG__CU_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
SAME_NUMBER(CUPLUG__CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME_NUMBER(CUPLUG__CU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME_NUMBER(CUPLUG__CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_NUMBER(CUPLUG__JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME_NUMBER(CUPLUG__JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_NUMBER(CUPLUG__MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME_NUMBER(CUPLUG__MAX_BLOCK_DIM_X + 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME_NUMBER(CUPLUG__MAX_BLOCK_DIM_X + 3, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME_NUMBER(CUPLUG__MAX_BLOCK_DIM_X + 5, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME_NUMBER(CUPLUG__N_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_NUMBER(CUPLUG__MAX_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_NUMBER(CUPLUG__KERNEL_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_NUMBER(CUPLUG__KERNEL_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_NUMBER(CUPLUG__KERNEL_CONSTANT_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME_NUMBER(CUPLUG__KERNEL_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_NUMBER(CUPLUG__KERNEL_N_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_NUMBER(CUPLUG__KERNEL_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_NUMBER(CUPLUG__CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(CUPLUG__CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(CUPLUG__MEMORY_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_NUMBER(CUPLUG__POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_NUMBER(CUPLUG__POOL_RESERVED, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME_NUMBER(CUPLUG__POOL_USED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME_NUMBER(CUPLUG__POOL_PEAK_USED, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME_NUMBER(CUPLUG__ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_NUMBER(CUPLUG__LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(CUPLUG__HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME_NUMBER(CUPLUG__HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);
SAME_NUMBER(CUPLUG__MANAGED_GLOBAL, CU_MEM_ATTACH_GLOBAL);
SAME_NUMBER(CUPLUG__STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(CUPLUG__EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(CUPLUG__POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_NUMBER(CUPLUG__POINTER_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME_NUMBER(CUPLUG__POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_NUMBER(CUPLUG__POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_NUMBER(CUPLUG__MEMORY_TYPE_HOST, CU_MEMORYTYPE_HOST);
SAME_NUMBER(CUPLUG__CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);

#undef cuEventElapsedTime /* drivers of CUDA 12.0 have only the first one */

/* Symbols: the name with the version that cuda.h's macros choose. */
#define TEXT(...) #__VA_ARGS__
#define EXPANDED(...) TEXT(__VA_ARGS__)
static const struct {
  const char *ours, *theirs;
} symbols[] = {
#define CUPLUG__X(function, symbol, parameters) {symbol, EXPANDED(function)},
    CUPLUG__DRIVER_LIST(CUPLUG__X) CUPLUG__LOADING_LIST(CUPLUG__X) CUPLUG__LIBRARY_LIST(CUPLUG__X)
        CUPLUG__NEWER_LIST(CUPLUG__X)
#undef CUPLUG__X
};

int main(void) {
  int n_wrong = 0;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    if (!strcmp(symbols[i].ours, symbols[i].theirs)) continue;
    printf("got %s, expected %s\n", symbols[i].ours, symbols[i].theirs);
    n_wrong++;
  }
  return n_wrong;
}
#endif
