/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of a first call: dlopen, dlsym and one call of an entry, from C, in a fresh process.
 *
 *     first_use_floor libnoop.so noop_host       one call on the host
 *     first_use_floor libadd3.so add3_cuda cuda  one launch, and a wait for it
 *
 * Prints microseconds. The CUDA context exists before the clock starts. */
#include <cuplug/plugin.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_ELEMENTS = 16, N_BYTES = N_ELEMENTS * 4 };

static void *the_driver;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* Makes the primary context of device 0 current and allocates three arrays. */
static int start_cuda(uint64_t pointers[3]) {
  int device = 0, code = 0;
  void *context = NULL;
  the_driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!the_driver) return -1;
  int (*init)(unsigned) = dlsym(the_driver, "cuInit");
  int (*get)(int *, int) = dlsym(the_driver, "cuDeviceGet");
  int (*retain)(void **, int) = dlsym(the_driver, "cuDevicePrimaryCtxRetain");
  int (*set_current)(void *) = dlsym(the_driver, "cuCtxSetCurrent");
  int (*allocate)(uint64_t *, size_t) = dlsym(the_driver, "cuMemAlloc_v2");
  int (*set)(uint64_t, unsigned char, size_t) = dlsym(the_driver, "cuMemsetD8_v2");
  code = init(0);
  if (!code) code = get(&device, 0);
  if (!code) code = retain(&context, device);
  if (!code) code = set_current(context);
  for (int k = 0; k < 3 && !code; k++) code = allocate(&pointers[k], N_BYTES);
  for (int k = 0; k < 3 && !code; k++) code = set(pointers[k], 0, N_BYTES);
  return code;
}

/* The host's part of a launch. */
static int launch(const cuplug_call *call, void *kernel, const cuplug_grid *grid,
                  void **arguments) {
  static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, void *, void **, void **);
  const uint32_t *b = grid->blocks, *t = grid->threads;
  if (!launch_kernel) *(void **)&launch_kernel = dlsym(the_driver, "cuLaunchKernel");
  return launch_kernel(kernel, b[0], b[1], b[2], t[0], t[1], t[2], grid->shared_bytes, call->stream,
                       arguments, NULL);
}

static const cuplug_services services = {.struct_bytes = sizeof services, .launch = launch};

static int first_call(const char *path, const char *symbol, const cuplug_call *call) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cuplug_entry *entry = library ? (cuplug_entry *)dlsym(library, symbol) : NULL;
  if (!entry) return fprintf(stderr, "%s\n", dlerror());
  if (entry(call)) return fputs("the entry failed\n", stderr);
  if (!the_driver) return 0;
  int (*synchronize)(void) = dlsym(the_driver, "cuCtxSynchronize");
  return synchronize();
}

int main(int argc, char **argv) {
  static float host[3][N_ELEMENTS];
  uint64_t pointers[3] = {(uintptr_t)host[0], (uintptr_t)host[1], (uintptr_t)host[2]};
  int64_t shape[1] = {N_ELEMENTS};
  cuplug_tensor tensors[3];
  int on_gpu = argc > 3;
  if (argc < 3) return 2;
  if (on_gpu && start_cuda(pointers)) return fputs("no CUDA\n", stderr), 1;
  cuplug_device device = {on_gpu ? CUPLUG_CUDA : CUPLUG_CPU, 0};
  for (int k = 0; k < 3; k++)
    tensors[k] = (cuplug_tensor){.data = (void *)(uintptr_t)pointers[k],
                                 .device = device,
                                 .ndim = 1,
                                 .dtype = {2, 32, 1},
                                 .shape = shape};
  void *legacy_stream = (void *)1;
  cuplug_call call = {.struct_bytes = sizeof call,
                      .abi_version = CUPLUG_ABI_VERSION,
                      .device = device,
                      .stream = on_gpu ? legacy_stream : NULL,
                      .tensors = tensors,
                      .n_tensors = 3,
                      .services = &services};
  double start_us = now_us();
  if (first_call(argv[1], argv[2], &call)) return 1;
  printf("%.3f\n", now_us() - start_us);
  return 0;
}
