/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in C++17 and CUDA whose arguments come from the signature, by name:
 *
 *     CUPLUG_TYPED_OPERATOR(topk, "topk(x: T[n], k: int) -> (values: T[k], indices: int64[k]) "
 *                                 "where T: floating, 0 <= k <= n", "The k largest.");
 *
 *     CUPLUG_HOST_ENTRY(topk, (T), x, n, k, values, indices) {
 *       ...
 *       return CUPLUG_OK;
 *     }
 *     CUPLUG_CUDA_ENTRY(topk, (T), x, n, k, values, indices) {
 *       return call.launch<topk_kernel<T>>({1, 256}, x, n, k, values, indices);
 *     }
 *     CUPLUG_PLUGIN(topk, "1.0.0");
 *
 * An entry lists the names that it uses, in any order: parameters, outputs and dimensions. Their
 * types follow from the signature: <cuplug/arguments.hpp>. Type variables in parentheses become
 * types, and the code is compiled for each dtype that they allow. A name that is not in the
 * signature does not compile. Nothing here is part of the ABI. */
#ifndef CUPLUG_PLUGIN_HPP
#define CUPLUG_PLUGIN_HPP

#include <cuplug/arguments.hpp>
#include <cuplug/entries.hpp>
#include <exception>
#include <new>
#include <utility>

namespace cuplug {

/* ---- The call ------------------------------------------------------------------------------- */

/** Blocks for n items, `per_block` to each: at most the maximum of a grid, so kernels whose n may
 * exceed 2^31 - 1 blocks continue in strides of the grid. */
constexpr int64_t blocks(int64_t n, int64_t per_block) {
  const int64_t wanted = n / per_block + (n % per_block != 0);
  return wanted < 0x7fffffff ? wanted : 0x7fffffff;
}

struct extent {
  uint32_t x, y, z;
  constexpr extent(int64_t n_x, int64_t n_y = 1, int64_t n_z = 1)
      : x((uint32_t)n_x), y((uint32_t)n_y), z((uint32_t)n_z) {}
};

/** How a kernel is launched: `{blocks, threads}`, `{{8, 8}, {16, 16}, shared_bytes}`,
 * `cuplug::grid(blocks, threads).in_clusters(2).cooperative()`. */
struct grid : cuplug_grid {
  grid(extent n_blocks, extent n_threads, uint32_t n_bytes = 0)
      : cuplug_grid{{n_blocks.x, n_blocks.y, n_blocks.z},
                    {n_threads.x, n_threads.y, n_threads.z},
                    n_bytes, /* shared, of each block */
                    0,
                    {0, 0, 0},
                    0} {}
  grid &with(uint32_t flag) {
    flags |= flag;
    return *this;
  }
  /** Its blocks may wait for each other. */
  grid &cooperative() { return with(CUPLUG_COOPERATIVE); }
  /** It may begin while the kernel ahead runs: programmatic launch. */
  grid &programmatic() { return with(CUPLUG_PROGRAMMATIC); }
  grid &in_clusters(extent n_blocks) {
    cluster[0] = n_blocks.x, cluster[1] = n_blocks.y, cluster[2] = n_blocks.z;
    return *this;
  }
};

template <int... k> using numbers = std::integer_sequence<int, k...>;
template <int n> using numbers_below = std::make_integer_sequence<int, n>;

/** The parameters of a kernel. */
template <class... P> struct parameters {
  static constexpr size_t n = sizeof...(P);
  template <class... A> static constexpr bool take() {
    if constexpr (sizeof...(A) == n)
      return (std::is_convertible<A, P>::value && ...);
    else
      return false;
  }
};
template <class... P> constexpr parameters<P...> parameters_of(void (*)(P...)) { return {}; }

/* The compiler names the class of a static_assert that fails, and so the numbers and types. */
template <size_t got, size_t expected> struct number_of_launch_arguments {
  static_assert(got == expected, "launch: got another number of arguments than the kernel has "
                                 "parameters: see number_of_launch_arguments<got, expected>");
};
template <int number, class From, class To> struct launch_argument {
  static_assert(std::is_convertible<From, To>::value,
                "launch: an argument does not convert to the kernel's parameter: see "
                "launch_argument<number from 1, type of the argument, type of the parameter>");
};
template <class Numbers, class Parameters, class... A> struct check_launch;
template <int... k, class... P, class... A>
struct check_launch<numbers<k...>, parameters<P...>, A...> : launch_argument<k + 1, A, P>... {};

/** Calls f and reports the exceptions that it throws, because none may leave a plugin. */
template <class F> int guarded(const cuplug_call *call, F f) {
#ifdef __cpp_exceptions
  try {
    return f();
  } catch (const std::bad_alloc &) {
    return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "memory of the host ran out");
  } catch (const std::exception &error) {
    return cuplug_fail(call, CUPLUG_ERROR_PLUGIN, error.what());
  } catch (...) {
    return cuplug_fail(call, CUPLUG_ERROR_PLUGIN, "an exception of an unknown type");
  }
#else
  (void)call;
  return f();
#endif
}

/** The call of an entry. All functions of <cuplug/plugin.h> also take it. */
class call {
public:
  call(const cuplug_call *c) : call_(c) {}
  operator const cuplug_call *() const { return call_; }

  /* Reports an error: `return call.fail(CUPLUG_ERROR_VALUE, "k: got 0, expected ...")`. */
  CUPLUG__MUST_USE int fail(int status, const char *text) const {
    return cuplug_fail(call_, status, text);
  }
  /** Scratch memory for n elements until the entry's work is done. nullptr when memory ran out: the
   * error is reported, return CUPLUG_ERROR_MEMORY. */
  template <class T> T *workspace(int64_t n) const {
    return static_cast<T *>(cuplug_workspace(call_, (uint64_t)n * sizeof(T)));
  }
  /* On the host: calls f(begin, end) for items 0 to n - 1 in ranges of `grain`, on several threads:
   * cuplug_parallel. f returns nothing, or a status; its exceptions are reported. */
  template <class F> CUPLUG__MUST_USE int parallel(int64_t n, int64_t grain, F f) const {
    const loop<F> context = {call_, &f};
    return cuplug_parallel(call_, n, grain, loop<F>::body, (void *)&context);
  }
  /** The object that CUPLUG_STATE made; T is its type. */
  template <class T> T *state() const { return static_cast<T *>(call_->state); }
  /** Sets the result of an operator `-> handle[tag]`: cuplug_set_handle. */
  CUPLUG__MUST_USE int set_handle(void *handle) const { return cuplug_set_handle(call_, handle); }
  int device() const { return call_->device.id; }
  uint32_t max_threads() const { return call_->max_threads; } /* on the host; 0: any number */
  cuplug_fault *fault() const { return call_->fault; }        /* for kernels */

#ifdef __CUDACC__
  cudaStream_t stream() const { return static_cast<cudaStream_t>(call_->stream); }
  /* Another stream, after the current work on `stream()` and before the work after the call:
   * cuplug_second_stream. nullptr: the error is reported, return CUPLUG_ERROR_CUDA. */
  cudaStream_t second_stream() const {
    return static_cast<cudaStream_t>(cuplug_second_stream(call_));
  }
  /* The result of a function of the CUDA runtime, or of CUB: reported if it is an error. */
  CUPLUG__MUST_USE int check(cudaError_t code) const {
    if (code != cudaSuccess) cudaGetLastError(); /* later launches report only their own errors */
    return cuplug__cuda_status(call_, code, "entry");
  }
  /* Calls f(scratch, bytes) twice, as the algorithms of CUB require: with nullptr, f sets the bytes
   * that it requires; then it receives a workspace of that size. */
  template <class F> CUPLUG__MUST_USE int with_workspace(F f) const {
    size_t bytes = 0;
    if (int status = check(f(nullptr, bytes))) return status;
    void *scratch = workspace<char>((int64_t)bytes);
    return scratch ? check(f(scratch, bytes)) : (int)CUPLUG_ERROR_MEMORY;
  }
  /* Copies n values to the host and waits for the stream: for the sizes of outputs with `?`. */
  template <class T>
  CUPLUG__MUST_USE int copy_to_host(T *host, const T *device, int64_t n = 1) const {
    const size_t bytes = (size_t)n * sizeof(T);
    if (int status = check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, stream())))
      return status;
    return check(cudaStreamSynchronize(stream()));
  }
#if CUDART_VERSION >= 12010
  /* Launches a kernel on the call's stream, as cuplug_launch does. */
  template <auto kernel, class... A> CUPLUG__MUST_USE int launch(const grid &g, A... a) const {
    using kernel_parameters = decltype(parameters_of(kernel));
    if constexpr (kernel_parameters::template take<A...>()) {
      return cuplug_launch<kernel>(call_, g, a...);
    } else if constexpr (kernel_parameters::n != sizeof...(A)) {
      return (int)sizeof(number_of_launch_arguments<sizeof...(A), kernel_parameters::n>);
    } else {
      using all = numbers_below<(int)sizeof...(A)>;
      return (int)sizeof(check_launch<all, kernel_parameters, A...>);
    }
  }
#endif
#endif

private:
  template <class F> struct loop {
    const cuplug_call *call;
    F *f;
    static int body(void *context, int64_t begin, int64_t end) {
      const loop *at = static_cast<const loop *>(context);
      return guarded(at->call, [=] {
        if constexpr (std::is_convertible<decltype((*at->f)(begin, end)), int>::value)
          return (*at->f)(begin, end);
        else
          return (*at->f)(begin, end), (int)CUPLUG_OK;
      });
    }
  };
  const cuplug_call *call_;
};

/* ---- Entries -------------------------------------------------------------------------------- */

template <class T, class = void> struct is_defined { static constexpr bool value = false; };
template <class T> struct is_defined<T, decltype(void(sizeof(T)))> {
  static constexpr bool value = true;
};

template <class Entry, class... T> int run_typed(const cuplug_call *call);

/** Runs the code for dtype number k if it is the call's, and the signature allows it. */
template <class Entry, int k, uint64_t allowed, class... T>
bool run_dtype(const cuplug_call *call, uint32_t type, int *status) {
  if constexpr (allowed >> k & 1) {
    using element = typename dtype<k>::element;
    static_assert(
        is_defined<element>::value,
        "a type variable of this entry may be a dtype whose C++ type is not defined here: "
        "include <cuda_fp16.h>, <cuda_bf16.h> or <cuda_fp8.h>");
    if (type != dtype<k>::id) return false;
    *status = run_typed<Entry, T..., element>(call);
    return true;
  } else {
    return false;
  }
}

/** The dtype of a call, which `source` has; 0: all lists are empty, and so it has only one. */
template <class Entry, int there> uint32_t type_of_call(const cuplug_call *call) {
  constexpr item source = find_dtype(Entry::text(), Entry::type_names(), there);
  static_assert(source.what != kind::none,
                "a type variable stands in no array that is always given");
  if constexpr (source.what == kind::arrays) { /* of the first item of any list */
    uint32_t type = 0;
    visit_parts(Entry::text(), [&](const item &part) {
      if (part.what != kind::arrays ||
          !is_word(Entry::text(), part.type, Entry::type_names(), there))
        return false;
      const cuplug_items &list = call->scalars[part.index].list;
      if (list.n) type = cuplug_type(static_cast<const cuplug_tensor *>(list.items));
      return list.n > 0;
    });
    return type;
  } else {
    return cuplug_type((source.output ? call->outputs : call->tensors) + source.index);
  }
}

template <class Entry, class... T, int... k>
int choose_dtype(const cuplug_call *call, numbers<k...>) {
  constexpr int there = word_of_list(Entry::type_names(), sizeof...(T));
  constexpr uint64_t allowed = dtypes_of(Entry::text(), Entry::type_names(), there);
  const uint32_t type = type_of_call<Entry, there>(call);
  int status = CUPLUG_OK;
  if ((run_dtype<Entry, k, allowed, T...>(call, type ? type : dtype<k>::id, &status) || ...))
    return status;
  return cuplug_fail(call, CUPLUG_ERROR_TYPE, "no code for this dtype");
}

template <class Entry, class... T> int run_typed(const cuplug_call *call) {
  if constexpr (sizeof...(T) == n_words(Entry::type_names()))
    return Entry::template run<T...>(call);
  else
    return choose_dtype<Entry, T...>(call, numbers_below<CUPLUG__N_DTYPES>());
}

/** The body of an exported entry; no exception leaves it. */
template <class Entry> int run_entry(const cuplug_call *call) {
  static_assert(
      Entry::n_outputs == n_outputs_of(Entry::text()),
      "an entry lists all outputs, since it writes them; where there are several, each has "
      "a name in the signature");
  return guarded(call, [call] { return run_typed<Entry>(call); });
}

} // namespace cuplug

#endif
