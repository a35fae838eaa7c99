/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries, found when an operator first needs them: by their C ABI, so that no header of
 * theirs is needed to build cuplug, and none is linked. */
#ifndef CUPLUG_PLUGINS_LINALG_LIBRARY_H
#define CUPLUG_PLUGINS_LINALG_LIBRARY_H

#include <cuplug/plugin.h>

#define CUPLUG_MAX_FUNCTIONS 32

/* A library: names of files, the preferred one first, and of functions; NULL ends each list. */
typedef struct library {
  const char *title, *package; /* "cuBLAS"; "nvidia-cublas", what installs it */
  const char *files[3];
  const char *functions[CUPLUG_MAX_FUNCTIONS];
} library;

/* Sets addresses[k] to function k. The library is the one that the process has loaded, else the
 * first that the dynamic linker finds. Returns CUPLUG_OK, or what cuplug_fail returned. */
int library_open(const cuplug_call *call, const library *l, void **addresses);

/* Returns a function that newer versions of an opened library have; else NULL. */
void *library_function(const library *l, const char *name);

#endif
