/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts keys by vectors, for one kind of vectors. quicksort.c includes it, and defines the vectors.
 *
 *   KEY, VECTOR, LANES, NAMED(name)       a key, the vector of keys, its length, this kind's names
 *   LOAD(p), STORE(p, v)                  a complete vector
 *
 * With LEAST, few keys by a network (sort_few): K. E. Batcher, Sorting networks and their
 * applications, AFIPS 1968.
 *
 *   LOAD_SOME(p, n), STORE_SOME(p, v, n)  the first n lanes; the others are read as largest keys
 *   LEAST(a, b), GREATEST(a, b)
 *   SHUFFLED(v, distance)                 in each lane the one whose number differs in these bits
 *   EXCHANGED(a, b, bit)                  GREATEST in lanes whose number has the bit, else LEAST
 *   CHOSEN(a, b, bit)                     b in lanes whose number has the bit, else a
 *
 * With BELOW, any number of keys by a quicksort (sort, split).
 *
 *   ALL(key)
 *   BELOW(v, pivot), COUNT(below)         the lanes that are smaller, and their number
 *   STORE_PARTS(begin, end, v, below)     these lanes from `begin` on, the others before `end`;
 *                                         keys between the two within a vector's reach may change
 *   MOST_FEW, SORT_FEW(keys, n)           a network of other vectors, and its number of keys */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define MOST 16   /* vectors of a network */
#define AT_ONCE 8 /* vectors that are read before any is written */

#ifdef LEAST
#ifndef SORT_FEW
#define SORT_FEW(keys, n) NAMED(sort_few)(keys, n)
#define MOST_FEW (MOST * LANES)
#endif

/* Puts the smaller of two lanes into the one without the bit. */
INLINE VECTOR NAMED(compared)(VECTOR v, unsigned distance, unsigned bit) {
  const VECTOR other = SHUFFLED(v, distance);
  return EXCHANGED(v, other, bit);
}

INLINE VECTOR NAMED(sorted)(VECTOR v) {
  v = NAMED(compared)(v, 1, 1);
  v = NAMED(compared)(v, 3, 2);
  v = NAMED(compared)(v, 1, 1);
  if (LANES > 4) {
    v = NAMED(compared)(v, 7, 4);
    v = NAMED(compared)(v, 2, 2);
    v = NAMED(compared)(v, 1, 1);
  }
  if (LANES > 8) {
    v = NAMED(compared)(v, 15, 8);
    v = NAMED(compared)(v, 4, 4);
    v = NAMED(compared)(v, 2, 2);
    v = NAMED(compared)(v, 1, 1);
  }
  if (LANES > 16) {
    v = NAMED(compared)(v, 31, 16);
    v = NAMED(compared)(v, 8, 8);
    v = NAMED(compared)(v, 4, 4);
    v = NAMED(compared)(v, 2, 2);
    v = NAMED(compared)(v, 1, 1);
  }
  return v;
}

INLINE void NAMED(compare)(VECTOR *a, VECTOR *b) {
  const VECTOR least = LEAST(*a, *b);
  *b = GREATEST(*a, *b);
  *a = least;
}

/* Compares vectors whose numbers differ by these bits. */
INLINE void NAMED(compare_rows)(VECTOR *v, int n, int distance) {
#pragma GCC unroll 16
  for (int i = 0; i < n; i++)
    if (i < (i ^ distance)) NAMED(compare)(&v[i], &v[i ^ distance]);
}

/* Sorts each lane of vectors whose halves are bitonic. */
INLINE void NAMED(merge_rows)(VECTOR *v, int n, int distance) {
  if (distance > 4) NAMED(compare_rows)(v, n, 8);
  if (distance > 2) NAMED(compare_rows)(v, n, 4);
  if (distance > 1) NAMED(compare_rows)(v, n, 2);
  NAMED(compare_rows)(v, n, 1);
}

/* The lanes of columns, by the bits of their numbers. If there are fewer vectors than lanes, the
 * upper bits are the low bits of lanes, which `transpose` converts to bits of vectors. */
INLINE unsigned NAMED(turned)(unsigned bits, int n) {
  return n >= LANES ? bits : (bits * n | bits * n / LANES) & (LANES - 1);
}

/* Merges sorted columns of n vectors, each `group` of which form one sequence, in pairs of
 * sequences. */
INLINE void NAMED(merge_columns)(VECTOR *v, int n, unsigned group) {
  const unsigned bit = NAMED(turned)(group, n), others = NAMED(turned)(2 * group - 1, n);
#pragma GCC unroll 16
  for (int i = 0; i < n / 2; i++) {
    const VECTOR a = v[i], b = v[n - 1 - i];
    v[i] = EXCHANGED(a, SHUFFLED(b, others), bit);
    v[n - 1 - i] = EXCHANGED(b, SHUFFLED(a, others), bit);
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) {
    if (group > 8) v[i] = NAMED(compared)(v[i], NAMED(turned)(8, n), NAMED(turned)(8, n));
    if (group > 4) v[i] = NAMED(compared)(v[i], NAMED(turned)(4, n), NAMED(turned)(4, n));
    if (group > 2) v[i] = NAMED(compared)(v[i], NAMED(turned)(2, n), NAMED(turned)(2, n));
    if (group > 1) v[i] = NAMED(compared)(v[i], NAMED(turned)(1, n), NAMED(turned)(1, n));
  }
  NAMED(merge_rows)(v, n, n / 2);
}

/* Exchanges a bit of the numbers of n vectors with a bit of the numbers of lanes. */
INLINE void NAMED(transpose)(VECTOR *v, int n, int bit) {
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) {
    if (i & bit) continue;
    const VECTOR a = v[i], b = v[i + bit];
    v[i] = CHOSEN(a, SHUFFLED(b, bit), bit);
    v[i + bit] = CHOSEN(SHUFFLED(a, bit), b, bit);
  }
}

/* Sorts n vectors, from 2 on: first each lane, between vectors, so that no lanes need to be moved.
 */
INLINE void NAMED(sort_rows)(VECTOR *v, int n) {
  NAMED(compare_rows)(v, n, 1);
  if (n > 2) NAMED(compare_rows)(v, n, 3);
  if (n > 2) NAMED(merge_rows)(v, n, 1);
  if (n > 4) NAMED(compare_rows)(v, n, 7);
  if (n > 4) NAMED(merge_rows)(v, n, 2);
  if (n > 8) NAMED(compare_rows)(v, n, 15);
  if (n > 8) NAMED(merge_rows)(v, n, 4);
  NAMED(merge_columns)(v, n, 1);
  NAMED(merge_columns)(v, n, 2);
  if (LANES > 4) NAMED(merge_columns)(v, n, 4);
  if (LANES > 8) NAMED(merge_columns)(v, n, 8);
  if (LANES > 16) NAMED(merge_columns)(v, n, 16);
  NAMED(transpose)(v, n, 1);
  if (n > 2) NAMED(transpose)(v, n, 2);
  if (n > 4 && LANES > 4) NAMED(transpose)(v, n, 4);
  if (n > 8 && LANES > 8) NAMED(transpose)(v, n, 8);
}

/* Sorts the keys of n vectors, `count` of which exist. */
INLINE void NAMED(network)(KEY *keys, int64_t count, int n) {
  const int fold = n > LANES ? n / LANES : 1; /* vectors of a column */
  VECTOR v[MOST];
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) {
    const int64_t left = count - i * LANES;
    v[i] =
        left >= LANES ? LOAD(keys + i * LANES) : LOAD_SOME(keys + i * LANES, left > 0 ? left : 0);
  }
  if (n == 1)
    v[0] = NAMED(sorted)(v[0]);
  else
    NAMED(sort_rows)(v, n);
#pragma GCC unroll 16
  for (int i = 0; i < n; i++) {
    const int64_t left = count - i * LANES;
    const VECTOR sorted = v[i / fold + i % fold * LANES];
    if (left >= LANES)
      STORE(keys + i * LANES, sorted);
    else if (left > 0)
      STORE_SOME(keys + i * LANES, sorted, left);
  }
}

TARGET static void NAMED(sort_few)(KEY *keys, int64_t n) {
  if (n <= LANES)
    NAMED(network)(keys, n, 1);
  else if (n <= 2 * LANES)
    NAMED(network)(keys, n, 2);
  else if (n <= 4 * LANES)
    NAMED(network)(keys, n, 4);
  else if (n <= 8 * LANES)
    NAMED(network)(keys, n, 8);
  else
    NAMED(network)(keys, n, MOST);
}

#endif

#ifdef BELOW
/* A key near the median: the median of few adjacent keys. Reading others would take longer than a
 * worse choice costs. */
TARGET static KEY NAMED(middle)(const KEY *keys, int64_t n) {
  KEY some[8 * LANES];
  const int64_t step = n / (8 * LANES);
  if (step < 16) {
    memcpy(some, keys + n / 2, LANES * sizeof(KEY));
    SORT_FEW(some, LANES);
    return some[LANES / 2];
  }
  for (int64_t i = 0; i < 8 * LANES; i++) some[i] = keys[i * step + step / 2];
  SORT_FEW(some, 8 * LANES);
  return some[4 * LANES];
}

/* A key above the middle of the possible range between the smallest and the largest key, or that
 * key if all are equal. */
TARGET static KEY NAMED(bisected)(const KEY *keys, int64_t n) {
  KEY least = keys[0], greatest = keys[0];
  for (int64_t i = 1; i < n; i++) {
    least = keys[i] < least ? keys[i] : least;
    greatest = keys[i] > greatest ? keys[i] : greatest;
  }
  return least == greatest ? least : least + (greatest - least) / 2 + 1;
}

/* Where keys are written: both ends have memory for a vector. */
typedef struct NAMED(ends) {
  KEY *begin, *end;
} NAMED(ends);

/* Writes keys below the pivot to the start, others to the end. */
INLINE void NAMED(put)(NAMED(ends) * e, VECTOR v, VECTOR pivots) {
  const unsigned below = BELOW(v, pivots);
  const int64_t n_below = COUNT(below);
  STORE_PARTS(e->begin, e->end, v, below);
  e->begin += n_below, e->end -= LANES - n_below;
}

/* Moves keys below the pivot to the start of n > 2 * AT_ONCE * LANES, others to the end. Returns
 * how many are below. Keys are read from the end that has less free memory. */
TARGET static int64_t NAMED(divide)(KEY *keys, int64_t n, KEY pivot) {
  enum { STEP = AT_ONCE * LANES };
  const VECTOR pivots = ALL(pivot);
  VECTOR first[AT_ONCE], last[AT_ONCE], v[AT_ONCE];
  KEY *begin = keys + STEP, *end = keys + n - STEP, some[STEP];
  NAMED(ends) to = {keys, keys + n};
#pragma GCC unroll 8
  for (int i = 0; i < AT_ONCE; i++)
    first[i] = LOAD(keys + i * LANES), last[i] = LOAD(end + i * LANES);
  while (end - begin >= STEP) {
    const KEY *from = begin;
    if (begin - to.begin <= to.end - end)
      begin += STEP;
    else
      from = end -= STEP;
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++) v[i] = LOAD(from + i * LANES);
#pragma GCC unroll 8
    for (int i = 0; i < AT_ONCE; i++) NAMED(put)(&to, v[i], pivots);
  }
  const int64_t left = end - begin;
  memcpy(some, begin, (size_t)left * sizeof(KEY));
  int64_t done = 0;
  for (; done + LANES <= left; done += LANES) NAMED(put)(&to, LOAD(some + done), pivots);
  for (int64_t i = done; i < left; i++) {
    *to.begin = to.end[-1] = some[i];
    to.begin += some[i] < pivot;
    to.end -= some[i] >= pivot;
  }
  for (int i = 0; i < AT_ONCE; i++) NAMED(put)(&to, first[i], pivots);
  for (int i = 0; i < AT_ONCE; i++) NAMED(put)(&to, last[i], pivots);
  return to.begin - keys;
}

/* Divides more keys than a network has into smaller ones and others. Returns the number of smaller
 * ones, at least one; with *is_done, all of these are equal. After `depth` divisions in a row, the
 * range of keys is halved, so that the number of bad divisions is bounded. */
TARGET static int64_t NAMED(split)(void *given, int64_t n, int depth, int *is_done) {
  KEY *keys = given;
  if (depth < -10 * (int)sizeof(KEY)) return *is_done = 1, n; /* they change during the call */
  const KEY pivot = depth > 0 ? NAMED(middle)(keys, n) : NAMED(bisected)(keys, n);
  const int64_t below = NAMED(divide)(keys, n, pivot);
  *is_done = below == 0;
  if (below) return below;
  return pivot == (KEY)-1 ? n : NAMED(divide)(keys, n, pivot + 1); /* it is the smallest one */
}

TARGET static void NAMED(sort)(void *given, int64_t n, int depth) {
  KEY *keys = given;
  while (n > MOST_FEW) {
    int is_done;
    const int64_t below = NAMED(split)(keys, n, depth--, &is_done);
    if (!is_done) NAMED(sort)(keys, below, depth);
    keys += below, n -= below;
  }
  SORT_FEW(keys, n);
}
#endif

#undef INLINE
#undef MOST
#undef AT_ONCE
#undef KEY
#undef VECTOR
#undef LANES
#undef NAMED
#undef LOAD
#undef STORE
#undef LOAD_SOME
#undef STORE_SOME
#undef LEAST
#undef GREATEST
#undef ALL
#undef SHUFFLED
#undef EXCHANGED
#undef CHOSEN
#undef BELOW
#undef COUNT
#undef STORE_PARTS
#undef SORT_FEW
#undef MOST_FEW
