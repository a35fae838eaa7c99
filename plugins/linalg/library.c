/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/library.h"

#include <cuplug/format.h>

#include <dlfcn.h>

static void *open_first(const library *l, int flags) {
  void *opened = NULL;
  for (int k = 0; !opened && l->files[k]; k++) opened = dlopen(l->files[k], flags);
  return opened;
}

int library_open(const cuplug_call *call, const library *l, void **addresses) {
  void *opened = open_first(l, RTLD_NOW | RTLD_NOLOAD);
  if (!opened) opened = open_first(l, RTLD_NOW);
  if (!opened)
    return cuplug_failf(call, CUPLUG_ERROR_PLUGIN,
                        "got no %s, expected %s; install %s, or add its folder to LD_LIBRARY_PATH",
                        l->files[0], l->title, l->package);
  for (int k = 0; l->functions[k]; k++)
    if (!(addresses[k] = dlsym(opened, l->functions[k])))
      return cuplug_failf(call, CUPLUG_ERROR_PLUGIN,
                          "got a %s without %s, expected that of CUDA 12 or 13; install %s",
                          l->title, l->functions[k], l->package);
  return CUPLUG_OK;
}

void *library_function(const library *l, const char *name) {
  void *opened = open_first(l, RTLD_NOW | RTLD_NOLOAD);
  return opened ? dlsym(opened, name) : NULL;
}
