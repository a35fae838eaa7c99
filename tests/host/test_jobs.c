/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose chunks one thread takes with several numbers. */
#include "host/jobs.h"

#include "check.h"

#define N 10

static int order[N], n_run;

static int note(void *context, int64_t begin, int64_t end) {
  CHECK(end == begin + 1);
  order[n_run++] = (int)begin;
  return context && begin == *(const int64_t *)context ? 100 + (int)begin : CUPLUG_OK;
}

static cuplug__job *open_job(int n_shares, int n_helpers, int64_t *bad) {
  const cuplug__loop loop = {note, bad, N, 1, n_helpers};
  n_run = 0;
  return cuplug__job_open(&loop, n_shares);
}

static void check_order(const int *expected) {
  CHECK(n_run == N);
  for (int k = 0; k < N; k++) CHECK(order[k] == expected[k]);
}

/* Shares of 4, 3 and 3 chunks: each thread begins with its own. */
static void check_shares(void) {
  static const int from[][N] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                                {4, 5, 6, 7, 8, 9, 0, 1, 2, 3},
                                {7, 8, 9, 0, 1, 2, 3, 4, 5, 6}};
  cuplug__taken taken;
  for (int number = 0; number < 6; number++) {
    cuplug__job *job = open_job(3, N, NULL);
    CHECK(cuplug__jobs_join(number, 0, &taken) == (number < 3));
    if (number >= 3) CHECK(cuplug__jobs_join(number, 1, &taken));
    cuplug__job_help(&taken);
    check_order(from[number % 3]);
    CHECK(!cuplug__jobs_join(number, 1, &taken));
    CHECK(cuplug__job_close(job, 0) == CUPLUG_OK && n_run == N);
    job = open_job(3, N, NULL);
    CHECK(cuplug__job_close(job, number) == CUPLUG_OK);
    check_order(from[number % 3]);
  }
}

/* A thread that has joined has a chunk; a later one finds no free slot. */
static void check_seats(void) {
  cuplug__taken first, second;
  cuplug__job *job = open_job(1, 1, NULL);
  CHECK(cuplug__jobs_join(1, 1, &first) && first.job == job && first.n_left == N);
  CHECK(cuplug__job_left(job, 99) == N - 1 && cuplug__job_left(job, 2) == 2);
  CHECK(!cuplug__jobs_join(2, 1, &second));
  cuplug__job_help(&first);
  CHECK(cuplug__job_left(job, 99) == 0);
  CHECK(cuplug__job_close(job, 0) == CUPLUG_OK && n_run == N);
  job = open_job(1, 0, NULL);
  CHECK(!cuplug__jobs_join(1, 1, &first));
  CHECK(cuplug__job_close(job, 0) == CUPLUG_OK && n_run == N);
}

static void check_failures(void) {
  int64_t bad = 5;
  cuplug__taken taken;
  cuplug__job *job = open_job(2, N, &bad);
  CHECK(cuplug__jobs_join(1, 0, &taken));
  cuplug__job_help(&taken); /* chunk 5 is the first of its share */
  CHECK(n_run == 1 && !cuplug__jobs_join(1, 1, &taken));
  CHECK(cuplug__job_close(job, 0) == 105 && n_run == 1);
  bad = 1;
  job = open_job(2, N, &bad);
  CHECK(cuplug__job_close(job, 0) == 101 && n_run == 2);
}

/* The table holds some jobs; threads begin with different ones. */
static void check_many(void) {
  cuplug__job *jobs[100];
  cuplug__taken a, b;
  int n = 0;
  while (n < 100 && (jobs[n] = open_job(1, N, NULL))) n++;
  CHECK(n > 8 && n < 100 && cuplug__jobs_open() == n);
  CHECK(cuplug__jobs_join(1, 1, &a) && cuplug__jobs_join(2, 1, &b) && a.job != b.job);
  n_run = 0;
  cuplug__job_help(&a);
  CHECK(n_run == N);
  n_run = 0;
  cuplug__job_help(&b);
  for (int k = 0; k < n; k++) {
    n_run = 0;
    CHECK(cuplug__job_close(jobs[k], 0) == CUPLUG_OK);
    CHECK(n_run == (jobs[k] == a.job || jobs[k] == b.job ? 0 : N));
  }
  CHECK(!cuplug__jobs_open() && !cuplug__jobs_join(1, 1, &a));
}

/* Chunks beyond the counter of a share belong to the owner. */
static void check_endless(void) {
  const cuplug__loop loop = {note, NULL, INT64_MAX, 1, 4};
  CHECK(cuplug__loop_chunks(&loop) == INT64_MAX && !cuplug__job_open(&loop, 4));
}

int main(void) {
  check_shares();
  check_seats();
  check_failures();
  check_many();
  check_endless();
  return n_failed != 0;
}
