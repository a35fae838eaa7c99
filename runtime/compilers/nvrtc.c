/* SPDX-License-Identifier: Apache-2.0 */
#include "compilers/nvrtc.h"

#include "base/core.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NEWEST = 19, OLDEST = 12 }; /* major versions that are searched */

static cuplug__nvrtc opened;
static _Atomic(const cuplug__nvrtc *) ready; /* &opened, once it is filled */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cuplug__open_compiler(const char *path, const char *name, const cuplug__function *functions,
                          size_t n, cuplug_error *error) {
  cuplug_error reason;
  void *library = core->library_open(path, &reason);
  if (!library)
    return core->fail(error, CUPLUG_ERROR_COMPILE, "%s cannot be loaded: %s", name, reason.message);
  for (size_t i = 0; i < n; i++) {
    void *address = core->library_symbol(library, functions[i].symbol);
    if (!address)
      return core->fail(error, CUPLUG_ERROR_COMPILE, "%s has no %s: it is too old or damaged", path,
                        functions[i].symbol);
    memcpy(functions[i].slot, &address, sizeof address);
  }
  return CUPLUG_OK;
}

/* ---- Finding the library --------------------------------------------------------------------- */

static int take_loaded(struct dl_phdr_info *info, size_t size, void *path) {
  static const char start[] = "/libnvrtc.so.";
  (void)size;
  const char *name = strrchr(info->dlpi_name, '/');
  if (!name || strncmp(name, start, sizeof start - 1)) return 0;
  return snprintf(path, PATH_BYTES, "%s", info->dlpi_name) < PATH_BYTES;
}

/* Returns the newest library in a directory of `length` bytes, to which `below` is appended. */
static int find_in(const char *directory, size_t length, const char *below, char *path) {
  for (int major = NEWEST; length && major >= OLDEST; major--) {
    int n =
        snprintf(path, PATH_BYTES, "%.*s%s/libnvrtc.so.%d", (int)length, directory, below, major);
    if (n < PATH_BYTES && !access(path, R_OK)) return 1;
  }
  return 0;
}

static int find_in_home(const char *home, char *path) {
  if (!home || *home != '/') return 0;
  return find_in(home, strlen(home), "/lib64", path) || find_in(home, strlen(home), "/lib", path);
}

static int find_in_list(const char *list, char *path) {
  for (; list && *list; list += *list == ':') {
    size_t length = strcspn(list, ":");
    if (find_in(list, length, "", path)) return 1;
    list += length;
  }
  return 0;
}

/* Libraries that only the dynamic linker finds are opened by name. */
static int find_by_linker(char *path) {
  char name[32];
  for (int major = NEWEST; major >= OLDEST; major--) {
    snprintf(name, sizeof name, "libnvrtc.so.%d", major);
    void *library = core->library_open(name, NULL);
    if (!library) continue;
    snprintf(path, PATH_BYTES, "%s",
             core->library_of(core->library_symbol(library, "nvrtcVersion")));
    return 1;
  }
  return 0;
}

int cuplug_find_compiler(const char *directories, char path[PATH_BYTES], cuplug_error *error) {
  cuplug__clear(error);
  if (dl_iterate_phdr(take_loaded, path)) return CUPLUG_OK;
  if (find_in_home(secure_getenv("CUDA_HOME"), path)) return CUPLUG_OK;
  if (find_in_home(secure_getenv("CUDA_PATH"), path)) return CUPLUG_OK;
  if (find_in_list(directories, path)) return CUPLUG_OK;
  if (find_in_home("/usr/local/cuda", path)) return CUPLUG_OK;
  if (find_by_linker(path)) return CUPLUG_OK;
  *path = 0;
  return core->fail(error, CUPLUG_ERROR_COMPILE,
                    "there is no NVRTC, the compiler of CUDA source: libnvrtc.so.%d or newer was "
                    "not found in $CUDA_HOME, $CUDA_PATH, the nvidia-cuda-nvrtc packages of "
                    "Python, /usr/local/cuda or on the library path; install the CUDA toolkit or "
                    "the Python package nvidia-cuda-nvrtc",
                    OLDEST);
}

/* ---- Opening the library --------------------------------------------------------------------- */

/* Under the lock. */
static int fill(const char *path, cuplug_error *error) {
  const cuplug__function functions[] = {
#define CUPLUG__X(function, parameters) {#function, &opened.function},
      CUPLUG__NVRTC_LIST(CUPLUG__X)
#undef CUPLUG__X
          {"nvrtcGetErrorString", &opened.nvrtcGetErrorString}};
  int status =
      cuplug__open_compiler(path, "NVRTC", functions, sizeof functions / sizeof *functions, error);
  if (status) return status;
  int major = 0, minor = 0, n = 0;
  opened.nvrtcVersion(&major, &minor);
  opened.version = major * 1000 + minor * 10;
  opened.nvrtcGetNumSupportedArchs(&n);
  if (n < 1 || n > CUPLUG__MAX_ARCHITECTURES)
    return core->fail(error, CUPLUG_ERROR_COMPILE, "%s names %d architectures", path, n);
  opened.nvrtcGetSupportedArchs(opened.architectures);
  opened.n_architectures = n;
  return CUPLUG_OK;
}

int cuplug__nvrtc_open(const char *path, const cuplug__nvrtc **nvrtc, cuplug_error *error) {
  int status = CUPLUG_OK;
  *nvrtc = atomic_load_explicit(&ready, memory_order_acquire);
  if (*nvrtc) return CUPLUG_OK;
  pthread_mutex_lock(&lock);
  if (!atomic_load(&ready)) status = fill(path, error);
  if (!status) atomic_store_explicit(&ready, &opened, memory_order_release);
  pthread_mutex_unlock(&lock);
  *nvrtc = &opened;
  return status;
}
