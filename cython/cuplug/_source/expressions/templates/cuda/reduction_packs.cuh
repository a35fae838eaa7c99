/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of packs and elements, and stores of outputs. Included before reduction.cuh. */
constexpr int OUTPUTS = COLUMNS ? WIDTH : 1; /* per thread */
struct arrays {
  void *data[N_ARRAYS];
};
struct scalars {
  cuplug_scalar of[N_SCALARS];
};

/* Stores the outputs with this number. Each combines n elements. */
__device__ inline void store_output(const arrays &a, const cuplug_numbers &given, int64_t number,
                                    const cuplug_value &value, const divisors<KEPT> &kept,
                                    const strides<N_ARRAYS, KEPT> &steps, int64_t n) {
  int64_t at[N_ARRAYS] = {};
  locate<KEPT>((index)(number / OUTPUTS), kept, steps, at);
  if constexpr (COLUMNS && WIDTH > 1)
    for (int k = N_INPUTS; k < N_ARRAYS; k++)
      at[k] += number % WIDTH * (steps.of[k][KEPT - 1] / WIDTH);
  const cuplug_results results = cuplug_results_of(given, value, n);
#define CUPLUG_STORE(k, name, type) static_cast<type *>(a.data[k])[at[k]] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
}

/* Stores WIDTH adjacent outputs. */
__device__ inline void store_pack(const arrays &a, const cuplug_numbers &given,
                                  const int64_t (&at)[N_ARRAYS], const state (&states)[WIDTH],
                                  int64_t n) {
  cuplug_results results[WIDTH];
#pragma unroll
  for (int j = 0; j < WIDTH; j++) results[j] = cuplug_results_of(given, states[j].value, n);
#define CUPLUG_STORE_PACK(k, name, type)                                                   \
  {                                                                                        \
    pack<type, WIDTH> made;                                                                \
    for (int j = 0; j < WIDTH; j++) made.value[j] = results[j].name;                       \
    *reinterpret_cast<pack<type, WIDTH> *>(static_cast<type *>(a.data[k]) + at[k]) = made; \
  }
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE_PACK)
}

template <bool STILL_ONE, typename P, typename T>
__device__ inline void load_into(P &p, const T *data, int64_t at) {
  if constexpr (STILL_ONE)
    p = load<WIDTH, true>(data, at);
  else
    p = *reinterpret_cast<const P *>(data + at);
}

__device__ inline cuplug_places load_places(const arrays &a, const int64_t (&base)[N_ARRAYS],
                                            const int64_t (&at)[N_ARRAYS]) {
  cuplug_places p;
#define CUPLUG_LOAD(k, name, type) \
  load_into<(STILL >> k & 1) != 0>(p.name, static_cast<const type *>(a.data[k]), base[k] + at[k]);
  CUPLUG_EACH_INPUT(CUPLUG_LOAD)
  return p;
}

/* Loads element `at` of a line, as the first of each pack. */
__device__ inline cuplug_places load_element(const arrays &a, const int64_t (&base)[N_ARRAYS],
                                             int64_t at) {
  cuplug_places p;
#define CUPLUG_LOAD_ELEMENT(k, name, type) \
  p.name.value[0] =                        \
      static_cast<const type *>(a.data[k])[base[k] + ((STILL >> k & 1) != 0 ? 0 : at)];
  CUPLUG_EACH_INPUT(CUPLUG_LOAD_ELEMENT)
  return p;
}

/* The number of elements between the start of a line and the start of the pack that contains its
 * first element. */
__device__ inline int lead_of(const arrays &a, const int64_t (&base)[N_ARRAYS]) {
  int lead = 0;
#define CUPLUG_LEAD(k, name, type) \
  if ((STILL >> k & 1) == 0)       \
    lead = (int)((uint64_t)(static_cast<const type *>(a.data[k]) + base[k]) / sizeof(type) % WIDTH);
  CUPLUG_EACH_INPUT(CUPLUG_LEAD)
  return lead;
}
