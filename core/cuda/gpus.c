/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/gpus.h"

#include "base/status.h"
#include "cuda/driver.h"

#include <internal/functions.h>
#include <pthread.h>
#include <stddef.h>

cuplug__gpu cuplug__gpus[CUPLUG__MAX_GPUS];
int32_t cuplug__n_gpus;

/* STARTING exists only for the child handler: a child forked meanwhile must not use CUDA. */
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

static const struct {
  int code;
  const char *advice;
} failures[] = {
    {CUPLUG__CU_NO_DEVICE, "the NVIDIA driver found no GPU; check what nvidia-smi lists and "
                           "whether CUDA_VISIBLE_DEVICES hides it"},
    {CUPLUG__CU_STUB_LIBRARY, "libcuda.so.1 is the toolkit's stub, not the NVIDIA driver; remove "
                              "the toolkit's directory of stubs from LD_LIBRARY_PATH"},
    {CUPLUG__CU_SYSTEM_NOT_READY,
     "the GPU system is not ready; check that the NVIDIA fabric manager "
     "or persistence daemon runs"},
    {CUPLUG__CU_SYSTEM_DRIVER_MISMATCH, "the NVIDIA kernel module and libcuda.so.1 have different "
                                        "versions; reboot after a driver update"}};

static int fail_init(cuplug_error *error, int code) {
  if (code == CUPLUG__CU_NOT_INITIALIZED) return fail_forked(error);
  for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
    if (failures[k].code != code) continue;
    cuplug__fail(error, CUPLUG_ERROR_CUDA, "%s", failures[k].advice);
    if (error) error->cuda_code = code;
    return CUPLUG_ERROR_CUDA;
  }
  return cuplug__cuda_fail(error, code, "starting the NVIDIA driver");
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
  if (!code)
    code = cuplug__driver.cuDeviceGetAttribute(&gpu->n_processors, CUPLUG__N_MULTIPROCESSORS,
                                               gpu->handle);
  if (!code) code = cuplug__driver.cuDeviceTotalMem(&bytes, gpu->handle);
  gpu->capability = major * 10 + minor;
  gpu->memory_bytes = bytes;
  return code;
}

static int start(cuplug_error *error) {
  int n = 0;
  int status = cuplug__driver_open(error);
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

/* A failure is stored: a driver does not appear during a process, and each new search would walk
 * through the library path. */
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

int cuplug__cuda_check_device(int32_t device, cuplug_error *error) {
  if (device >= 0 && device < cuplug__n_gpus) return CUPLUG_OK;
  if (cuplug__n_gpus == 1)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "device: got cuda:%d, expected cuda:0, the only GPU", device);
  return cuplug__fail(error, CUPLUG_ERROR_VALUE, "device: got cuda:%d, expected cuda:0 to cuda:%d",
                      device, cuplug__n_gpus - 1);
}

/* Returns whether a GPU runs code for an architecture, 90, whose suffix is 'a' if it is only for
 * this one, or 'f' if it is for its family. Other code of a lower capability may exist as PTX: the
 * launch reports if not. */
static int runs_code(int32_t capability, int32_t architecture, char suffix) {
  if (suffix == 'a') return architecture == capability;
  return architecture <= capability && (suffix != 'f' || architecture / 10 == capability / 10);
}

int cuplug__cuda_can_run(int32_t device, const char *architectures, int32_t *capability) {
  int n_seen = 0;
  *capability = 0;
  if (cuplug__cuda_start(NULL) || device < 0 || device >= cuplug__n_gpus) return 0;
  *capability = cuplug__gpus[device].capability;
  for (const char *at = architectures; *at;) {
    int32_t value = 0, n_digits = 0;
    for (; *at >= '0' && *at <= '9'; at++, n_digits++)
      if (value < 100000) value = value * 10 + (*at - '0');
    if (n_digits && runs_code(*capability, value / 10, *at)) return 1;
    n_seen += n_digits > 0;
    if (!n_digits) at++;
  }
  return n_seen == 0;
}

/* ---- Contexts -------------------------------------------------------------------------------- */

/* Two threads may both retain: the context is the same, and never released. */
static int primary_context(cuplug__gpu *gpu, CUcontext *context, cuplug_error *error) {
  *context = atomic_load_explicit(&gpu->context, memory_order_acquire);
  if (*context) return CUPLUG_OK;
  int code = cuplug__driver.cuDevicePrimaryCtxRetain(context, gpu->handle);
  if (code) return cuplug__cuda_fail(error, code, "making a CUDA context");
  atomic_store_explicit(&gpu->context, *context, memory_order_release);
  return CUPLUG_OK;
}

static int make_current(int32_t device, cuplug__context *context, cuplug_error *error) {
  CUcontext wanted, current = NULL;
  int status = cuplug__cuda_start(error);
  if (status) return status;
  int poison = cuplug__cuda_sticky();
  if (poison) return cuplug__cuda_fail(error, poison, "CUDA failed before");
  status = cuplug__cuda_check_device(device, error);
  if (status) return status;
  status = primary_context(&cuplug__gpus[device], &wanted, error);
  if (status) return status;
  int code = cuplug__driver.cuCtxGetCurrent(&current);
  if (!code && current != wanted) code = cuplug__driver.cuCtxSetCurrent(wanted);
  if (code) return cuplug__cuda_fail(error, code, "making a CUDA context current");
  context->current = wanted;
  context->previous = current;
  return CUPLUG_OK;
}

cuplug__context cuplug__cuda_enter(int32_t device, cuplug_error *error) {
  cuplug__context context = {NULL, NULL, CUPLUG_OK};
  context.status = make_current(device, &context, error);
  return context;
}

void cuplug__cuda_leave(const cuplug__context *context) {
  if (context->previous != context->current) cuplug__driver.cuCtxSetCurrent(context->previous);
}

uint64_t cuplug_used_gpus(void) {
  uint64_t used = 0;
  for (int32_t id = 0; id < cuplug__n_gpus; id++)
    if (atomic_load_explicit(&cuplug__gpus[id].context, memory_order_relaxed))
      used |= (uint64_t)1 << id;
  return used;
}
