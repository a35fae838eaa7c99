/* SPDX-License-Identifier: Apache-2.0 */
#include "linalg/plans.h"

#include <cuplug/format.h>

#include <stdlib.h>
#include <string.h>

#define MAX_WORKSPACE ((uint64_t)32 << 20) /* bytes that cuBLAS recommends for Hopper */

CUPLUG_ENTRY int make_blas(const cuplug_call *call, void **state) {
  static const library driver = {"libcuda", "the driver", {"libcuda.so.1"}, {"cuMemsetD8Async"}};
  blas *new = calloc(1, sizeof *new);
  if (!new) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "no memory for a handle of cuBLAS");
  void *addresses[CUPLUG_MAX_FUNCTIONS];
  int status = library_open(call, &driver, addresses), code = 0;
  memcpy(&new->clear, addresses, sizeof new->clear);
  if (!status) status = library_open(call, &cublas_library, addresses);
  if (!status) memcpy(&new->functions, addresses, sizeof new->functions);
  if (!status && (code = new->functions.create(&new->handle)))
    status = cuplug_failf(call, CUPLUG_ERROR_CUDA, "cuBLAS: %s", new->functions.status_text(code));
  if (status) {
    free(new);
    return status;
  }
  pthread_mutex_init(&new->lock, NULL);
  *state = new;
  return CUPLUG_OK;
}

/* ---- Plans, under the lock ------------------------------------------------------------------- */

static const struct {
  uint32_t type;
  int data, compute, scale;
} kinds[] = {
    {CUPLUG_FLOAT16, CUBLAS_R_16F, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_BFLOAT16, CUBLAS_R_16BF, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_FLOAT32, CUBLAS_R_32F, CUBLAS_IN_32F, CUBLAS_R_32F},
    {CUPLUG_FLOAT64, CUBLAS_R_64F, CUBLAS_IN_64F, CUBLAS_R_64F},
    {CUPLUG_COMPLEX64, CUBLAS_C_32F, CUBLAS_IN_32F, CUBLAS_C_32F},
    {CUPLUG_COMPLEX128, CUBLAS_C_64F, CUBLAS_IN_64F, CUBLAS_C_64F},
};

static int kind_of(uint32_t type) {
  int k = 0;
  while (kinds[k].type != type) k++;
  return k;
}

static void destroy(const cublas *f, plan *p) {
  if (p->operation) f->operation_destroy(p->operation);
  if (p->a) f->layout_destroy(p->a);
  if (p->b) f->layout_destroy(p->b);
  if (p->d) f->layout_destroy(p->d);
  memset(p, 0, sizeof *p);
}

static int make_layout(const cublas *f, void **layout, int data, const matrix *x, int32_t n_batch) {
  int code = f->layout_create(layout, data, x->rows, x->columns, x->leading);
  if (!code) code = f->layout_set(*layout, CUBLAS_BATCH_COUNT, &n_batch, sizeof n_batch);
  return code ? code : f->layout_set(*layout, CUBLAS_BATCH_OFFSET, &x->offset, sizeof x->offset);
}

static int choose(const blas *b, plan *p) {
  const cublas *f = &b->functions;
  const uint32_t alignments[4] = {p->key.a.alignment, p->key.b.alignment, p->key.d.alignment,
                                  p->key.d.alignment};
  const uint64_t most = MAX_WORKSPACE;
  void *preference;
  int n_found = 0, code = f->preference_create(&preference);
  if (code) return code;
  code = f->preference_set(preference, CUBLAS_MAX_WORKSPACE, &most, sizeof most);
  for (int k = 0; !code && k < 4; k++)
    code = f->preference_set(preference, CUBLAS_MIN_ALIGNMENT_OF_A + k, &alignments[k],
                             sizeof alignments[k]);
  if (!code)
    code = f->choose(b->handle, p->operation, p->a, p->b, p->d, p->d, preference, 1, &p->choice,
                     &n_found);
  f->preference_destroy(preference);
  return code ? code : n_found ? p->choice.status : 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
}

static int make_plan(const blas *b, plan *p, const key *k) {
  const cublas *f = &b->functions;
  const int kind = kind_of(k->type);
  p->key = *k;
  int code = f->operation_create(&p->operation, kinds[kind].compute, kinds[kind].scale);
  if (!code)
    code = f->operation_set(p->operation, CUBLAS_TRANSPOSE_A, &k->a.operation, sizeof(int32_t));
  if (!code)
    code = f->operation_set(p->operation, CUBLAS_TRANSPOSE_B, &k->b.operation, sizeof(int32_t));
  if (!code) code = make_layout(f, &p->a, kinds[kind].data, &k->a, k->n_batch);
  if (!code) code = make_layout(f, &p->b, kinds[kind].data, &k->b, k->n_batch);
  if (!code) code = make_layout(f, &p->d, kinds[kind].data, &k->d, k->n_batch);
  return code ? code : choose(b, p);
}

int find_plan(blas *b, const key *k, plan **found) {
  for (int i = 0; i < b->n_plans; i++)
    if (!memcmp(&b->plans[i].key, k, sizeof *k)) return *found = &b->plans[i], 0;
  *found = &b->plans[b->n_plans < MAX_PLANS ? b->n_plans : b->oldest];
  if (b->n_plans == MAX_PLANS) b->oldest = (b->oldest + 1) % MAX_PLANS;
  destroy(&b->functions, *found);
  const int code = make_plan(b, *found, k);
  if (code)
    destroy(&b->functions, *found);
  else if (b->n_plans < MAX_PLANS)
    b->n_plans++;
  return code;
}
