/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver.h"

#include "base/library.h"
#include "base/status.h"

#include <stddef.h>
#include <string.h>

cuplug__driver_table cuplug__driver;
int32_t cuplug__driver_version;

static int fail_too_old(cuplug_error *error, int version) {
  return cuplug__fail(
      error, CUPLUG_ERROR_CUDA,
      "the NVIDIA driver is too old: it supports CUDA %d.%d, expected %d.%d or newer; "
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
  if (grid->flags & CUPLUG_OVERLAPPING)
    to[n++] = (cuplug__launch_attribute){.id = CUPLUG__LAUNCH_OVERLAPPING, .value.is_on = 1};
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
