/* SPDX-License-Identifier: Apache-2.0 */
/* Times the listing of the search path and the look-up of one operator, through the C API.
 *
 *     discovery list ROUNDS N_PLUGINS    nanoseconds of all rounds, the page cache warm
 *     discovery find NAME                nanoseconds of the first look-up in the process */
#include <cuplug/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Lists once; fails unless at least n_wanted plugins are valid. */
static int list_once(size_t n_wanted) {
  cuplug_listing *listing = NULL;
  cuplug_error error;
  size_t n_good = 0;
  if (cuplug_list(1, &listing, &error)) return fprintf(stderr, "%s\n", error.message);
  for (size_t k = 0; k < cuplug_listing_n_files(listing); k++)
    n_good += cuplug_file_state(cuplug_listing_file(listing, k)) == CUPLUG_STATE_OK;
  cuplug_free_listing(listing);
  if (n_good < n_wanted) return fprintf(stderr, "%zu of %zu plugins listed\n", n_good, n_wanted);
  return 0;
}

static int list(int n_rounds, size_t n_wanted) {
  if (list_once(n_wanted)) return 1;
  int64_t start_ns = now_ns();
  for (int k = 0; k < n_rounds; k++)
    if (list_once(n_wanted)) return 1;
  printf("%lld\n", (long long)(now_ns() - start_ns));
  return 0;
}

static int find(const char *name) {
  cuplug_operator *op = NULL;
  cuplug_error error;
  int64_t start_ns = now_ns();
  if (cuplug_find(name, &op, &error)) return fprintf(stderr, "%s\n", error.message);
  printf("%lld\n", (long long)(now_ns() - start_ns));
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "list")) return list(atoi(argv[2]), (size_t)atol(argv[3])) != 0;
  if (argc == 3 && !strcmp(argv[1], "find")) return find(argv[2]) != 0;
  return 2;
}
