/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* A name that was found is found again without opening a file, until something changes that the
 * result depends on. A process without free descriptors opens none. */
#include "check.h"
#include "small_elf.h"

#include <cuplug/host.h>
#include <fcntl.h>
#include <internal/functions.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char folder[] = "/tmp/cuplug-again-XXXXXX";
static cuplug_error error;

static void write_plugin(const char *subfolder, const char *name, const char *second) {
  static small_elf file;
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, subfolder);
  mkdir(path, 0755);
  snprintf(path, sizeof path, "%s/%s/lib%s.so", folder, subfolder, name);
  small_elf_fill(&file, name, "first(x: T[n]) -> T[n] where T: any", second);
  FILE *stream = fopen(path, "wb");
  CHECK(stream && fwrite(&file, sizeof file, 1, stream) == 1 && !fclose(stream));
}

static void set_path(const char *subfolder) {
  char value[128];
  snprintf(value, sizeof value, "%s/%s", folder, subfolder);
  setenv("LD_LIBRARY_CUPLUG_PATH", value, 1);
}

static cuplug_operator *find(const char *name) {
  cuplug_operator *op;
  return cuplug_find(name, &op, &error) ? NULL : op;
}

/* Finds an operator while no file can be opened. */
static cuplug_operator *find_without_files(const char *name) {
  struct rlimit limit, none;
  CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
  none = (struct rlimit){0, limit.rlim_max};
  CHECK(!setrlimit(RLIMIT_NOFILE, &none));
  CHECK(open("/", O_RDONLY) < 0);
  cuplug_operator *op = find(name);
  CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
  return op;
}

static void test_next_operator(void) {
  cuplug_operator *op;
  CHECK(!find_without_files("twins.first"));
  CHECK(find("twins.first"));
  cuplug_operator *second = find_without_files("twins.second");
  CHECK(second && second == find("twins.second") && second != find("twins.first"));
  CHECK(!find_without_files("second"));
  CHECK(find("second") == second);
  CHECK(find_without_files("second") == second);
  CHECK(!cuplug_find_early("twins.second", &op, &error) && op == second);
  CHECK(!cuplug_find_loaded("twins.second") && !cuplug_find_loaded("second"));
}

static void test_name_of_the_plugin(void) {
  CHECK(find("unit.second"));
  CHECK(find_without_files("unit.first"));
  CHECK(!find_without_files("first") && find("first") != find("unit.first"));
  CHECK(find("first") == find_without_files("first"));
}

/* Another file of the same plugin, which is found instead of the first. */
static void test_changed_file(void) {
  char path[128];
  const struct timespec times[2] = {{1, 0}, {2, 0}};
  cuplug_operator *old = find("twins.first"), *unit = find("unit.first");
  snprintf(path, sizeof path, "%s/own/libtwins.so", folder);
  CHECK(!utimensat(AT_FDCWD, path, times, 0));
  CHECK(!find_without_files("twins.first") && !find_without_files("second"));
  CHECK(find_without_files("unit.first") == unit);
  cuplug_operator *fresh = find("twins.first");
  CHECK(fresh && fresh != old && find_without_files("twins.first") == fresh);
  CHECK(find("second") == find_without_files("twins.second"));
}

static void test_variables(void) {
  cuplug_operator *own = find("twins.first");
  set_path("other");
  CHECK(!find_without_files("twins.first"));
  cuplug_operator *other = find("twins.first");
  CHECK(other && other != own && find_without_files("twins.second") != find("twins.first"));
  set_path("own");
  CHECK(find("twins.first") == own);
  setenv("CUPLUG_ALLOW_LIST", "/nonexistent", 1);
  CHECK(!find("twins.first"));
  unsetenv("CUPLUG_ALLOW_LIST");
  CHECK(find("twins.first") == own);
}

static void test_added_directory(void) {
  char path[128];
  snprintf(path, sizeof path, "%s/other", folder);
  cuplug_operator *own = find("twins.first");
  CHECK(!cuplug_add_directory(path, &error));
  CHECK(!find_without_files("twins.first") && find("twins.first") == own);
  CHECK(!cuplug_add_directory(path, &error)); /* once */
  CHECK(find_without_files("twins.second"));
}

static void test_loaded_file(void) {
  char path[128];
  cuplug_operator *ops[2];
  snprintf(path, sizeof path, "%s/other/libtwins.so", folder);
  CHECK(!cuplug_load(path, ops, 2, NULL, &error));
  CHECK(find_without_files("twins.first") == ops[0] && find_without_files("twins.second"));
  CHECK(find_without_files("first") == ops[0] && find_without_files("second") == ops[1]);
  snprintf(path, sizeof path, "%s/own/libtwins.so", folder);
  CHECK(!cuplug_load(path, ops, 2, NULL, &error));
  CHECK(find_without_files("twins.first") == ops[0] && find_without_files("first") == ops[0]);
}

int main(void) {
  char command[64];
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("CUPLUG_ALLOW_LIST");
  setenv("HOME", "/nonexistent", 1);
  CHECK(mkdtemp(folder) != NULL);
  write_plugin("own", "twins", "second()");
  write_plugin("own", "unit", "second()");
  write_plugin("other", "twins", "second()");
  set_path("own");
  test_next_operator();
  test_name_of_the_plugin();
  test_changed_file();
  test_variables();
  test_added_directory();
  test_loaded_file();
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(!system(command));
  return n_failed != 0;
}
