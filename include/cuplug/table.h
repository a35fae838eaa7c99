/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <cuplug/plugin.h>: macros for the symbol table, whose bytes docs/abi.md describes. */
#ifndef CUPLUG_TABLE_H
#define CUPLUG_TABLE_H

#include <cuplug/abi.h>

CUPLUG__BEGIN_C

/** Properties of an operator: they follow its doc string, without a comma. */
#define CUPLUG_DOC(name, text) "\0doc." #name "=" text /* one line about a parameter or output */
#define CUPLUG_TAKES_STRIDES "\0!takes_strides"        /* arrays of any strides pass unchanged */
/* The same for arrays on a GPU only; `strides` is NULL if they are C-contiguous. */
#define CUPLUG_CUDA_TAKES_STRIDES "\0!cuda_takes_strides"
#define CUPLUG_NO_SPLIT "\0!no_split"        /* it counts elements: no call is cut into parts */
#define CUPLUG_PREFERS_CUDA "\0prefers_cuda" /* host arrays go through the GPU, if there is one */
#define CUPLUG_NONBLOCKING "\0nonblocking"   /* small arrays take the host entry microseconds */
/* An output may be the memory of an input: each element is read before it is written. */
#define CUPLUG_IN_PLACE "\0in_place"
/** Dimensions along which, as along `...`, elements have nothing to do with each other. */
#define CUPLUG_INDEPENDENT(...) "\0independent=" #__VA_ARGS__
/** Elements depend on others only along the dimension whose number is the parameter `axis`. */
#define CUPLUG_ALONG(axis) "\0along=" #axis
#define CUPLUG_DETERMINISTIC "\0deterministic"      /* equal arguments give equal bits */
#define CUPLUG_GRADIENT(op) "\0gradient=" #op       /* the operator that computes it */
#define CUPLUG_LINEAR(...) "\0linear=" #__VA_ARGS__ /* in these arrays, taken together */
/** Arithmetic over dimensions: floating-point operations, and bytes that must move. */
#define CUPLUG_COST(flops, bytes) "\0flops=" #flops "\0bytes=" #bytes

/** The message of a fault that kernels report by cuplug_fault_text with this number, from 1 on.
 * {position} and {value} are replaced by the reported numbers:
 *
 *     CUPLUG_FAULT(1, "element {position} is {value}, which is not a weekday")
 */
#define CUPLUG_FAULT(number, text) "\0fault." #number "=" text

/** A state, call->state, that an exported function makes at the first call on the host, and at the
 * first on each GPU: a handle of a library, a table, a cache. Of an operator, or of all operators
 * of the plugin: then it follows the plugin's version, without a comma.
 *
 *     CUPLUG_ENTRY int make_cache(const cuplug_call *call, void **state);
 *     CUPLUG_PLUGIN(blur, "1.0.0" CUPLUG_STATE(make_cache));
 *
 * The function sets *state and returns CUPLUG_OK, or what cuplug_fail returned; then the next call
 * tries again. Its call has a device, which is current, and no arrays and no stream. All calls
 * share the state, at the same time on several threads. It is never freed: at the end of a process
 * the CUDA runtime may be gone. A forked child and a reloaded plugin make their own. */
#define CUPLUG_STATE(function) "\0!state=" #function
/** The same, but no two calls have it at the same time: calls that overlap have one each. For
 * handles that one thread uses at a time. Work may still be queued on a GPU when another call gets
 * it. */
#define CUPLUG_EXCLUSIVE_STATE(function) "\0!exclusive_state=" #function
/** The exported function that closes an object of an operator `-> handle[tag]`:
 *
 *     CUPLUG_ENTRY int close_it(const cuplug_call *call, void *handle);
 *     CUPLUG_HOST_OPERATOR(plan, "plan(n: int) -> handle[plan]", "Plans" CUPLUG_CLOSE(close_it));
 *
 * It is called once, on any thread, when no call uses the handle. Its call has a device, which is
 * current, and no arrays and no stream. It returns CUPLUG_OK or what cuplug_fail returned; the
 * handle is closed in any case. */
#define CUPLUG_CLOSE(function) "\0!close=" #function

#define CUPLUG__TEXT(...) #__VA_ARGS__
#define CUPLUG__EXPANDED_TEXT(...) CUPLUG__TEXT(__VA_ARGS__)
#define CUPLUG__JOIN(a, b) a##b
#define CUPLUG__EXPANDED_JOIN(a, b) CUPLUG__JOIN(a, b)

/* The compiler checks that an entry was declared with the type cuplug_entry. */
#ifdef __cplusplus
CUPLUG__END_C
static inline constexpr bool cuplug__is_entry(cuplug_entry *) { return true; }
template <class Other> constexpr bool cuplug__is_entry(Other *) { return false; }
CUPLUG__BEGIN_C
#define CUPLUG__ASSERT static_assert
#define CUPLUG__IS_ENTRY(entry) cuplug__is_entry(entry)
#else
#define CUPLUG__ASSERT _Static_assert
#define CUPLUG__IS_ENTRY(entry) _Generic(&(entry), cuplug_entry * : 1, default : 0)
#endif
#define CUPLUG__MUST_BE_ENTRY(entry)      \
  CUPLUG__ASSERT(CUPLUG__IS_ENTRY(entry), \
                 #entry ": an entry is CUPLUG_ENTRY int " #entry "(const cuplug_call *call)")

#define CUPLUG__NOTE(storage, name, kind, string)                                            \
  struct CUPLUG__JOIN(name, _note) {                                                         \
    uint32_t owner_bytes, text_bytes, note_kind;                                             \
    char owner[8], text[(sizeof(string) + 3) / 4 * 4];                                       \
  };                                                                                         \
  storage const struct CUPLUG__JOIN(name, _note) name                                        \
      __attribute__((section(".note.cuplug"), used, aligned(4))) = {8, sizeof(string), kind, \
                                                                    "cuplug", string}

/* nvcc defines __CUDA_ARCH_LIST__; for a table compiled by another compiler, pass
 * -DCUPLUG_ARCHITECTURES=750,900. */
#if defined(CUPLUG_ARCHITECTURES)
#define CUPLUG__ARCHITECTURES CUPLUG__EXPANDED_TEXT(CUPLUG_ARCHITECTURES)
#elif defined(__CUDA_ARCH_LIST__)
#define CUPLUG__ARCHITECTURES CUPLUG__EXPANDED_TEXT(__CUDA_ARCH_LIST__)
#else
#define CUPLUG__ARCHITECTURES ""
#endif

/* Newer clangs, 23 among them, call __COUNTER__ an extension of C2y under -pedantic. */
#define CUPLUG__COUNTED
#define CUPLUG__COUNTED_END
#if defined(__clang__) && !defined(__CUDACC__)
#if __has_warning("-Wc2y-extensions")
#undef CUPLUG__COUNTED
#undef CUPLUG__COUNTED_END
#define CUPLUG__COUNTED \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc2y-extensions\"")
#define CUPLUG__COUNTED_END _Pragma("clang diagnostic pop")
#endif
#endif

/* An operator, or one more overload of it, at file scope: entries, signature, a line of
 * documentation with properties. Overloads of one operator are in one source file: the first that
 * fits is used. With CUPLUG_HOST_ONLY defined (nvcc is not available) CUDA entries are omitted. */
#define CUPLUG__OPERATOR(number, entries, signature, doc)                                     \
  CUPLUG__COUNTED_END                                                                         \
  CUPLUG__ASSERT(sizeof(signature) <= CUPLUG_MAX_SIGNATURE + 1, "the signature is too long"); \
  CUPLUG__NOTE(static, CUPLUG__EXPANDED_JOIN(cuplug_operator_, number), CUPLUG_NOTE_OPERATOR, \
               "order=" CUPLUG__EXPANDED_TEXT(number) "\0" entries "signature=" signature     \
                                                      "\0doc=" doc)
#define CUPLUG_HOST_OPERATOR(host, signature, doc) \
  CUPLUG__MUST_BE_ENTRY(host);                     \
  CUPLUG__COUNTED CUPLUG__OPERATOR(__COUNTER__, "host=" #host "\0", signature, doc)
#define CUPLUG_CUDA_OPERATOR(cuda, signature, doc) \
  CUPLUG__MUST_BE_ENTRY(cuda);                     \
  CUPLUG__COUNTED CUPLUG__OPERATOR(__COUNTER__, "cuda=" #cuda "\0", signature, doc)
#ifdef CUPLUG_HOST_ONLY
#define CUPLUG_OPERATOR(cuda, host, signature, doc) CUPLUG_HOST_OPERATOR(host, signature, doc)
#else
#define CUPLUG_OPERATOR(cuda, host, signature, doc) \
  CUPLUG__MUST_BE_ENTRY(cuda);                      \
  CUPLUG__MUST_BE_ENTRY(host);                      \
  CUPLUG__COUNTED CUPLUG__OPERATOR(__COUNTER__, "cuda=" #cuda "\0host=" #host "\0", signature, doc)
#endif

/** The plugin itself, once, at file scope: name (an identifier) and version. */
#define CUPLUG_PLUGIN(name, version)                                                     \
  struct name##_is_an_identifier;                                                        \
  CUPLUG__ASSERT(sizeof(#name) <= 64, "a plugin's name has at most 63 characters");      \
  CUPLUG_ENTRY const struct cuplug_symbols_note cuplug_symbols;                          \
  CUPLUG__NOTE(, cuplug_symbols, CUPLUG_NOTE_PLUGIN,                                     \
               "abi=" CUPLUG__EXPANDED_TEXT(CUPLUG_ABI_MAJOR) "." CUPLUG__EXPANDED_TEXT( \
                   CUPLUG_ABI_MINOR) "\0name=" #name "\0version=" version                \
                                     "\0architectures=" CUPLUG__ARCHITECTURES)

CUPLUG__END_C
#endif
