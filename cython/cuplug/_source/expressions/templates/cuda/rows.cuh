/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on a GPU. Included before the kernel, whose threads with one threadIdx.y share a row. The
 * code before it defines WIDTH, elements of a pack; PACKS per thread, 0 if each phase reads rows
 * again; ROW_THREADS per row; KEPT, dimensions of the loop over rows; N_ARRAYS; NEAR, a bit for
 * each array whose packs are loaded at once; count, an integer type that numbers a row's elements.
 */
struct arrays {
  void *data[N_ARRAYS];
};
struct scalars {
  cuplug_scalar of[N_SCALARS];
};
struct steps {
  long long of[N_ARRAYS];
};

/* Loads the WIDTH elements from number `first` on, in a row of n, whose end is the end of a pack.
 */
template <int K, typename T>
__device__ inline pack<T, WIDTH> load_pack(const T *row, long long step, count first, count n) {
  pack<T, WIDTH> p = {};
  if (first >= n) return p;
  if constexpr ((NEAR >> K & 1) != 0)
    return *reinterpret_cast<const pack<T, WIDTH> *>(row + first);
  else
#pragma unroll
    for (int j = 0; j < WIDTH; j++) p.value[j] = row[(first + j) * step];
  return p;
}

template <int K, typename T>
__device__ inline void store_pack(T *row, long long step, count first, count n,
                                  const pack<T, WIDTH> &p) {
  if (first >= n) return;
  if constexpr ((NEAR >> K & 1) != 0)
    *reinterpret_cast<pack<T, WIDTH> *>(row + first) = p;
  else
#pragma unroll
    for (int j = 0; j < WIDTH; j++) row[(first + j) * step] = p.value[j];
}

/* Rounds the floats of a pack, in pairs if possible. */
template <class One, class Two>
__device__ inline void narrow(const float (&from)[WIDTH], pack<uint16_t, WIDTH> &to, const One &one,
                              const Two &two) {
#pragma unroll
  for (int j = 0; j + 1 < WIDTH; j += 2) {
    const uint32_t bits = two(from[j], from[j + 1]);
    memcpy(&to.value[j], &bits, sizeof bits);
  }
  if constexpr (WIDTH == 1) to.value[0] = one(from[0]);
}

/* e to the power of x, for results with at most 11 significant bits. */
__device__ inline float cuplug_row_exp(float x) { return cuplug_exp2(x * 1.44269504f); }

__device__ inline float exchanged(float x, int lane, int n) {
  return __shfl_xor_sync(0xffffffffu, x, lane, n);
}
__device__ inline double exchanged(double x, int lane, int n) {
  return __shfl_xor_sync(0xffffffffu, x, lane, n);
}
template <typename T> __device__ inline T exchanged(T x, int lane, int n) {
  static_assert(sizeof(T) <= 8, "");
  return (T)__shfl_xor_sync(0xffffffffu, (long long)x, lane, n);
}

/* Combines the values of all threads of a row, and returns the result in each of them. The order
 * depends only on their number. `shared` has an element for each warp of the block. All threads
 * must call this. */
template <typename T, class F> __device__ inline T all_of_row(T value, const F &put, T *shared) {
  constexpr int LANES = ROW_THREADS < 32 ? ROW_THREADS : 32, WARPS = ROW_THREADS / 32;
#pragma unroll
  for (int lane = LANES / 2; lane; lane /= 2) value = put(value, exchanged(value, lane, LANES));
  if constexpr (WARPS > 1) {
    T *own = shared + threadIdx.y * WARPS;
    if (threadIdx.x % 32 == 0) own[threadIdx.x / 32] = value;
    __syncthreads();
    value = own[threadIdx.x % WARPS];
#pragma unroll
    for (int lane = WARPS / 2; lane; lane /= 2) value = put(value, exchanged(value, lane, WARPS));
  }
  return value;
}

/* Runs code for each pack of a thread, whose elements begin with number `first`. `i` is the pack's
 * number among those in registers. */
#if CUPLUG_IN_REGISTERS
#define CUPLUG_OVER_PACKS(...)                                        \
  _Pragma("unroll") for (int i = 0; i < PACKS; i++) {                 \
    const count first = (i * ROW_THREADS + (int)threadIdx.x) * WIDTH; \
    __VA_ARGS__                                                       \
  }
#else
#define CUPLUG_OVER_PACKS(...)                                   \
  for (count first = (count)threadIdx.x * WIDTH; first < n_here; \
       first += (count)ROW_THREADS * WIDTH) {                    \
    __VA_ARGS__                                                  \
  }
#endif
