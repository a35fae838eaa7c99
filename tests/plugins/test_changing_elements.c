/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of stock operators on the host, while another thread changes an input: here, whenever an
 * entry calls the host, so between any two of its loops, and between parts of them. With any
 * values, entries stay within their arrays, each of which ends, or begins, at an inaccessible page.
 * Results and errors may be arbitrary. */
#include <cuplug/plugin.h>

#include "check.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 36000, PAGE = 4096, MOST = 5, SPACES = 16 };
enum { ZERO, ONES, HUGE_ONES, RISING, FALLING, N_PATTERNS };

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* Memory between two inaccessible pages. */
typedef struct space {
  char *pages, *data;
  uint64_t bytes, mapped;
} space;

static space open_space(uint64_t bytes, int at_end) {
  space s = {NULL, NULL, bytes, (bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE};
  s.pages = mmap(NULL, s.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (s.pages == MAP_FAILED) abort();
  if (mprotect(s.pages + PAGE, s.mapped - 2 * PAGE, PROT_READ | PROT_WRITE)) abort();
  s.data = at_end ? s.pages + s.mapped - PAGE - bytes : s.pages + PAGE;
  return s;
}

typedef struct array {
  cuplug_type_id type;
  int32_t ndim;
  int64_t shape[2]; /* -1: not known */
} array;

static int64_t value_of(int pattern, int64_t i, int bits) {
  switch (pattern) {
  case ZERO:
    return 0;
  case ONES:
    return -1;
  case HUGE_ONES:
    return bits == 32 ? 1 << 30 : (int64_t)1 << 40;
  case RISING:
    return i;
  default:
    return N - 1 - i;
  }
}

static void fill(const cuplug_tensor *x, int pattern) {
  const int64_t n = cuplug_n_elements(x);
  for (int64_t i = 0; i < n; i++) {
    const int64_t value = value_of(pattern, i, x->dtype.bits);
    switch (cuplug_type(x)) {
    case CUPLUG_BOOL:
      ((uint8_t *)x->data)[i] = pattern == RISING ? i % 2 : pattern != ZERO;
      break;
    case CUPLUG_INT32:
      ((int32_t *)x->data)[i] = (int32_t)value;
      break;
    case CUPLUG_INT64:
      ((int64_t *)x->data)[i] = value;
      break;
    case CUPLUG_FLOAT32:
      ((float *)x->data)[i] = pattern == ONES ? __builtin_nanf("") : (float)value;
      break;
    default:
      ((double *)x->data)[i] = pattern == ONES ? __builtin_nan("") : (double)value;
    }
  }
}

/* ---- A call ---------------------------------------------------------------------------------- */

typedef struct called {
  const char *plugin, *entry;
  int n_arrays, n_outputs;
  array arrays[MOST];
  cuplug_scalar scalars[4];
} called;

/* The state of a call. */
static struct {
  cuplug_tensor tensors[MOST];
  int64_t shapes[MOST][2];
  space spaces[SPACES];
  int n_spaces, at_end, changed, before, after, n_asked, moment;
} now;

static void *take_space(uint64_t bytes) {
  if (now.n_spaces == SPACES) abort();
  now.spaces[now.n_spaces] = open_space(bytes, now.at_end);
  return now.spaces[now.n_spaces++].data;
}

/* The other thread. */
static void asked(void) {
  if (now.n_asked++ == now.moment) fill(&now.tensors[now.changed], now.after);
}

static int fail(const cuplug_call *call, int status, int code, const char *text) {
  (void)call, (void)code, (void)text;
  return status;
}
static void *workspace(const cuplug_call *call, uint64_t bytes) {
  (void)call;
  asked();
  return take_space((bytes + 255) / 256 * 256);
}
static int output(const cuplug_call *call, uint32_t tensor, const int64_t *shape) {
  cuplug_tensor *x = &now.tensors[tensor];
  (void)call;
  asked();
  memcpy(x->shape, shape, (size_t)x->ndim * sizeof *shape);
  x->data = take_space((uint64_t)(cuplug_n_elements(x) * cuplug_element_bytes(x)));
  return CUPLUG_OK;
}
static int parallel(const cuplug_call *call, int64_t n, int64_t grain, cuplug_body *body,
                    void *context) {
  int status = CUPLUG_OK;
  (void)call;
  for (int64_t begin = 0; begin < n && !status; begin += grain) {
    asked();
    status = body(context, begin, n - begin < grain ? n : begin + grain);
  }
  return status;
}

static int threads(const cuplug_call *call) {
  (void)call;
  return 1;
}

static const cuplug_services services = {.struct_bytes = sizeof services,
                                         .fail = fail,
                                         .workspace = workspace,
                                         .output = output,
                                         .parallel = parallel,
                                         .threads = threads};

static void make_arrays(const called *c) {
  for (int k = 0; k < c->n_arrays; k++) {
    const array *a = &c->arrays[k];
    const uint32_t type = a->type;
    cuplug_tensor *x = &now.tensors[k];
    memcpy(now.shapes[k], a->shape, sizeof now.shapes[k]);
    *x = (cuplug_tensor){.device = {CUPLUG_CPU, 0}, .ndim = a->ndim, .shape = now.shapes[k]};
    x->dtype = (cuplug_dtype){(uint8_t)(type >> 24), (uint8_t)(type >> 16), (uint16_t)type};
    if (a->shape[a->ndim - 1] < 0) continue;
    x->data = take_space((uint64_t)(cuplug_n_elements(x) * cuplug_element_bytes(x)));
    fill(x, k == now.changed ? now.before : ZERO);
  }
}

/* Returns the number of calls of the host by the entry. */
static int run(const called *c, cuplug_entry *entry) {
  now.n_spaces = now.n_asked = 0;
  make_arrays(c);
  const cuplug_call call = {.struct_bytes = sizeof(cuplug_call),
                            .abi_version = CUPLUG_ABI_VERSION,
                            .device = {CUPLUG_CPU, 0},
                            .tensors = now.tensors,
                            .outputs = now.tensors + c->n_arrays - c->n_outputs,
                            .scalars = c->scalars,
                            .n_tensors = (uint32_t)c->n_arrays,
                            .n_scalars = 4,
                            .services = &services};
  const int status = entry(&call);
  CHECK(status == CUPLUG_OK || status == CUPLUG_ERROR_VALUE || status == CUPLUG_ERROR_INDEX);
  for (int k = 0; k < now.n_spaces; k++) munmap(now.spaces[k].pages, now.spaces[k].mapped);
  return now.n_asked;
}

/* ---- All ------------------------------------------------------------------------------------- */

#define F32(...) \
  { CUPLUG_FLOAT32, __VA_ARGS__ }
#define F64(...) \
  { CUPLUG_FLOAT64, __VA_ARGS__ }
#define I32(...) \
  { CUPLUG_INT32, __VA_ARGS__ }
#define I64(...) \
  { CUPLUG_INT64, __VA_ARGS__ }
#define BOOL(...) \
  { CUPLUG_BOOL, __VA_ARGS__ }
#define LINE \
  1, { N }
#define FOUND \
  1, { -1 }

static const called CALLS[] = {
    {"indexing", "select", 3, 1, {F64(LINE), BOOL(LINE), F64(FOUND)}, {{0}}},
    {"indexing", "select_backward", 3, 1, {F32(LINE), BOOL(LINE), F32(LINE)}, {{0}}},
    {"indexing", "nonzero", 2, 1, {BOOL(LINE), I64(2, {1, -1})}, {{0}}},
    {"indexing", "nonzero", 2, 1, {F32(2, {180, 200}), I64(2, {2, -1})}, {{0}}},
    {"gather", "gather", 3, 1, {F32(LINE), I64(LINE), F32(LINE)}, {{.i = 0}, {.i = 0}}},
    {"gather", "gather", 3, 1, {F64(LINE), I32(LINE), F64(LINE)}, {{.i = 1}, {.i = 0}}},
    {"gather", "gather_backward", 4, 1, {F32(LINE), I64(LINE), F32(LINE), F32(LINE)}, {{0}}},
    {"indexing", "take_along_axis", 3, 1, {F32(LINE), I64(LINE), F32(LINE)}, {{0}}},
    {"indexing", "put_along_axis", 3, 0, {F32(LINE), I32(LINE), F32(LINE)}, {{0}}},
    {"indexing", "scatter", 4, 1, {F32(LINE), I64(LINE), F32(LINE), F32(LINE)}, {{0}}},
    {"indexing", "scatter_add", 4, 1, {F32(LINE), I64(LINE), F32(LINE), F32(LINE)}, {{0}}},
    {"indexing", "put", 3, 0, {F64(LINE), I64(LINE), F64(LINE)}, {{0}}},
    {"indexing", "bincount", 2, 1, {I64(LINE), I64(1, {300})}, {{.i = 300}}},
    {"sorting", "sort", 2, 1, {I64(LINE), I64(LINE)}, {{0}}},
    {"sorting", "sort", 2, 1, {F32(2, {4, 9000}), F32(2, {4, 9000})}, {{.i = 1}}},
    {"sorting", "argsort", 2, 1, {I32(LINE), I64(LINE)}, {{0}}},
    {"sorting", "argsort", 2, 1, {F64(2, {300, 120}), I64(2, {300, 120})}, {{0}}},
    {"sorting",
     "topk",
     3,
     2,
     {F32(LINE), F32(1, {100}), I64(1, {100})},
     {{.i = 100}, {0}, {.i = 1}}},
    {"sorting", "unique_values", 2, 1, {I64(LINE), I64(FOUND)}, {{0}}},
    {"sorting", "unique", 5, 4, {F64(LINE), F64(FOUND), I64(FOUND), I64(LINE), I64(FOUND)}, {{0}}},
    {"sorting", "searchsorted", 3, 1, {F64(LINE), F64(LINE), I64(LINE)}, {{0}}},
    {"sorting", "sort_by", 3, 1, {F32(LINE), I64(LINE), F32(LINE)}, {{0}}},
    {"sorting", "sort_backward", 3, 1, {F32(LINE), I64(LINE), F32(LINE)}, {{0}}},
};

static const called *running;

static void died(int number) {
  char text[200];
  const int n = snprintf(text, sizeof text, "signal %d in %s, array %d, from %d to %d at %d\n",
                         number, running->entry, now.changed, now.before, now.after, now.moment);
  if (write(2, text, (size_t)n) > 0) _exit(1);
}

static void run_all(const called *c, cuplug_entry *entry) {
  const int n_inputs = c->n_arrays - c->n_outputs;
  running = c;
  const int step = getenv("CUPLUG_TEST_ALL") ? 1 : 7; /* each input in turn */
  for (int k = 0; k < n_inputs * N_PATTERNS * N_PATTERNS; k += step) {
    now.changed = k % n_inputs, now.before = k / n_inputs % N_PATTERNS;
    now.after = k / n_inputs / N_PATTERNS;
    now.moment = -1; /* the first and the last few of the entry's calls */
    const int n_asked = run(c, entry);
    for (int m = 0; m < n_asked && now.before != now.after; m += m < 6 || m > n_asked - 4 ? 1 : 7) {
      now.moment = m, now.at_end = m % 2 || k % 2;
      run(c, entry);
    }
  }
}

int main(void) {
  signal(SIGSEGV, died);
  signal(SIGBUS, died);
  for (size_t k = 0; k < sizeof CALLS / sizeof *CALLS; k++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/lib%s.so", getenv("CUPLUG_TEST_PLUGINS"), CALLS[k].plugin);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(path, sizeof path, "%s_host", CALLS[k].entry);
    cuplug_entry *entry = library ? (cuplug_entry *)dlsym(library, path) : NULL;
    CHECK(entry != NULL);
    if (entry) run_all(&CALLS[k], entry);
  }
  return n_failed != 0;
}
