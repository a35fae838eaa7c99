/* sanitizers: thread */
/* ldflags: -pthread */
/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that find known operators do not wait for others, see operators that other threads add in
 * the meantime, and miss none that these move ahead. */
#include "check.h"
#include "registry/registry.h"
#include "small_elf.h"

#include <internal/functions.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_THREADS 4
#define N_PLUGINS 40

static char folder[] = "/tmp/cuplug-lookups-XXXXXX";
static _Atomic int n_added, is_done;

static void write_plugin(int k, char path[128]) {
  static small_elf file;
  char name[16];
  snprintf(name, sizeof name, "p%d", k);
  snprintf(path, 128, "%s/libp%d.so", folder, k);
  small_elf_fill(&file, name, "first(x: T[n]) -> T[n] where T: any", "second()");
  FILE *stream = fopen(path, "wb");
  CHECK(stream && fwrite(&file, sizeof file, 1, stream) == 1 && !fclose(stream));
}

/* Finds both operators of the plugins up to the one added last. */
static int find_all(int n) {
  cuplug_operator *op;
  char name[32];
  int n_wrong = 0;
  for (int k = 0; k < n; k++)
    for (int second = 0; second < 2; second++) {
      snprintf(name, sizeof name, "p%d.%s", k, second ? "second" : "first");
      n_wrong += cuplug_find(name, &op, NULL) || strcmp(cuplug_operator_plugin(op), "p") < 0 ||
                 strtol(cuplug_operator_plugin(op) + 1, NULL, 10) != k ||
                 strcmp(cuplug_operator_name(op), second ? "second" : "first") != 0;
      n_wrong += cuplug_find_loaded(name) != NULL;
    }
  return n_wrong;
}

static void *look_up(void *unused) {
  (void)unused;
  int n_wrong = 0;
  cuplug_operator *op;
  do {
    const int n = n_added;
    n_wrong += find_all(n);
    n_wrong += n && cuplug_find("second", &op, NULL);
  } while (!is_done);
  return n_wrong ? &n_added : NULL;
}

static void *look_up_once(void *unused) {
  (void)unused;
  return find_all(N_PLUGINS) ? &n_added : NULL;
}

static void run(void *(*start)(void *), void (*meanwhile)(void)) {
  pthread_t threads[N_THREADS];
  void *wrong;
  for (int k = 0; k < N_THREADS; k++) CHECK(!pthread_create(&threads[k], NULL, start, NULL));
  meanwhile();
  for (int k = 0; k < N_THREADS; k++) CHECK(!pthread_join(threads[k], &wrong) && !wrong);
}

/* Some are loaded, the others found in their folder; a directory is added now and then. */
static void add_plugins(void) {
  char path[128];
  cuplug_error error;
  for (int k = 0; k < N_PLUGINS; k++) {
    write_plugin(k, path);
    if (k % 2) CHECK(!cuplug_load(path, NULL, 0, NULL, &error));
    snprintf(path, sizeof path, "%s/%d", folder, k);
    if (k % 5 == 0) CHECK(!cuplug_add_directory(path, &error));
    n_added = k + 1;
  }
  is_done = 1;
}

/* Plugins that were loaded are found while others are put ahead of them. */
static void *look_up_loaded(void *unused) {
  (void)unused;
  cuplug_operator *op;
  char name[32];
  int n_wrong = 0;
  do
    for (int k = 1; k < N_PLUGINS; k += 2) {
      snprintf(name, sizeof name, "p%d.first", k);
      n_wrong += cuplug_find(name, &op, NULL) != CUPLUG_OK;
    }
  while (!is_done);
  return n_wrong ? &n_added : NULL;
}

/* They are also listed, each once. */
static void *list_loaded(void *unused) {
  (void)unused;
  cuplug_listing *listing;
  int n_wrong = 0;
  do {
    n_wrong += cuplug_list(1, &listing, NULL) != CUPLUG_OK;
    size_t n_loaded = 0;
    for (size_t k = 0; k < cuplug_listing_n_files(listing); k++) {
      const cuplug_file *file = cuplug_listing_file(listing, k);
      if (cuplug_file_origin(file) != CUPLUG_ORIGIN_LOADED) continue;
      n_wrong += cuplug_file_state(file) != CUPLUG_STATE_OK;
      n_loaded++;
    }
    n_wrong += n_loaded != N_PLUGINS / 2;
    cuplug_free_listing(listing);
  } while (!is_done);
  return n_wrong ? &n_added : NULL;
}

static void load_again(void) {
  char path[128];
  const int n = getenv("CUPLUG_TEST_ALL") ? 20000 : 4000;
  for (int k = 0; k < n; k++) {
    snprintf(path, sizeof path, "%s/libp%d.so", folder, 2 * (k % (N_PLUGINS / 2)) + 1);
    CHECK(!cuplug_load(path, NULL, 0, NULL, NULL));
  }
  is_done = 1;
}

static void do_nothing(void) {}

int main(void) {
  char command[64];
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("CUPLUG_ALLOW_LIST");
  CHECK(mkdtemp(folder) != NULL);
  setenv("LD_LIBRARY_CUPLUG_PATH", folder, 1);
  alarm(240); /* ends a process whose threads wait for each other */
  run(look_up, add_plugins);
  CHECK(!find_all(N_PLUGINS));
  cuplug__registry_lock();
  run(look_up_once, do_nothing);
  cuplug__registry_unlock();
  unsetenv("LD_LIBRARY_CUPLUG_PATH");
  is_done = 0;
  run(look_up_loaded, load_again);
  is_done = 0;
  run(list_loaded, load_again);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(!system(command));
  return n_failed != 0;
}
