/* ldflags: -pthread */
/* SPDX-License-Identifier: Apache-2.0 */
/* The first use of an operator in a thread with a stack of 64 KiB: a file that is checked by an
 * allow-list, found, loaded, called and listed. A frame that is too large ends the process. */
#include "check.h"

#include <cuplug/host.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (64 << 10)

static char path[512], list[512];

/* With an error record, and without one. */
static void refuse(cuplug_operator *gather, const cuplug_argument *args) {
  cuplug_error error;
  cuplug_argument wrong[4] = {args[0], args[0], args[2], args[3]};
  CHECK(cuplug_invoke(gather, wrong, 4, NULL, &error) == CUPLUG_ERROR_TYPE);
  CHECK(strstr(error.message, "gather: index: got float32[3]"));
  CHECK(cuplug_invoke(gather, wrong, 4, NULL, NULL) == CUPLUG_ERROR_TYPE);
  CHECK(!cuplug_invoke(gather, args, 4, NULL, NULL));
}

static void list_all(void) {
  cuplug_listing *listing = NULL;
  cuplug_operator *none;
  cuplug_error error;
  cuplug_file *file = NULL;
  CHECK(!cuplug_list(1, &listing, &error) && listing);
  cuplug_free_listing(listing);
  CHECK(!cuplug_inspect(path, &file, &error) && file);
  cuplug_free_file(file);
  CHECK(cuplug_find("gathr", &none, &error) == CUPLUG_ERROR_NOT_FOUND);
  CHECK(strstr(error.message, "did you mean gather?"));
}

static void *use(void *unused) {
  cuplug_operator *gather;
  cuplug_error error;
  int64_t n = 3;
  float source[] = {1, 2, 3}, out[3];
  int64_t index[] = {2, 0, 1};
  cuplug_tensor x[] = {{.data = source}, {.data = index}, {.data = out}};
  cuplug_argument args[4] = {{0}};
  for (int k = 0; k < 3; k++) {
    x[k].device = (cuplug_device){CUPLUG_CPU, 0};
    x[k].ndim = 1, x[k].shape = &n;
    x[k].dtype = k == 1 ? (cuplug_dtype){0, 64, 1} : (cuplug_dtype){2, 32, 1};
    args[k < 2 ? k : 3] = cuplug_array(&x[k]); /* between them, the omitted mode */
  }
  CHECK(cuplug_check_trust(path, &error) == CUPLUG_ERROR_PLUGIN);
  CHECK(strstr(error.message, "not on the allow-list"));
  unsetenv("CUPLUG_ALLOW_LIST");
  CHECK(!cuplug_find("gather", &gather, &error));
  CHECK(!cuplug_invoke(gather, args, 4, NULL, &error));
  CHECK(out[0] == 3 && out[1] == 1 && out[2] == 2);
  refuse(gather, args);
  list_all();
  return unused;
}

int main(void) {
  const char *plugins = getenv("CUPLUG_TEST_PLUGINS");
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(plugins && getcwd(path, sizeof(path)));
  snprintf(list, sizeof(list), "%.400s/list", path);
  FILE *file = fopen(list, "w");
  CHECK(file && fprintf(file, "%064d\n", 0) == 65 && !fclose(file));
  snprintf(path, sizeof(path), "%s/libgather.so", plugins);
  setenv("CUPLUG_ALLOW_LIST", list, 1);
  setenv("LD_LIBRARY_CUPLUG_PATH", plugins, 1);
  CHECK(!pthread_attr_init(&attributes));
  CHECK(!pthread_attr_setstacksize(&attributes, STACK_BYTES));
  CHECK(!pthread_create(&thread, &attributes, use, NULL));
  CHECK(!pthread_join(thread, NULL));
  return n_failed != 0;
}
