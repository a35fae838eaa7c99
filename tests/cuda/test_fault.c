/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: what they say, who takes them, many of them, from many threads. */
#include "cuda/context.h"
#include "cuda/fault.h"
#include "raise_fault.h"
#include "scenarios.h"

#include <pthread.h>

static cuplug_error error;
static const char *tensors[] = {"source", "index", ""};
static const cuplug__names names = {.operator_name = "op", .n_tensors = 3, .tensors = tensors};

static void enter(void) { CHECK(!cuplug__cuda_enter(0, &error).status); }

static cuplug_fault *make_record(const cuplug__names *whose) {
  cuplug_fault *fault = NULL;
  CHECK(!cuplug__fault_record(whose, &fault, &error));
  CHECK(fault && (uintptr_t)fault % 64 == 0 && fault->summary);
  return fault;
}

static void check_taken(cuplug_fault *fault, const char *sentence) {
  CHECK(cuplug__fault_take(fault, &error) == CUPLUG_ERROR_INDEX);
  CHECK_STATUS(&error, CUPLUG_ERROR_INDEX);
  if (strcmp(error.message, sentence)) CHECK_MESSAGE(&error, sentence);
  CHECK(!strcmp(error.message, sentence));
  CHECK(cuplug__fault_take(fault, &error) == CUPLUG_OK);
}

static void sentences(void) {
  enter();
  cuplug_fault *fault = make_record(&names);
  CHECK(cuplug__fault_take(fault, &error) == CUPLUG_OK);
  raise_fault(fault, 1, 7, 100, 0, 50);
  raise_fault(fault, 0, 1, 1, 0, 1); /* the first wins */
  check_taken(fault, "op: index: index 100 at position 7 is out of bounds for size 50");
  raise_fault(fault, 0, (int64_t)1 << 40, -51, -50, 50);
  check_taken(fault,
              "op: source: index -51 at position 1099511627776 is out of bounds for size 50");
  raise_fault(fault, 1, 0, 9, 2, 5);
  check_taken(fault, "op: index: index 9 at position 0 is out of range, wanted 2 <= value < 5");
  raise_fault(fault, 2, 0, 9, 0, 5);
  check_taken(fault, "op: array 2: index 9 at position 0 is out of bounds for size 5");
  raise_fault(fault, 4000000000u, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MIN);
  check_taken(fault, "op: array 4000000000: index 9223372036854775807 at position "
                     "-9223372036854775808 is out of bounds for size -9223372036854775808");
  CHECK(cuplug__fault_take(NULL, &error) == CUPLUG_OK);
}

static void order(void) {
  enter();
  cuplug_fault *fault = make_record(&names);
  raise_fault_of(fault, CUPLUG_ERROR_VALUE, 1, 7, 0, 0, 0);
  CHECK(cuplug__fault_take(fault, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "op: index: seen a smaller number at position 7, wanted ascending ones");
  CHECK(cuplug__fault_take(fault, &error) == CUPLUG_OK);
}

static void any(void) {
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  enter();
  const cuplug__names of_a = {.operator_name = "a", .n_tensors = 3, .tensors = tensors},
                      of_b = {.operator_name = "b", .n_tensors = 2, .tensors = tensors};
  cuplug_fault *a = make_record(&of_a), *b = make_record(&of_b);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  raise_fault(a, 0, 1, 2, 0, 1);
  raise_fault(b, 1, 3, 4, 0, 2);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "a: source: index 2 at position 1 is out of bounds for size 1");
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "b: index: index 4 at position 3 is out of bounds for size 2");
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  raise_fault(a, 0, 1, 2, 0, 1);
  CHECK(cuplug__fault_take(a, NULL) == CUPLUG_ERROR_INDEX);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
}

/* A record that is being written: its status and summary have not both arrived yet. */
static void any_while_written(void) {
  enter();
  cuplug_fault *fault = make_record(&names);
  fault->claimed = 1;
  *fault->summary = 1;
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  fault->status = CUPLUG_ERROR_INDEX;
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_ERROR_INDEX);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
}

static void private_records(void) {
  static const char *x[] = {"x"};
  static const cuplug__names relu = {.operator_name = "relu", .n_tensors = 1, .tensors = x};
  cuplug_fault *fault, *other;
  enter();
  CHECK(!cuplug__fault_private(&fault, &error));
  cuplug__fault_rename(fault, &relu);
  raise_fault(fault, 0, 1, 2, 0, 1);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  raise_fault(make_record(&names), 0, 1, 2, 0, 1);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "op: source");
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  check_taken(fault, "relu: x: index 2 at position 1 is out of bounds for size 1");
  raise_fault(fault, 0, 1, 2, 0, 1);
  cuplug__fault_release(fault);
  CHECK(!cuplug__fault_private(&other, &error));
  CHECK(other == fault);
  CHECK(cuplug__fault_take(other, &error) == CUPLUG_OK);
}

static void many_records(void) {
  static cuplug_fault *faults[200];
  static char text[200][16];
  static cuplug__names numbered[200];
  char wanted[100];
  enter();
  for (int i = 0; i < 200; i++) {
    snprintf(text[i], sizeof text[i], "op%d", i);
    numbered[i] = (cuplug__names){.operator_name = text[i], .n_tensors = 1, .tensors = tensors};
    faults[i] = make_record(&numbered[i]);
    CHECK(i == 0 || faults[i]->summary == faults[0]->summary);
  }
  CHECK(fake_counts().n_pinned == 4);
  for (int i = 0; i < 200; i++) raise_fault(faults[i], 0, i, i, 0, 1);
  for (int i = 0; i < 200; i++) {
    snprintf(wanted, sizeof wanted, "op%d: source: index %d at position %d is out of bounds", i, i,
             i);
    CHECK(cuplug__fault_take(faults[i], &error) == CUPLUG_ERROR_INDEX);
    CHECK_MESSAGE(&error, wanted);
  }
  for (int i = 0; i < 200; i++) raise_fault(faults[i], 0, i, i, 0, 1);
  for (int i = 0; i < 200; i++) CHECK(cuplug__fault_take_any(&error) == CUPLUG_ERROR_INDEX);
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
}

/* Of a tensor that there is not. */
static void too_many_tensors(void) {
  const char *all[CUPLUG_MAX_ARGUMENTS] = {"x"};
  cuplug__names full = {.operator_name = "op", .n_tensors = CUPLUG_MAX_ARGUMENTS, .tensors = all};
  enter();
  cuplug_fault *fault = make_record(&full);
  raise_fault(fault, CUPLUG_MAX_ARGUMENTS, 0, 1, 0, 1);
  check_taken(fault, "op: array 64: index 1 at position 0 is out of bounds for size 1");
}

enum { N_THREADS = 4, N_ROUNDS = 300 };
static cuplug_fault *shared_records[N_THREADS];
static _Atomic int n_raised, n_taken;

static void *raise_and_take(void *argument) {
  cuplug_fault *fault = shared_records[(intptr_t)argument];
  cuplug_error mine;
  for (int i = 0; i < N_ROUNDS; i++) {
    if (!__atomic_load_n(&fault->claimed, __ATOMIC_ACQUIRE)) {
      raise_fault(fault, 0, i, i, 0, 1);
      n_raised++;
    }
    if (i % 3 == 0) n_taken += cuplug__fault_take_any(&mine) != CUPLUG_OK;
    if (i % 5 == 0) n_taken += cuplug__fault_take(fault, &mine) != CUPLUG_OK;
  }
  return NULL;
}

/* Each fault raised is reported once, whoever takes it. */
static void threads(void) {
  pthread_t all[N_THREADS];
  enter();
  for (intptr_t i = 0; i < N_THREADS; i++) shared_records[i] = make_record(&names);
  for (intptr_t i = 0; i < N_THREADS; i++)
    CHECK(!pthread_create(&all[i], NULL, raise_and_take, (void *)i));
  for (int i = 0; i < N_THREADS; i++) CHECK(!pthread_join(all[i], NULL));
  while (cuplug__fault_take_any(&error)) n_taken++;
  CHECK(n_raised >= N_THREADS && n_taken == n_raised);
}

static void *make_many(void *unused) {
  cuplug_error mine;
  cuplug_fault *fault;
  CHECK(!cuplug__cuda_enter(0, &mine).status);
  for (int i = 0; i < 50; i++) {
    CHECK(!cuplug__fault_record(&names, &fault, &mine));
    CHECK(fault->reserved++ == 0); /* no other thread was given it */
  }
  return unused;
}

static void made_by_threads(void) {
  pthread_t all[N_THREADS];
  for (int i = 0; i < N_THREADS; i++) CHECK(!pthread_create(&all[i], NULL, make_many, NULL));
  for (int i = 0; i < N_THREADS; i++) CHECK(!pthread_join(all[i], NULL));
}

static void no_pinned_memory(void) {
  cuplug_fault *fault;
  enter();
  CHECK(cuplug__fault_record(&names, &fault, &error) == CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "making a fault record: CUDA ran out of memory");
  CHECK(!cuplug__fault_record(&names, &fault, &error));
}

/* Reported by the copy out that waits for the kernel, not before. */
static int bad_kernel(const void *argument) {
  raise_fault(*(cuplug_fault *const *)argument, 1, 2, 3, 0, 3);
  return 0;
}

static void asynchronous(void) {
  void *pointer;
  int32_t host = 0;
  enter();
  cuplug_fault *fault = make_record(&names);
  CHECK(!cuplug_allocate_device(0, 4, NULL, &pointer, &error));
  CHECK(!fake_launch(NULL, bad_kernel, &fault, sizeof fault));
  CHECK(cuplug__fault_take_any(&error) == CUPLUG_OK);
  CHECK(cuplug_copy_to_host(0, &host, pointer, 4, NULL, &error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "op: index: index 3 at position 2 is out of bounds for size 3");
  CHECK(!cuplug_copy_to_host(0, &host, pointer, 4, NULL, &error));
  CHECK(!fake_launch(NULL, bad_kernel, &fault, sizeof fault));
  CHECK(cuplug_copy_to_device(0, pointer, &host, 4, NULL, &error) == CUPLUG_ERROR_INDEX);
  CHECK(!fake_launch(NULL, bad_kernel, &fault, sizeof fault));
  CHECK(cuplug_synchronize(0, NULL, 0, &error) == CUPLUG_ERROR_INDEX);
  CHECK(!cuplug_synchronize(0, NULL, 0, &error));
  CHECK(!cuplug_free_device(0, pointer, NULL, &error));
  CHECK(!cuplug_synchronize(0, NULL, 1, &error));
  check_nothing_left();
}

static const scenario scenarios[] = {
    {"sentences", sentences, {NULL}},
    {"order", order, {NULL}},
    {"any", any, {NULL}},
    {"any_while_written", any_while_written, {NULL}},
    {"private_records", private_records, {NULL}},
    {"many_records", many_records, {NULL}},
    {"too_many_tensors", too_many_tensors, {NULL}},
    {"threads", threads, {NULL}},
    {"made_by_threads", made_by_threads, {NULL}},
    {"no_pinned_memory", no_pinned_memory, {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:2"}},
    {"asynchronous", asynchronous, {"FAKE_CUDA_LAZY=1"}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
