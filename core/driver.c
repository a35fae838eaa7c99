/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "cuda.h"
#include "library.h"
#include "status.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

cuplug__driver_table cuplug__driver;
cuplug__gpu cuplug__gpus[CUPLUG__MAX_GPUS];
int32_t cuplug__n_gpus;
int32_t cuplug__driver_version;

/* STARTING is there for the child handler alone: a child forked meanwhile must not use CUDA. */
enum { NEW, STARTING, READY, FAILED, FORKED };
static _Atomic int state = NEW;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuplug_error failure; /* constant once the state is FAILED */

/* The lock may be held by a thread that does not exist in the child. No prepare handler takes it
 * before the fork: the driver itself forks while it starts. */
static void note_fork(void) {
  int now = atomic_load(&state);
  if (now == STARTING || now == READY) atomic_store(&state, FORKED);
  pthread_mutex_init(&lock, NULL);
}

static int fail_forked(cuplug_error *error) {
  return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                      "CUDA cannot be used in a process forked after CUDA started: start worker "
                      "processes with the method \"spawn\" or \"forkserver\" instead of \"fork\"");
}

static int fail_too_old(cuplug_error *error, int version) {
  return cuplug__fail(
      error, CUPLUG_ERROR_CUDA,
      "the NVIDIA driver is too old: it supports CUDA %d.%d, wanted %d.%d or newer; "
      "update the driver",
      version / 1000, version % 1000 / 10, CUPLUG__MIN_DRIVER / 1000,
      CUPLUG__MIN_DRIVER % 1000 / 10);
}

static int fail_no_driver(cuplug_error *error, const cuplug_error *reason) {
  if (strstr(reason->message, "libcuda.so.1: cannot open"))
    return cuplug__fail(
        error, CUPLUG_ERROR_CUDA,
        "no NVIDIA driver: libcuda.so.1 was not found; install the driver, or start "
        "the container with its GPUs (docker run --gpus all)");
  return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                      "the NVIDIA driver's libcuda.so.1 does not load: %s; reinstall the driver",
                      reason->message);
}

static int find_functions(void *library, cuplug_error *error) {
  const char *missing = NULL;
  const struct {
    const char *symbol;
    void *slot;
  } functions[] = {
#define CUPLUG__X(function, symbol, parameters) {symbol, &cuplug__driver.function},
      CUPLUG__DRIVER_LIST(CUPLUG__X) CUPLUG__LIBRARY_LIST(CUPLUG__X) CUPLUG__NEWER_LIST(CUPLUG__X)
#undef CUPLUG__X
  };
  const size_t n_needed = offsetof(cuplug__driver_table, cuLibraryLoadData) / sizeof(void *);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *address = cuplug__library_symbol(library, functions[i].symbol);
    memcpy(functions[i].slot, &address, sizeof address);
    if (!address && !missing && i < n_needed) missing = functions[i].symbol;
  }
  int version = 0;
  if (cuplug__driver.cuDriverGetVersion) cuplug__driver.cuDriverGetVersion(&version);
  cuplug__driver_version = version;
  if (version > 0 && version < CUPLUG__MIN_DRIVER) return fail_too_old(error, version);
  if (missing)
    return cuplug__fail(
        error, CUPLUG_ERROR_CUDA,
        "the NVIDIA driver's libcuda.so.1 has no %s: update or reinstall the driver", missing);
  return CUPLUG_OK;
}

static int open_driver(cuplug_error *error) {
  cuplug_error reason;
  void *library = cuplug__library_open("libcuda.so.1", &reason);
  return library ? find_functions(library, error) : fail_no_driver(error, &reason);
}

static int fail_init(cuplug_error *error, int code) {
  const char *advice = NULL;
  switch (code) {
  case CUPLUG__CU_NOT_INITIALIZED:
    return fail_forked(error);
  case CUPLUG__CU_NO_DEVICE:
    advice = "the NVIDIA driver found no GPU: see what nvidia-smi lists and whether "
             "CUDA_VISIBLE_DEVICES hides it";
    break;
  case CUPLUG__CU_STUB_LIBRARY:
    advice = "libcuda.so.1 is the toolkit's stub, not the NVIDIA driver: take the toolkit's "
             "directory of stubs out of LD_LIBRARY_PATH";
    break;
  case CUPLUG__CU_SYSTEM_NOT_READY:
    advice =
        "the GPU system is not ready: see that the NVIDIA fabric manager or persistence daemon "
        "runs";
    break;
  case CUPLUG__CU_SYSTEM_DRIVER_MISMATCH:
    advice =
        "the NVIDIA kernel module and libcuda.so.1 are of different versions: reboot after the "
        "driver's update";
    break;
  default:
    return cuplug__cuda_fail(error, code, "starting the NVIDIA driver");
  }
  cuplug__fail(error, CUPLUG_ERROR_CUDA, "%s", advice);
  if (error) error->cuda_code = code;
  return CUPLUG_ERROR_CUDA;
}

static int list_gpu(int32_t id) {
  cuplug__gpu *gpu = &cuplug__gpus[id];
  int major = 0, minor = 0;
  size_t bytes = 0;
  int code = cuplug__driver.cuDeviceGet(&gpu->handle, id);
  if (!code)
    code = cuplug__driver.cuDeviceGetAttribute(&major, CUPLUG__CAPABILITY_MAJOR, gpu->handle);
  if (!code)
    code = cuplug__driver.cuDeviceGetAttribute(&minor, CUPLUG__CAPABILITY_MINOR, gpu->handle);
  if (!code) code = cuplug__driver.cuDeviceTotalMem(&bytes, gpu->handle);
  gpu->capability = major * 10 + minor;
  gpu->memory_bytes = bytes;
  return code;
}

static int start(cuplug_error *error) {
  int n = 0;
  int status = open_driver(error);
  if (status) return status;
  int code = cuplug__driver.cuInit(0);
  if (!code) code = cuplug__driver.cuDeviceGetCount(&n);
  if (!code && n < 1) code = CUPLUG__CU_NO_DEVICE;
  if (n > CUPLUG__MAX_GPUS) n = CUPLUG__MAX_GPUS;
  for (int32_t id = 0; !code && id < n; id++) code = list_gpu(id);
  if (code) return fail_init(error, code);
  cuplug__n_gpus = n;
  return CUPLUG_OK;
}

static int start_once(cuplug_error *error) {
  static int watches_forks;
  int expected = NEW;
  atomic_compare_exchange_strong(&state, &expected, STARTING);
  pthread_mutex_lock(&lock);
  if (atomic_load(&state) == STARTING) {
    if (!watches_forks) watches_forks = !pthread_atfork(NULL, NULL, note_fork);
    int status = start(&failure);
    atomic_store(&state, status ? FAILED : READY);
  }
  pthread_mutex_unlock(&lock);
  return cuplug__cuda_start(error);
}

/* A failure is remembered: a driver does not appear under a running process, and looking for it
 * again would cost each call a walk through the library path. */
int cuplug__cuda_start(cuplug_error *error) {
  switch (atomic_load_explicit(&state, memory_order_acquire)) {
  case READY:
    return CUPLUG_OK;
  case FORKED:
    return fail_forked(error);
  case FAILED:
    cuplug__fail(error, failure.status, "%s", failure.message);
    if (error) error->cuda_code = failure.cuda_code;
    return failure.status;
  default:
    return start_once(error);
  }
}

int cuplug__driver_ready(void) {
  return atomic_load_explicit(&state, memory_order_acquire) == READY;
}
