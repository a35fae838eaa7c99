/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum cost of the tensors of a library with DLPack's C exchange functions: in a loop, these
 * functions read three tensors and query the library's current stream, and C launches. */
#include "../fixtures/add3/add_kernel.cuh"

#include <cuda_runtime.h>
#include <cuplug/plugin.h>
#include <time.h>

typedef struct exchange_functions {
  uint32_t major, minor;
  void *previous;
  void *allocate, *export_managed, *import_managed;
  int (*export_borrowed)(void *array, cuplug_tensor *out);
  int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} exchange_functions;

static float *data_of(const cuplug_tensor *x) {
  return (float *)((char *)x->data + x->byte_offset);
}

static int launch(const exchange_functions *functions, void *const arrays[3]) {
  cuplug_tensor t[3];
  void *stream = nullptr;
  for (int k = 0; k < 3; k++)
    if (functions->export_borrowed(arrays[k], &t[k])) return 1;
  if (functions->current_stream(t[0].device.type, t[0].device.id, &stream)) return 1;
  add_kernel<<<1, 32, 0, (cudaStream_t)stream>>>(data_of(&t[0]), data_of(&t[1]), data_of(&t[2]),
                                                 t[0].shape[0]);
  return (int)cudaGetLastError();
}

/* The caller holds the GIL. Returns nanoseconds for n launches, negative on errors. */
extern "C" int64_t exchange_launch_ns(int n, const exchange_functions *functions, void *x, void *y,
                                      void *z) {
  void *const arrays[] = {x, y, z};
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int i = 0; i < n; i++) {
    int code = launch(functions, arrays);
    if (code) return -code;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec;
}
