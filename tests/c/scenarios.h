/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios on the fake driver. A process starts CUDA once and the driver reads its environment
 * once, so each scenario runs in a separate process: the program starts itself again. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

#include "fake_cuda.h"

#include <cuplug/host.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct scenario {
  const char *name;
  void (*run)(void);
  const char *environment[4]; /* "NAME=value" */
} scenario;

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (condition) break;                                                   \
    fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    exit(1);                                                                \
  } while (0)

#define CHECK_STATUS(error, wanted)                                                             \
  do {                                                                                          \
    if ((error)->status == (wanted)) break;                                                     \
    fprintf(stderr, "%s:%d: status %d, expected %d: %s\n", __FILE__, __LINE__, (error)->status, \
            (int)(wanted), (error)->message);                                                   \
    exit(1);                                                                                    \
  } while (0)

#define CHECK_MESSAGE(error, part)                                                                \
  do {                                                                                            \
    if (strstr((error)->message, part)) break;                                                    \
    fprintf(stderr, "%s:%d: got \"%s\", expected \"%s\"\n", __FILE__, __LINE__, (error)->message, \
            part);                                                                                \
    exit(1);                                                                                      \
  } while (0)

/* For functions that create compared data: the thread sanitizer need not follow each element. Data
 * that other threads have written is read by memcmp, or by functions that it follows. */
#define UNSEEN __attribute__((no_sanitize("thread")))

static inline int is_short(void) {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#else
  return !getenv("CUPLUG_TEST_ALL");
#endif
}

/* Of many sizes and failures that are alike, the address sanitizer sees all, other builds each
 * third unless CUPLUG_TEST_ALL is set: large arrays are slow there. */
static inline int step_of_many(void) { return is_short() ? 3 : 1; }

/* A function of the opened driver. */
static inline void *fake_symbol(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void *symbol = library ? dlsym(library, name) : NULL;
  CHECK(symbol);
  dlclose(library);
  return symbol;
}

static inline fake_cuda_counts fake_counts(void) {
  fake_cuda_counts counts;
  ((fake_cuda_count_function *)fake_symbol("fake_cuda_count"))(&counts);
  return counts;
}

static inline int fake_launch(void *stream, fake_cuda_kernel *kernel, const void *arguments,
                              size_t bytes) {
  return ((fake_cuda_launch_function *)fake_symbol("fake_cuda_launch"))(stream, kernel, arguments,
                                                                        bytes);
}

/* Nothing was misused, and only memory that the core keeps for reuse is left. */
static inline void check_nothing_left(void) {
  fake_cuda_counts counts = fake_counts();
  CHECK(counts.n_misuses == 0);
  CHECK(counts.n_allocations == 0);
}

static inline int run_again(const scenario *wanted) {
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 4 && wanted->environment[i]; i++) putenv((char *)wanted->environment[i]);
    execl("/proc/self/exe", "scenario", wanted->name, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  if (status) fprintf(stderr, "%s: failed (status 0x%x)\n", wanted->name, status);
  return status != 0;
}

/* Of scenarios that differ only in their environment, a short run includes the last one. */
static inline int is_left_out(const scenario *wanted, const scenario *end) {
  for (const scenario *at = wanted + 1; is_short() && at < end; at++)
    if (at->run == wanted->run) return 1;
  return 0;
}

static inline int run_scenarios(int argc, char **argv, const scenario *all, size_t n) {
  int n_failed = 0;
  for (size_t i = 0; i < n; i++) {
    if (argc < 2 && !is_left_out(&all[i], all + n)) n_failed += run_again(&all[i]);
    if (argc == 2 && !strcmp(argv[1], all[i].name)) return all[i].run(), 0;
  }
  return argc < 2 ? n_failed > 0 : 2;
}

#endif
