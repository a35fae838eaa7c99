/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries, found when an operator first needs them. They are called through their C ABI:
 * the build needs none of their headers and links none of them. */
#ifndef CUPLUG_PLUGINS_LINALG_LIBRARY_H
#define CUPLUG_PLUGINS_LINALG_LIBRARY_H

#include <cuplug/plugin.h>

#define CUPLUG_MAX_FUNCTIONS 32

/* A library: file names, preferred first, and function names. NULL ends each list. */
typedef struct library {
  const char *title, *package; /* "cuBLAS"; "nvidia-cublas", the package that installs it */
  const char *files[3];
  const char *functions[CUPLUG_MAX_FUNCTIONS];
} library;

/* Sets addresses[k] to function k. The library is the one that the process has loaded, else the
 * first that the dynamic linker finds. Returns CUPLUG_OK, or the result of cuplug_fail. */
int library_open(const cuplug_call *call, const library *l, void **addresses);

/* Returns a function that only newer versions of an opened library have, or NULL. */
void *library_function(const library *l, const char *name);

#endif
