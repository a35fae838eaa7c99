/* SPDX-License-Identifier: Apache-2.0 */
/* Times relu on host arrays, by the stock operator or by a plain loop of OpenMP. Both use
 * OMP_NUM_THREADS threads, or all.
 *
 *     team cuplug|openmp N_FLOATS N_CALLS [PAUSE_US]
 *
 * prints the nanoseconds of all calls, without the pauses between them; with MEDIAN instead of
 * N_CALLS, the median and the 90th percentile of a thousand calls. */
#include <cuplug/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_SINGLE 1000 /* calls for a median */

typedef struct work {
  cuplug_operator *op; /* NULL: OpenMP */
  float *x, *y;
  int64_t n;
} work;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void loop(const work *w) {
  const float *restrict x = w->x;
  float *restrict y = w->y;
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < w->n; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

static void call(work *w) {
  cuplug_error error;
  if (!w->op) {
    loop(w);
    return;
  }
  const cuplug_tensor tensors[] = {cuplug_make_tensor(w->x, CUPLUG_FLOAT32, 1, &w->n),
                                   cuplug_make_tensor(w->y, CUPLUG_FLOAT32, 1, &w->n)};
  const cuplug_argument args[] = {cuplug_array(&tensors[0]), cuplug_array(&tensors[1])};
  if (!cuplug_invoke(w->op, args, 2, NULL, &error)) return;
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

static int64_t time_call(work *w, useconds_t pause_us) {
  if (pause_us) usleep(pause_us);
  const int64_t start = now_ns();
  call(w);
  return now_ns() - start;
}

static int64_t time_calls(work *w, int n_calls, useconds_t pause_us) {
  int64_t ns = 0;
  for (int k = 0; pause_us && k < n_calls; k++) ns += time_call(w, pause_us);
  if (pause_us) return ns;
  ns = now_ns();
  for (int k = 0; k < n_calls; k++) call(w);
  return now_ns() - ns;
}

static int compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void print_median(work *w, useconds_t pause_us) {
  static int64_t ns[N_SINGLE];
  for (int k = 0; k < N_SINGLE; k++) ns[k] = time_call(w, pause_us);
  qsort(ns, N_SINGLE, sizeof *ns, compare);
  printf("%lld %lld\n", (long long)ns[N_SINGLE / 2], (long long)ns[N_SINGLE * 9 / 10]);
}

int main(int argc, char **argv) {
  work w = {.n = argc > 3 ? atoll(argv[2]) : 0};
  const useconds_t pause_us = argc > 4 ? (useconds_t)atoi(argv[4]) : 0;
  cuplug_error error;
  if (w.n < 1) return fprintf(stderr, "team cuplug|openmp N_FLOATS N_CALLS [PAUSE_US]\n");
  if (!strcmp(argv[1], "cuplug") && cuplug_find("relu", &w.op, &error))
    return fprintf(stderr, "%s\n", error.message);
  w.x = malloc((size_t)w.n * sizeof *w.x);
  w.y = malloc((size_t)w.n * sizeof *w.y);
  if (!w.x || !w.y) return fprintf(stderr, "no memory\n");
  for (int64_t i = 0; i < w.n; i++) w.x[i] = (float)(i % 7) - 3;
  for (int k = 0; k < 20; k++) call(&w);
  if (!strcmp(argv[3], "MEDIAN"))
    print_median(&w, pause_us);
  else
    printf("%lld\n", (long long)time_calls(&w, atoi(argv[3]), pause_us));
  for (int64_t i = 0; i < w.n; i++)
    if (w.y[i] != (w.x[i] > 0 ? w.x[i] : 0)) return fprintf(stderr, "a wrong result\n");
  free(w.x);
  free(w.y);
  return 0;
}
