/* SPDX-License-Identifier: Apache-2.0 */
/* How functions that were compiled from an expression see a call: as loops over elements. Included
 * by the core and, as text, by the code that is compiled; needs no other header. */
#ifndef CUPLUG_LOOP_H
#define CUPLUG_LOOP_H

/** The arrays of one loop, outputs included: the maximum for a signature. */
#define CUPLUG_MAX_LOOP_ARRAYS 64

/** Dimensions, the fastest last, in as few as the strides allow. */
typedef struct cuplug_loop {
  int ndim;
  unsigned n_arrays;
  long long n; /* the product of the sizes: how often the loop runs */
  long long sizes[64];
  long long (*strides)[CUPLUG_MAX_LOOP_ARRAYS]; /* [dimension][array], in elements */
} cuplug_loop;

/** The error of a call: out of memory, or an integer division without a result; the first one by 0,
 * or of the minimum by -1. */
typedef struct cuplug_division {
  int no_memory;
  int claimed; /* 1 if there was such a division */
  char message[252];
} cuplug_division;

typedef struct cuplug_loop_call cuplug_loop_call;

/** Runs the items `from` to `to` - 1 of a loop. For an element-wise operator it is the complete
 * code: `data` then points to element `from` of each array, followed by the others, float16 and
 * bfloat16 as float; and to the first element of arrays that it reads at any index. */
typedef void cuplug_loop_part(const cuplug_loop_call *call, long long from, long long to);

/** One call of a compiled host function. Fields that are 0 or NULL are only for reductions. */
struct cuplug_loop_call {
  void *const *data;          /* of each array, the outputs last */
  const void *scalars;        /* cuplug_scalar of each scalar parameter */
  const cuplug_loop *loop;    /* over the elements of the outputs */
  const cuplug_loop *reduced; /* over what goes into one of them */
  void *partials;             /* a value for each part and output, if there are parts */
  long long n_parts;          /* of the reduced loop */
  long long part;             /* elements of each part but the last */
  int by_columns;             /* 1: adjacent outputs; 2: outputs of short rows; 0: consecutively */
  unsigned char *stopped;     /* if there are parts, a byte for each output, 0 */
  /** Calls `part` for n items in ranges of `grain`, on several threads. */
  void (*parallel)(const cuplug_loop_call *call, cuplug_loop_part *part, long long n,
                   long long grain);
  /** Calls `part` with `bytes` of memory, aligned to 64, as `room`; without any the call fails. */
  void (*with_room)(const cuplug_loop_call *call, unsigned long bytes, cuplug_loop_part *part,
                    long long from, long long to);
  void *room;
  /** Makes n elements of float16 to float, by the CPU's own instructions: `to` has room for a
   * multiple of 16. */
  void (*load_float16)(float *to, const unsigned short *from, unsigned long n);
  cuplug_division *division; /* not claimed yet; if it is after the call, outputs are incomplete */
};

typedef void cuplug_loop_function(const cuplug_loop_call *call);

/** Elements that are computed together, so that each is computed by the same vector instructions,
 * wherever it is: a multiple of all vectors. */
#define CUPLUG_GROUP 64

/** The values by which CUDA kernels divide by a dimension: n / size is (umulhi(n, magic) + n) >>
 * shift for n < 2^31; with wide_magic, if requested, the same in 64 bits. */
typedef struct cuplug_divisor {
  long long size;
  unsigned long long wide_magic;
  unsigned magic;
  unsigned shift;
} cuplug_divisor;

/** How a loop is cut into what threads or blocks of a CUDA kernel take: see <cuplug/walk.h>. */
typedef struct cuplug_loop_split {
  long long n_items;    /* packs, of all lines; or tiles */
  long long line;       /* elements of a line, in which packs are counted from 0 */
  cuplug_divisor items; /* packs of a line, of size 0 where there is one; tiles along the last
                           dimension */
  cuplug_divisor rows;  /* tiles: along the last dimension but one */
  int ndim;             /* of the loop */
  int lead;             /* elements of the first pack that are before the single line */
  int anchor;           /* the array whose packs begin at multiples of their size */
  /* A bit for each array: */
  unsigned long long near;   /* unit-stride in the last dimension */
  unsigned long long still;  /* broadcast in the last dimension */
  unsigned long long across; /* tiles: an input that is unit-stride in the last dimension but one */
} cuplug_loop_split;

#endif
