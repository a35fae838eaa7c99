/* fake-cuda */
/* ldflags: -ldl -rdynamic */
/* SPDX-License-Identifier: Apache-2.0 */
/* The steady state: a call from C takes no heap memory and no lock. The allocator and the locks of
 * the process are replaced by ones that count all uses, except by the fake driver. */
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "fake_operators.h"

#include <pthread.h>

#define N_CALLS 1000

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *old);

static _Atomic int is_counting;
static _Atomic long n_heap, n_locks;
static int (*real_lock)(pthread_mutex_t *mutex);

static int is_of_driver(const void *caller) {
  Dl_info info;
  return dladdr(caller, &info) && strstr(info.dli_fname, "libcuda.so");
}

#define COUNT(counter) \
  if (is_counting && !is_of_driver(__builtin_return_address(0))) counter++

void *malloc(size_t bytes) {
  COUNT(n_heap);
  return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
  COUNT(n_heap);
  return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes) {
  COUNT(n_heap);
  return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  COUNT(n_heap);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
  COUNT(n_heap);
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer ? 0 : 12;
}

void free(void *old) {
  if (old) COUNT(n_heap);
  __libc_free(old);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  if (!real_lock) *(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  COUNT(n_locks);
  return real_lock(mutex);
}

/* ---- Counted functions ----------------------------------------------------------------------- */

static void begin(void) {
  n_heap = n_locks = 0;
  is_counting = 1;
}

static void check_none(void) {
  is_counting = 0;
  if (n_heap || n_locks)
    fprintf(stderr, "%d calls: %ld of the allocator, %ld locks\n", N_CALLS, n_heap, n_locks);
  CHECK(n_heap == 0 && n_locks == 0);
}

/* The counters themselves count. */
static void counters(void) {
  begin();
  free(strdup("text"));
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  is_counting = 0;
  CHECK(n_heap == 2 && n_locks == 1);
}

static void call(cuplug_operator *op, const cuplug_argument *x, void *out, const void *stream) {
  cuplug_frame frame;
  CHECK(!cuplug_bind(op, x, 1, &frame, &error));
  frame.tensors[frame.n_inputs].data = out;
  frame.stream = (void *)stream;
  CHECK(!cuplug_run(&frame, &error));
}

static void on_the_host(void) {
  float x[] = {1, 2, 3}, out[3];
  int64_t n = 3, n_wrong = 2;
  const cuplug_argument source = on_host(CUPLUG_FLOAT32, x, &n);
  const cuplug_argument both[] = {source, on_host(CUPLUG_FLOAT32, out, &n_wrong)};
  make_operators();
  cuplug_operator *op = find("triple");
  call(op, &source, out, NULL);
  begin();
  for (int i = 0; i < N_CALLS; i++) call(op, &source, out, NULL);
  check_none();
  CHECK(out[2] == 9);
  begin(); /* errors cost none either */
  for (int i = 0; i < N_CALLS; i++)
    CHECK(cuplug_invoke(op, both, 2, NULL, &error) == CUPLUG_ERROR_VALUE);
  check_none();
}

/* A lock in one of 63 calls, for their fault records. */
static void check_few_locks(void) {
  CHECK(n_locks <= N_CALLS / 63 + 1);
  n_locks = 0;
  check_none();
}

static void on_a_gpu(void) {
  int64_t n = 3;
  void *x, *out, *stream;
  float back[3];
  make_operators();
  CHECK(!cuplug_allocate_device(0, 12, NULL, &x, &error));
  CHECK(!cuplug_allocate_device(0, 12, NULL, &out, &error));
  CHECK(!cuplug_copy_to_device(0, x, (float[]){1, 2, 3}, 12, NULL, &error));
  CHECK(!cuplug__cuda_enter(0, &error).status);
  CHECK(!cuplug__driver.cuStreamCreate((CUstream *)&stream, CUPLUG__STREAM_NON_BLOCKING));
  const cuplug_argument source = array(CUPLUG_FLOAT32, x, &n, gpu0);
  cuplug_operator *op = find("triple");
  for (int i = 0; i < 200; i++) call(op, &source, out, stream);
  CHECK(!cuplug_order_streams(0, stream, NULL, &error));
  const long n_events = fake_counts().n_events;
  begin();
  for (int i = 0; i < N_CALLS; i++) {
    void *block;
    CHECK(!cuplug_order_streams(0, stream, NULL, &error));
    call(op, &source, out, stream);
    CHECK(!cuplug_order_streams(0, NULL, stream, &error));
    CHECK(!cuplug_allocate_device(0, 1000, NULL, &block, &error));
    CHECK(!cuplug_free_device(0, block, NULL, &error));
  }
  check_few_locks();
  CHECK(fake_counts().n_events == n_events);
  CHECK(!cuplug_copy_to_host(0, back, out, 12, NULL, &error) && back[2] == 9);
  CHECK(!cuplug_free_device(0, x, NULL, &error) && !cuplug_free_device(0, out, NULL, &error));
  check_all_given_back();
}

static const scenario scenarios[] = {{"counters", counters, {NULL}},
                                     {"on_the_host", on_the_host, {NULL}},
                                     {"on_a_gpu", on_a_gpu, {NULL}}};

int main(int argc, char **argv) {
  return run_scenarios(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios);
}
