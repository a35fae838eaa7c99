/* sanitizers: address,undefined | thread */
/* fake-cuda */
/* ldflags: -ldl */
/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: their messages, many of them, from many threads. */
#include "cuda/fault.h"
#include "cuda/gpus.h"
#include "raise_fault.h"
#include "scenarios.h"

static cuplug_error error;
static cuplug_parameter arrays[] = {{.name = "source"}, {.name = "index"}, {.name = ""}};
static const cuplug_signature signature = {.name = "op", .n_parameters = 3, .parameters = arrays};
static const cuplug__callable overload = {.signature = &signature, .n_arrays = 3};

static void enter(void) { CHECK(!cuplug__cuda_enter(0, &error).status); }

static cuplug_fault *make_record(void) {
  static cuplug__fault_block *block;
  static int n = CUPLUG__N_RECORDS;
  if (n == CUPLUG__N_RECORDS) {
    CHECK(!cuplug__fault_block_make(&block, &error));
    n = 0;
  }
  cuplug_fault *fault = &block->records[n++];
  CHECK((uintptr_t)fault % 64 == 0 && fault->summary == &block->summary);
  return fault;
}

static void check_taken(cuplug_fault *fault, const char *sentence) {
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_ERROR_INDEX);
  CHECK_STATUS(&error, CUPLUG_ERROR_INDEX);
  if (strcmp(error.message, sentence)) CHECK_MESSAGE(&error, sentence);
  CHECK(!strcmp(error.message, sentence));
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_OK);
}

static void sentences(void) {
  enter();
  cuplug_fault *fault = make_record();
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_OK);
  raise_fault(fault, 1, 7, 100, 0, 50);
  raise_fault(fault, 0, 1, 1, 0, 1); /* the first wins */
  check_taken(fault, "op: index: index 100 at position 7 is out of bounds for size 50");
  raise_fault(fault, 0, (int64_t)1 << 40, -51, -50, 50);
  check_taken(fault,
              "op: source: index -51 at position 1099511627776 is out of bounds for size 50");
  raise_fault(fault, 1, 0, 9, 2, 5);
  check_taken(fault, "op: index: got index 9 at position 0, expected 2 <= value < 5");
  raise_fault(fault, 2, 0, 9, 0, 5);
  check_taken(fault, "op: array 2: index 9 at position 0 is out of bounds for size 5");
  raise_fault(fault, 4000000000u, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MIN);
  check_taken(fault, "op: array 4000000000: index 9223372036854775807 at position "
                     "-9223372036854775808 is out of bounds for size -9223372036854775808");
}

static void order(void) {
  enter();
  cuplug_fault *fault = make_record();
  raise_fault_of(fault, CUPLUG_ERROR_VALUE, 0, 1, 7, 0, 0, 0);
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_ERROR_VALUE);
  CHECK_MESSAGE(&error, "op: index: got a smaller number at position 7, expected ascending ones");
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_OK);
}

/* A record that is being written: its status has not arrived yet. */
static void while_written(void) {
  enter();
  cuplug_fault *fault = make_record();
  fault->claimed = 1;
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_OK);
  fault->status = CUPLUG_ERROR_INDEX;
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_ERROR_INDEX);
  CHECK(!fault->claimed && !fault->status);
}

/* The next call uses a cleared record. */
static void used_again(void) {
  enter();
  cuplug_fault *fault = make_record();
  raise_fault(fault, 0, 1, 2, 0, 1);
  cuplug__fault_clear(fault);
  CHECK(cuplug__fault_take(fault, &overload, &error) == CUPLUG_OK);
}

static void many_records(void) {
  static cuplug_fault *faults[200];
  enter();
  for (int i = 0; i < 200; i++) faults[i] = make_record();
  CHECK(fake_counts().n_pinned == 4);
  for (int i = 0; i < 200; i++) raise_fault(faults[i], 0, i, i, 0, 1);
  for (int i = 0; i < 200; i++) {
    CHECK(cuplug__fault_take(faults[i], &overload, &error) == CUPLUG_ERROR_INDEX);
    CHECK(strstr(error.message, "is out of bounds"));
  }
}

/* The fault of a tensor that does not exist. */
static void too_many_tensors(void) {
  cuplug_parameter all[CUPLUG_MAX_ARGUMENTS] = {{.name = "x"}};
  const cuplug_signature many = {
      .name = "op", .n_parameters = CUPLUG_MAX_ARGUMENTS, .parameters = all};
  const cuplug__callable full = {.signature = &many, .n_arrays = CUPLUG_MAX_ARGUMENTS};
  enter();
  cuplug_fault *fault = make_record();
  raise_fault(fault, CUPLUG_MAX_ARGUMENTS, 0, 1, 0, 1);
  CHECK(cuplug__fault_take(fault, &full, &error) == CUPLUG_ERROR_INDEX);
  CHECK_MESSAGE(&error, "op: array 64: index 1 at position 0 is out of bounds for size 1");
}

static void no_pinned_memory(void) {
  cuplug__fault_block *block;
  enter();
  CHECK(cuplug__fault_block_make(&block, &error) == CUPLUG_ERROR_MEMORY);
  CHECK_MESSAGE(&error, "making a fault record: CUDA ran out of memory");
  CHECK(!cuplug__fault_block_make(&block, &error));
}

static const scenario scenarios[] = {
    {"sentences", sentences, {NULL}},
    {"order", order, {NULL}},
    {"while_written", while_written, {NULL}},
    {"used_again", used_again, {NULL}},
    {"many_records", many_records, {NULL}},
    {"too_many_tensors", too_many_tensors, {NULL}},
    {"no_pinned_memory", no_pinned_memory, {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:2"}},
};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
