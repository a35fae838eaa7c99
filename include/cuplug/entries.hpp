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
#define CUPLUG_HOST_ENTRY(...) CUPLUG__NAMED_ENTRY(_host, __VA_ARGS__)
#define CUPLUG_CUDA_ENTRY(...) CUPLUG__NAMED_ENTRY(_cuda, __VA_ARGS__)

#define CUPLUG__NAMED_ENTRY(side, ...) \
  CUPLUG__PASTE(CUPLUG__ALONE_, CUPLUG__IS_ONE(__VA_ARGS__))(side, __VA_ARGS__)
#define CUPLUG__ALONE_1(side, identifier)                                               \
  CUPLUG__DEFINE(identifier##side, identifier##_signature, "()", CUPLUG__MAP_0, (void), \
                 CUPLUG__MAP_0, )
#define CUPLUG__ALONE_0(side, identifier, ...)                                                \
  CUPLUG__PASTE(CUPLUG__TYPES_, CUPLUG__IS_LIST(CUPLUG__APPLY(CUPLUG__FIRST, __VA_ARGS__, ))) \
  (identifier##side, identifier##_signature, __VA_ARGS__)
#define CUPLUG__TYPES_0(entry, signature, ...) \
  CUPLUG__DEFINE(entry, signature, "()", CUPLUG__MAP_0, (void), CUPLUG__MAP, __VA_ARGS__)
#define CUPLUG__TYPES_1(entry, signature, types, ...) \
  CUPLUG__DEFINE(entry, signature, #types, CUPLUG__MAP, types, CUPLUG__MAP, __VA_ARGS__)

/* The information that an entry requires for each name, the exported function, the head of the
 * body. */
#define CUPLUG__DEFINE(entry, signature, type_list, map_types, types, map_names, ...)            \
  struct entry##_types : signature {                                                             \
    static constexpr const char *type_names() { return type_list; }                              \
  };                                                                                             \
  CUPLUG__APPLY(map_types, CUPLUG__CHECK_TYPE, entry, signature, CUPLUG__STRIP types)            \
  struct entry##_names : entry##_types {                                                         \
    map_names(CUPLUG__NAME, entry, signature, __VA_ARGS__)                                       \
  };                                                                                             \
  template <int cuplug_unused CUPLUG__APPLY(map_types, CUPLUG__CLASS, entry, signature,          \
                                            CUPLUG__STRIP types)>                                \
  static int entry##_body(cuplug::call map_names(CUPLUG__PARAMETER, entry, types, __VA_ARGS__)); \
  struct entry##_code : entry##_names {                                                          \
    static constexpr int n_outputs = 0 map_names(CUPLUG__OUTPUT, entry, types, __VA_ARGS__);     \
    template <class... T> static int run(const cuplug_call *call) {                              \
      return entry##_body<0, T...>(call map_names(CUPLUG__ARGUMENT, entry, types, __VA_ARGS__)); \
    }                                                                                            \
  };                                                                                             \
  CUPLUG_ENTRY int entry(const cuplug_call *call) {                                              \
    return cuplug::run_entry<entry##_code>(call);                                                \
  }                                                                                              \
  template <int cuplug_unused CUPLUG__APPLY(map_types, CUPLUG__CLASS, entry, signature,          \
                                            CUPLUG__STRIP types)>                                \
  static int entry##_body(                                                                       \
      [[maybe_unused]] cuplug::call call map_names(CUPLUG__PARAMETER, entry, types, __VA_ARGS__))

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
  , cuplug::argument<entry##_names::of_##name, CUPLUG__STRIP types> name
#define CUPLUG__ARGUMENT(entry, types, name) , cuplug::get<entry##_names::of_##name, T...>(call)
#define CUPLUG__OUTPUT(entry, types, name) +cuplug::is_output(entry##_names::of_##name::found)

/* ---- Lists of names: MAP(m, a, b, x, y) is m(a, b, x) m(a, b, y), for up to 64 names ----------
 */

#define CUPLUG__PASTE_TOKENS(a, b) a##b
#define CUPLUG__PASTE(a, b) CUPLUG__PASTE_TOKENS(a, b)
#define CUPLUG__APPLY(macro, ...) macro(__VA_ARGS__)
#define CUPLUG__STRIP(...) __VA_ARGS__
#define CUPLUG__FIRST(a, ...) a
#define CUPLUG__SECOND(a, b, ...) b

#define CUPLUG__PICK(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, \
                     a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, \
                     a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, \
                     a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, \
                     a62, a63, count, ...)                                                      \
  count
#define CUPLUG__COUNT(...)                                                                         \
  CUPLUG__PICK(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,    \
               47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, \
               26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5,  \
               4, 3, 2, 1, )
/* The operator and the list of types precede the names. */
#define CUPLUG__PICK_MANY(                                                                         \
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, \
    a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, \
    a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, \
    a59, a60, a61, a62, a63, a64, a65, a66, a67, a68, a69, a70, a71, is_one, ...)                  \
  is_one
#define CUPLUG__IS_ONE(...)                                                                        \
  CUPLUG__PICK_MANY(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, )

/* 1 for something in parentheses, else 0. */
#define CUPLUG__IN_PARENTHESES(...) ~, 1
#define CUPLUG__IS_LIST(x) CUPLUG__APPLY(CUPLUG__SECOND, CUPLUG__IN_PARENTHESES x, 0, )

/* clang-format off */
#define CUPLUG__MAP_0(m, a, b, x)
#define CUPLUG__MAP_1(m, a, b, x) m(a, b, x)
#define CUPLUG__MAP_2(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_1(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_3(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_2(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_4(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_3(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_5(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_4(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_6(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_5(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_7(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_6(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_8(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_7(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_9(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_8(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_10(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_9(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_11(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_10(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_12(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_11(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_13(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_12(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_14(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_13(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_15(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_14(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_16(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_15(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_17(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_16(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_18(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_17(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_19(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_18(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_20(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_19(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_21(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_20(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_22(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_21(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_23(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_22(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_24(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_23(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_25(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_24(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_26(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_25(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_27(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_26(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_28(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_27(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_29(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_28(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_30(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_29(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_31(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_30(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_32(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_31(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_33(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_32(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_34(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_33(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_35(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_34(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_36(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_35(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_37(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_36(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_38(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_37(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_39(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_38(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_40(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_39(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_41(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_40(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_42(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_41(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_43(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_42(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_44(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_43(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_45(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_44(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_46(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_45(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_47(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_46(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_48(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_47(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_49(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_48(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_50(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_49(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_51(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_50(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_52(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_51(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_53(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_52(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_54(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_53(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_55(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_54(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_56(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_55(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_57(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_56(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_58(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_57(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_59(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_58(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_60(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_59(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_61(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_60(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_62(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_61(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_63(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_62(m, a, b, __VA_ARGS__)
#define CUPLUG__MAP_64(m, a, b, x, ...) m(a, b, x) CUPLUG__MAP_63(m, a, b, __VA_ARGS__)
/* clang-format on */

#define CUPLUG__MAP(m, a, b, ...) \
  CUPLUG__PASTE(CUPLUG__MAP_, CUPLUG__COUNT(__VA_ARGS__))(m, a, b, __VA_ARGS__)

#endif
