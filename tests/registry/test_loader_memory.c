/* sanitizers: address,undefined */
/* ldflags: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup
            -Wl,--wrap=asprintf,--wrap=fdopendir,--wrap=getcwd,--wrap=realpath */
/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the loader fails in turn: ERROR_MEMORY, nothing lost, the next try works. */
#include "base/hash.h"
#include "check.h"
#include "small_elf.h"

#include <cuplug/host.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static long n_left = -1; /* allocations until one fails; below 0: none does */
static int n_denied;

static int denied(void) {
  if (n_left < 0 || n_left-- > 0) return 0;
  n_left = -1;
  n_denied++;
  errno = ENOMEM;
  return 1;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return denied() ? NULL : __real_malloc(bytes); }
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes) { return denied() ? NULL : __real_calloc(n, bytes); }
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes) {
  return denied() ? NULL : __real_realloc(old, bytes);
}
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text) { return denied() ? NULL : __real_strdup(text); }
char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n) {
  return denied() ? NULL : __real_strndup(text, n);
}
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd) { return denied() ? NULL : __real_fdopendir(fd); }
char *__real_getcwd(char *to, size_t bytes);
char *__wrap_getcwd(char *to, size_t bytes) { return denied() ? NULL : __real_getcwd(to, bytes); }
char *__real_realpath(const char *path, char *to);
char *__wrap_realpath(const char *path, char *to) {
  return denied() ? NULL : __real_realpath(path, to);
}
int __wrap_asprintf(char **text, const char *format, ...) {
  va_list list;
  if (denied()) return -1;
  va_start(list, format);
  int n = vasprintf(text, format, list);
  va_end(list);
  return n;
}

static char folder[] = "/tmp/cuplug-memory-XXXXXX";
static cuplug_error error;
static int round_number;

static void write_file(const char *name, const void *data, size_t bytes) {
  char path[128];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(data, 1, bytes, file) == bytes && !fclose(file));
}

/* One good plugin, with two operators, among invalid files. */
static void fill_folder(void) {
  static small_elf file;
  small_elf_fill(&file, "twins", "first(x: T[n]) -> T[n] where T: any", "second()");
  write_file("libtwins.so", &file, sizeof(file));
  write_file("libtruncated.so", &file, sizeof(file) - 100);
  write_file("libmisnamed.so", &file, sizeof(file));
  write_file("libempty.so", "", 0);
  write_file("libtext.so", "INPUT(-lc)\n", 11);
  file.elf.e_ident[EI_CLASS] = ELFCLASS32;
  write_file("libnarrow.so", &file, sizeof(file));
  small_elf_fill(&file, "faulty", "faulty(x: T[n)", NULL);
  write_file("libfaulty.so", &file, sizeof(file));
}

static void remove_folder(void) {
  char command[64];
  snprintf(command, sizeof(command), "rm -r %s", folder);
  CHECK(system(command) == 0);
}

/* ---- Attempts: each returns the status --------------------------------------------------------
 */

static int list(void) {
  cuplug_listing *listing;
  int status = cuplug_list(1, &listing, &error);
  CHECK(!status == !!listing);
  if (!status) CHECK(cuplug_listing_n_files(listing) >= 7);
  cuplug_free_listing(listing);
  return status;
}

static int inspect_one(const char *name) {
  char path[128];
  cuplug_file *file;
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  int status = cuplug_inspect(path, &file, &error);
  cuplug_free_file(file);
  return status;
}
static int inspect_good(void) { return inspect_one("libtwins.so"); }
static int inspect_bad(void) { return inspect_one("libfaulty.so"); }

static int check_trust(void) {
  char path[128];
  snprintf(path, sizeof(path), "%s/libtwins.so", folder);
  return cuplug_check_trust(path, &error);
}

static int add_directory(void) {
  char path[128];
  snprintf(path, sizeof(path), "%s/added%d", folder, round_number);
  return cuplug_add_directory(path, &error);
}

static int find(const char *name) {
  cuplug_operator *op;
  int status = cuplug_find(name, &op, &error);
  CHECK(!status == !!op);
  return status;
}
static int find_named(void) { return find("twins.second"); }
static int find_early(void) {
  cuplug_operator *op;
  int status = cuplug_find_early("twins.second", &op, &error);
  CHECK(!status == !!op);
  return status;
}
static int find_early_nothing(void) {
  cuplug_operator *op;
  int status = cuplug_find_early("first", &op, &error);
  CHECK(!op);
  return status;
}
static int find_by_scan(void) { return find("first"); }
static int find_nothing(void) { return find("frist"); }
static int find_elsewhere(void) { return find("twin.first"); }

static int load(void) {
  cuplug_operator *ops[2];
  uint32_t n;
  char path[128];
  snprintf(path, sizeof(path), "%s/libtwins.so", folder);
  int status = cuplug_load(path, ops, 2, &n, &error);
  CHECK(n == (status ? 0u : 2u));
  return status;
}

static int load_relative(void) {
  uint32_t n;
  return cuplug_load("libtwins.so", NULL, 0, &n, &error);
}

/* ---- Every allocation in turn ------------------------------------------------------------------
 */

/* The found operators never change. */
static void check_intact(cuplug_operator *first) {
  cuplug_operator *again;
  CHECK(!cuplug_find("twins.first", &again, &error) && again == first);
}

static void fail_each(const char *what, int (*attempt)(void), int wanted) {
  cuplug_operator *first = NULL;
  int failures = 0;
  if (attempt != find_named && attempt != find_early)
    CHECK(!cuplug_find("twins.first", &first, &error));
  for (round_number = 0; round_number < 10000; round_number++) {
    n_left = round_number;
    n_denied = 0;
    int status = attempt();
    n_left = -1;
    if (!n_denied) {
      if (status != wanted) fprintf(stderr, "%s: %s\n", what, error.message);
      CHECK(status == wanted);
      break;
    }
    failures++;
    CHECK(status == CUPLUG_ERROR_MEMORY && strstr(error.message, "out of memory while "));
    if (first) check_intact(first);
  }
  if (!failures) fprintf(stderr, "%s: no allocation was denied\n", what);
  CHECK(failures > 0);
}

/* Changes the search path, so that names are searched again. */
static void move_search_path(const char *extra) {
  char value[128];
  snprintf(value, sizeof(value), "%s:%s", folder, extra);
  setenv("LD_LIBRARY_CUPLUG_PATH", value, 1);
}

static void allow_all(void) {
  char path[128], text[128] = "# all\n";
  uint8_t digest[CUPLUG__DIGEST_BYTES];
  cuplug__sha256 sha;
  small_elf file;
  small_elf_fill(&file, "twins", "first(x: T[n]) -> T[n] where T: any", "second()");
  cuplug__sha256_start(&sha);
  cuplug__sha256_add(&sha, &file, sizeof(file));
  cuplug__sha256_end(&sha, digest);
  for (int k = 0; k < CUPLUG__DIGEST_BYTES; k++) sprintf(text + 6 + 2 * k, "%02x", digest[k]);
  strcat(text, "  libtwins.so\n");
  write_file("allowed", text, strlen(text));
  snprintf(path, sizeof(path), "%s/allowed", folder);
  setenv("CUPLUG_ALLOW_LIST", path, 1);
}

/* A plugin of cuplug_load is found without reading the search path. */
static void check_found_without_memory(void) {
  n_left = n_denied = 0;
  CHECK(!find_by_scan() && !n_denied);
  n_left = -1;
}

int main(void) {
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("CUPLUG_ALLOW_LIST");
  setenv("HOME", "/nonexistent", 1);
  CHECK(mkdtemp(folder) && !chdir(folder));
  fill_folder();
  move_search_path("/nonexistent");
  fail_each("find early what a scan would find", find_early_nothing, CUPLUG_OK);
  move_search_path("/nonexistent/either");
  fail_each("find early", find_early, CUPLUG_OK);
  move_search_path("/nonexistent/third");
  fail_each("find by the plugin's name", find_named, CUPLUG_OK);
  fail_each("list", list, CUPLUG_OK);
  fail_each("find by a scan", find_by_scan, CUPLUG_OK);
  fail_each("find what does not exist", find_nothing, CUPLUG_ERROR_NOT_FOUND);
  fail_each("find in no plugin", find_elsewhere, CUPLUG_ERROR_NOT_FOUND);
  fail_each("inspect", inspect_good, CUPLUG_OK);
  fail_each("inspect a bad file", inspect_bad, CUPLUG_ERROR_PLUGIN);
  fail_each("add a directory", add_directory, CUPLUG_OK);
  allow_all();
  fail_each("list by the allow-list", list, CUPLUG_OK);
  fail_each("check a file by the allow-list", check_trust, CUPLUG_OK);
  fail_each("load by the allow-list", load, CUPLUG_OK);
  fail_each("load by a relative path", load_relative, CUPLUG_OK);
  move_search_path("relative");
  fail_each("list after load", list, CUPLUG_OK);
  check_found_without_memory();
  CHECK(!chdir("/"));
  remove_folder();
  return n_failed != 0;
}
