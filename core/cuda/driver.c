/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver.h"

#include "base/library.h"
#include "base/status.h"

#include <stddef.h>
#include <string.h>

cuplug__driver_table cuplug__driver;
int32_t cuplug__driver_version;

static int fail_too_old(cuplug_error *error, int version) {
  return cuplug__fail(error, CUPLUG_ERROR_CUDA,
                      "the NVIDIA driver is too old: got CUDA %d.%d, expected %d.%d or newer; "
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
      CUPLUG__DRIVER_LIST(CUPLUG__X) CUPLUG__LOADING_LIST(CUPLUG__X)
#undef CUPLUG__X
  };
  const size_t n_needed = offsetof(cuplug__driver_table, cuKernelGetFunction) / sizeof(void *);
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

int cuplug__driver_open(cuplug_error *error) {
  cuplug_error reason;
  void *library = cuplug__library_open("libcuda.so.1", &reason);
  return library ? find_functions(library, error) : fail_no_driver(error, &reason);
}

/* Most launches have none: they pay for one comparison. */
static uint32_t write_attributes(const cuplug_grid *grid, cuplug__launch_attribute *to) {
  uint32_t n = 0;
  if (grid->flags & CUPLUG_COOPERATIVE)
    to[n++] = (cuplug__launch_attribute){.id = CUPLUG__LAUNCH_COOPERATIVE, .value.is_on = 1};
  if (grid->flags & CUPLUG_PROGRAMMATIC)
    to[n++] = (cuplug__launch_attribute){.id = CUPLUG__LAUNCH_PROGRAMMATIC, .value.is_on = 1};
  if (grid->cluster[0]) {
    to[n] = (cuplug__launch_attribute){.id = CUPLUG__LAUNCH_CLUSTER};
    memcpy(to[n++].value.cluster, grid->cluster, sizeof grid->cluster);
  }
  return n;
}

int cuplug__driver_launch(void *kernel, const cuplug_grid *grid, void *stream, void **arguments) {
  cuplug__launch_attribute attributes[3];
  cuplug__launch_config config = {.shared_bytes = grid->shared_bytes, .stream = stream};
  memcpy(config.blocks, grid->blocks, sizeof grid->blocks);
  memcpy(config.threads, grid->threads, sizeof grid->threads);
  if (grid->flags | grid->cluster[0]) {
    config.attributes = attributes;
    config.n_attributes = write_attributes(grid, attributes);
  }
  return (int)cuplug__driver.cuLaunchKernelEx((const CUlaunchConfig *)&config, kernel, arguments,
                                              NULL);
}

/* ---- Errors, with what to do about them ------------------------------------------------------ */

/* Errors that "leave the process in an inconsistent state", by the driver's documentation. */
static const int sticky_codes[] = {214, 220, 226, 700, 702, 709, 710, 714,
                                   715, 716, 717, 718, 719, 721, 911};

/* The operator launched last, and the one before: an error may appear at the launch after it. Apart
 * from data that calls only read. */
static _Alignas(128) const char *_Atomic last_launched;
static const char *_Atomic launched_before;
static _Alignas(128) _Atomic int sticky_code;
static const char *_Atomic sticky_name;
static const char *_Atomic sticky_before;

static int is_sticky(int code) {
  for (size_t i = 0; i < sizeof sticky_codes / sizeof *sticky_codes; i++)
    if (code == sticky_codes[i]) return 1;
  return 0;
}

/* Written when it changes: threads that call one operator write to no line that they share. */
void cuplug__cuda_note_operator(const char *name) {
  const char *last = atomic_load_explicit(&last_launched, memory_order_relaxed);
  if (last == name) return;
  atomic_store_explicit(&launched_before, last, memory_order_relaxed);
  atomic_store_explicit(&last_launched, name, memory_order_release);
}

int cuplug__cuda_sticky(void) { return atomic_load_explicit(&sticky_code, memory_order_relaxed); }

/* The first error that is noted counts. */
void cuplug__cuda_note_sticky(int code, const char *name) {
  const char *nobody = NULL;
  int none = 0;
  if (!is_sticky(code)) return;
  if (name && atomic_compare_exchange_strong(&sticky_name, &nobody, name))
    atomic_store(&sticky_before, atomic_load(&launched_before));
  atomic_compare_exchange_strong(&sticky_code, &none, code);
}

void cuplug__cuda_explain(cuplug_error *error, int code) {
  if (code == CUPLUG__CU_INSUFFICIENT_DRIVER || code == CUPLUG__CU_UNSUPPORTED_PTX_VERSION)
    cuplug__append(error,
                   "; the plugin was built with a newer CUDA than the driver supports (%d.%d): "
                   "update the driver, or build the plugin with an older toolkit",
                   cuplug__driver_version / 1000, cuplug__driver_version % 1000 / 10);
  if (code == CUPLUG__CU_NO_BINARY_FOR_GPU)
    cuplug__append(error, "; the plugin has no code for this GPU: see `cuplug doctor`");
  if (code == CUPLUG__CU_CAPTURE_IMPLICIT)
    cuplug__append(error, "; a CUDA graph is being captured, and the legacy default stream cannot "
                          "be used meanwhile; pass the captured stream with stream=");
  else if (code >= CUPLUG__CU_CAPTURE_UNSUPPORTED && code <= CUPLUG__CU_CAPTURE_WRONG_THREAD)
    cuplug__append(error, "; a CUDA graph is being captured, and this cannot be part of one");
  if (!is_sticky(code)) return;
  cuplug__cuda_note_sticky(code, atomic_load_explicit(&last_launched, memory_order_acquire));
  const char *name = atomic_load(&sticky_name), *before = atomic_load(&sticky_before);
  cuplug__append(error, "; CUDA can no longer be used in this process%s%s%s%s: restart it",
                 name ? ", first seen after operator " : "", name ? name : "",
                 before ? ", before it " : "", before ? before : "");
}

int cuplug__cuda_report(cuplug_error *error, int code, const char *doing) {
  const char *name = NULL, *text = NULL;
  if (code == CUPLUG__CU_OUT_OF_MEMORY)
    return cuplug__fail(error, CUPLUG_ERROR_MEMORY, "%s: CUDA ran out of memory", doing);
  if (cuplug__driver.cuGetErrorName) cuplug__driver.cuGetErrorName((CUresult)code, &name);
  if (cuplug__driver.cuGetErrorString) cuplug__driver.cuGetErrorString((CUresult)code, &text);
  cuplug__fail(error, CUPLUG_ERROR_CUDA, "%s: CUDA error %d%s%s%s%s", doing, code, name ? ", " : "",
               name ? name : "", text ? ": " : "", text ? text : "");
  if (error) error->cuda_code = code;
  return CUPLUG_ERROR_CUDA;
}

int cuplug__cuda_fail(cuplug_error *error, int code, const char *doing) {
  int status = cuplug__cuda_report(error, code, doing);
  if (status == CUPLUG_ERROR_CUDA) cuplug__cuda_explain(error, code);
  return status;
}

int cuplug__cuda_check(cuplug_error *error, int code, const char *doing) {
  return code ? cuplug__cuda_fail(error, code, doing) : CUPLUG_OK;
}
