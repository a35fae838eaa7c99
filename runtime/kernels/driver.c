/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/driver.h"

#include "base/core.h"

#include <pthread.h>
#include <string.h>

static cuplug__kernel_functions driver;

static void find_functions(void) {
  const struct {
    const char *symbol;
    void *slot;
  } functions[] = {
#define CUPLUG__X(function, symbol, parameters) {symbol, &driver.function},
      CUPLUG__LIBRARY_LIST(CUPLUG__X) CUPLUG__NEWER_LIST(CUPLUG__X) CUPLUG__TEXTURE_LIST(CUPLUG__X)
#undef CUPLUG__X
  };
  void *library = core->library_open("libcuda.so.1", NULL);
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *address = core->library_symbol(library, functions[i].symbol);
    memcpy(functions[i].slot, &address, sizeof address);
  }
}

const cuplug__kernel_functions *cuplug__kernel_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_functions);
  return &driver;
}
