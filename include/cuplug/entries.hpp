/* SPDX-License-Identifier: Apache-2.0 */
/* The macros of operators and entries with named arguments. Part of <cuplug/plugin.hpp>. */
#ifndef CUPLUG_ENTRIES_HPP
#define CUPLUG_ENTRIES_HPP

#include <cuplug/signature.hpp>

/* Compilers then show the author's line, and not each macro on the way to it. */
#pragma GCC system_header

/** An operator and its row of the table, before its entries: an identifier of C++, a signature, a
 * line of documentation with properties. The entries are called <identifier>_host and _cuda. */
#define CUPLUG_TYPED_OPERATOR(identifier, signature, doc) \
  CUPLUG__SIGNATURE(identifier##_signature, signature);   \
  CUPLUG_ENTRY cuplug_entry identifier##_host;            \
  CUPLUG_ENTRY cuplug_entry identifier##_cuda;            \
  CUPLUG_OPERATOR(identifier##_cuda, identifier##_host, signature, doc)
#define CUPLUG_TYPED_HOST_OPERATOR(identifier, signature, doc) \
  CUPLUG__SIGNATURE(identifier##_signature, signature);        \
  CUPLUG_ENTRY cuplug_entry identifier##_host;                 \
  CUPLUG_HOST_OPERATOR(identifier##_host, signature, doc)
#define CUPLUG_TYPED_CUDA_OPERATOR(identifier, signature, doc) \
  CUPLUG__SIGNATURE(identifier##_signature, signature);        \
  CUPLUG_ENTRY cuplug_entry identifier##_cuda;                 \
  CUPLUG_CUDA_OPERATOR(identifier##_cuda, signature, doc)

#define CUPLUG__SIGNATURE(identifier, signature)              \
  struct identifier {                                         \
    static constexpr const char *text() { return signature; } \
  }

/** An entry of such an operator, before its body in braces: CUPLUG_HOST_ENTRY(operator, (T), x, n).
 * Omit the parentheses if there are no type variables. In the body, `call` is the cuplug::call. */
#define CUPLUG_HOST_ENTRY(...) CUPLUG__NAMED_ENTRY(_host, __VA_ARGS__, )
#define CUPLUG_CUDA_ENTRY(...) CUPLUG__NAMED_ENTRY(_cuda, __VA_ARGS__, )

/* Each list ends with a comma here, as macros of ISO C++17 have no empty `...`. */
#define CUPLUG__NAMED_ENTRY(side, identifier, ...)                                            \
  CUPLUG__PASTE(CUPLUG__TYPES_, CUPLUG__IS_LIST(CUPLUG__APPLY(CUPLUG__FIRST, __VA_ARGS__, ))) \
  (identifier##side, identifier##_signature, __VA_ARGS__)
#define CUPLUG__TYPES_0(entry, signature, ...) CUPLUG__DEFINE(entry, signature, (), __VA_ARGS__)
#define CUPLUG__TYPES_1(entry, signature, ...) CUPLUG__DEFINE(entry, signature, __VA_ARGS__)

/* The information that an entry requires for each name, the exported function, the head of the
 * body. `types` is in parentheses, which may be empty. */
#define CUPLUG__DEFINE(entry, signature, types, ...)                                               \
  struct entry##_types : signature {                                                               \
    static constexpr const char *type_names() { return #types; }                                   \
  };                                                                                               \
  CUPLUG__APPLY(CUPLUG__MAP, CUPLUG__CHECK_TYPE, entry, signature, CUPLUG__LIST types)             \
  struct entry##_names : entry##_types {                                                           \
    CUPLUG__MAP(CUPLUG__NAME, entry, signature, __VA_ARGS__)                                       \
  };                                                                                               \
  template <int cuplug_unused CUPLUG__APPLY(CUPLUG__MAP, CUPLUG__CLASS, entry, signature,          \
                                            CUPLUG__LIST types)>                                   \
  static int entry##_body(cuplug::call CUPLUG__MAP(CUPLUG__PARAMETER, entry, types, __VA_ARGS__)); \
  struct entry##_code : entry##_names {                                                            \
    static constexpr int n_outputs = 0 CUPLUG__MAP(CUPLUG__OUTPUT, entry, types, __VA_ARGS__);     \
    template <class... T> static int run(const cuplug_call *call) {                                \
      return entry##_body<0, T...>(call CUPLUG__MAP(CUPLUG__ARGUMENT, entry, types, __VA_ARGS__)); \
    }                                                                                              \
  };                                                                                               \
  CUPLUG_ENTRY int entry(const cuplug_call *call) {                                                \
    return cuplug::run_entry<entry##_code>(call);                                                  \
  }                                                                                                \
  template <int cuplug_unused CUPLUG__APPLY(CUPLUG__MAP, CUPLUG__CLASS, entry, signature,          \
                                            CUPLUG__LIST types)>                                   \
  static int entry##_body([[maybe_unused]] cuplug::call call CUPLUG__MAP(CUPLUG__PARAMETER, entry, \
                                                                         types, __VA_ARGS__))

/* ---- Misspelt dtypes ---- */

namespace cuplug {

/** How many letters a word and a name have that the other one has not. */
constexpr int n_differing(const char *text, int at, const char *name) {
  int n = 0;
  for (char letter = '0'; letter <= 'z'; letter++) {
    int more = 0;
    for (int i = at; is_of_word(text[i]); i++) more += text[i] == letter;
    for (int i = 0; name[i]; i++) more -= name[i] == letter;
    n += more < 0 ? -more : more;
  }
  return n;
}

#define CUPLUG__WORDS(X) \
  CUPLUG_DTYPE_LIST(X) X(int, , , , , ) X(float, , , , , ) X(complex, , , , , )

/** What is wrong with a dtype, and the one that may be meant: compilers show these names. */
enum class spelling {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) did_you_mean_##name,
  CUPLUG__WORDS(CUPLUG__X)
#undef CUPLUG__X
      no_such_dtype,
  correct
};

constexpr spelling nearest_dtype(const char *text, int at) {
  spelling nearest = spelling::no_such_dtype;
  int best = 3;
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  if (n_differing(text, at, #name) < best)              \
    best = n_differing(text, at, #name), nearest = spelling::did_you_mean_##name;
  CUPLUG__WORDS(CUPLUG__X)
#undef CUPLUG__X
  return nearest;
}

template <spelling S> struct check_dtype {
  static_assert(S == spelling::correct,
                "the signature names a dtype that neither exists nor is bound by where");
};

/** How the dtypes of a type variable are spelt. */
constexpr spelling spelling_of(const char *text, const char *name) {
  for (int at = bound_at(text, name, 0); at >= 0; at = after_bar(text, at))
    if (!dtypes_at(text, skip_spaces(text, at))) return nearest_dtype(text, skip_spaces(text, at));
  return spelling::correct;
}

/** How the dtype of an array or a number is spelt, unless it is bound. */
constexpr spelling spelling_of(const char *text, const item &x) {
  const bool has_dtype = x.what != kind::none && x.what <= kind::scalar;
  const bool is_known =
      !has_dtype || dtype_at(text, x.type) >= 0 || bound_at(text, text, x.type) >= 0;
  return is_known ? spelling::correct : nearest_dtype(text, x.type);
}

} // namespace cuplug

#define CUPLUG__CHECK_TYPE(entry, signature, name)                                        \
  static_assert(cuplug::bound_at(signature::text(), #name, 0) >= 0,                       \
                #name ": no type variable of this name in the signature's where clause"); \
  static_assert(sizeof(cuplug::check_dtype<cuplug::spelling_of(signature::text(), #name)>));
#define CUPLUG__NAME(entry, signature, name)                                                    \
  struct of_##name : entry##_types {                                                            \
    static constexpr cuplug::item found = cuplug::find(signature::text(), #name);               \
    static_assert(found.what != cuplug::kind::none,                                             \
                  #name ": no parameter, output or dimension of this name in the signature");   \
    static_assert(sizeof(cuplug::check_dtype<cuplug::spelling_of(signature::text(), found)>));  \
    static_assert(!found.output || found.what != cuplug::kind::scalar,                          \
                  #name ": an output is an array: write [] behind its dtype for one number");   \
    static_assert(!found.output || found.what != cuplug::kind::handle,                          \
                  #name ": a handle is no argument of the entry that makes it: it is set with " \
                        "call.set_handle");                                                     \
  };
#define CUPLUG__CLASS(entry, signature, name) , class name
#define CUPLUG__PARAMETER(entry, types, name) \
  , cuplug::argument<entry##_names::of_##name CUPLUG__AFTER_COMMA types> name
#define CUPLUG__ARGUMENT(entry, types, name) , cuplug::get<entry##_names::of_##name, T...>(call)
#define CUPLUG__OUTPUT(entry, types, name) +cuplug::is_output(entry##_names::of_##name::found)

/* ---- Lists of names -------------------------------------------------------------------------- */

#define CUPLUG__PASTE_TOKENS(a, b) a##b
#define CUPLUG__PASTE(a, b) CUPLUG__PASTE_TOKENS(a, b)
#define CUPLUG__APPLY(macro, ...) macro(__VA_ARGS__)
#define CUPLUG__STRIP(...) __VA_ARGS__
#define CUPLUG__FIRST(a, ...) a
#define CUPLUG__SECOND(a, b, ...) b
#define CUPLUG__LIST(...) __VA_ARGS__ __VA_OPT__(, )
#define CUPLUG__AFTER_COMMA(...) __VA_OPT__(, ) __VA_ARGS__

/* 1 for something in parentheses, else 0. */
#define CUPLUG__IN_PARENTHESES(...) ~, 1
#define CUPLUG__IS_LIST(x) CUPLUG__APPLY(CUPLUG__SECOND, CUPLUG__IN_PARENTHESES x, 0, )

/* MAP(m, a, b, x, y, ) is m(a, b, x) m(a, b, y). A macro is not expanded within itself, so after
 * each fourth name AGAIN remains, which the next scan expands: there are scans for 64 names. */
#define CUPLUG__MAP(m, a, b, ...) __VA_OPT__(CUPLUG__SCAN(CUPLUG__MAP_1(m, a, b, __VA_ARGS__)))
#define CUPLUG__MAP_1(m, a, b, x, ...) m(a, b, x) __VA_OPT__(CUPLUG__MAP_2(m, a, b, __VA_ARGS__))
#define CUPLUG__MAP_2(m, a, b, x, ...) m(a, b, x) __VA_OPT__(CUPLUG__MAP_3(m, a, b, __VA_ARGS__))
#define CUPLUG__MAP_3(m, a, b, x, ...) m(a, b, x) __VA_OPT__(CUPLUG__MAP_4(m, a, b, __VA_ARGS__))
#define CUPLUG__MAP_4(m, a, b, x, ...) \
  m(a, b, x) __VA_OPT__(CUPLUG__MAP_AGAIN CUPLUG__BRACKETS(m, a, b, __VA_ARGS__))
#define CUPLUG__MAP_AGAIN() CUPLUG__MAP_1
#define CUPLUG__BRACKETS ()
#define CUPLUG__SCAN(...) \
  CUPLUG__SCAN_4(CUPLUG__SCAN_4(CUPLUG__SCAN_4(CUPLUG__SCAN_4(__VA_ARGS__))))
#define CUPLUG__SCAN_4(...) CUPLUG__STRIP(CUPLUG__STRIP(CUPLUG__STRIP(CUPLUG__STRIP(__VA_ARGS__))))

#endif
