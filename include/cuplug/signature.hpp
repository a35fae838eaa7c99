/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures read while a plugin is compiled: the meaning of a name, and the position of its value
 * in a call. Part of <cuplug/plugin.hpp>. Only names that entries use are read; the core checks
 * all. */
#ifndef CUPLUG_SIGNATURE_HPP
#define CUPLUG_SIGNATURE_HPP

#include <cuplug/plugin.h>

namespace cuplug {

enum class kind : uint8_t {
  none,
  array,
  arrays,
  scalar,
  string,
  choice,
  dtype,
  handle,
  integers,
  floats,
  size,
  sizes
};

/** The meaning of a name of a signature. Positions are bytes of the text. */
struct item {
  kind what = kind::none;
  bool output = false, writable = false; /* an output; that, or inout */
  bool on_host = false;             /* an array in the memory of the host, also in CUDA calls */
  bool optional = false;            /* its default is None; for an output: omitted unless
                                       requested */
  bool unknown = false;             /* an output with dimensions `?` */
  int name = 0, type = 0, dims = 0; /* their positions */
  int index = 0;                    /* among the call's tensors, outputs or scalars */
  int first = 0;                    /* of a dimension: its number; below 0 from the end */
  int beside = 0;                   /* of a group *name: the other dimensions of its array */
};

/* ---- Words ---------------------------------------------------------------------------------- */

constexpr bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr int skip_spaces(const char *text, int at) {
  while (text[at] == ' ') at++;
  return at;
}

constexpr int end_of_word(const char *text, int at) {
  while (is_of_word(text[at])) at++;
  return at;
}

constexpr int after_word(const char *text, int at) {
  return skip_spaces(text, end_of_word(text, at));
}

/** Returns whether the word at `at` is that of `other` at `there`. */
constexpr bool is_word(const char *text, int at, const char *other, int there = 0) {
  while (is_of_word(text[at]) && text[at] == other[there]) at++, there++;
  return !is_of_word(text[at]) && !is_of_word(other[there]);
}

/** The position after the character at `at`, or after the string if one begins there. */
constexpr int next_character(const char *text, int at) {
  const char c = text[at++];
  if (c == '"' || c == '\'') {
    while (text[at] && text[at] != c) at++;
    if (text[at]) at++;
  }
  return at;
}

/** Where the text from `at` on ends: at a comma, or at what closes the bracket around it. */
constexpr int end_of_part(const char *text, int at) {
  for (int depth = 0; text[at]; at = next_character(text, at)) {
    const char c = text[at];
    if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
  }
  return at;
}

/** Where the bracket around the text from `at` on closes. */
constexpr int end_of_parts(const char *text, int at) {
  while (text[at = end_of_part(text, at)] == ',') at++;
  return at;
}

/** What stands after a word and a bar; -1: no bar follows the word. */
constexpr int after_bar(const char *text, int at) {
  const int end = after_word(text, skip_spaces(text, at));
  return text[end] == '|' ? end + 1 : -1;
}

/** The start of the part after the one that ends at `end`; -1 after the last. */
constexpr int next_part(const char *text, int end) {
  return text[end] == ',' ? skip_spaces(text, end + 1) : -1;
}

/* ---- dtypes --------------------------------------------------------------------------------- */

/** The dtype of a word, its place in CUPLUG_DTYPE_LIST; -1: a type variable. */
constexpr int dtype_at(const char *text, int at) {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  if (is_word(text, at, #name)) return CUPLUG__PLACE_OF_##NAME;
  CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
  return is_word(text, at, "int")       ? (int)CUPLUG__PLACE_OF_INT64
         : is_word(text, at, "float")   ? (int)CUPLUG__PLACE_OF_FLOAT64
         : is_word(text, at, "complex") ? (int)CUPLUG__PLACE_OF_COMPLEX128
                                        : -1;
}

/** The dtypes of one element with one of two DLPack type codes. */
constexpr uint64_t dtypes_of_codes(int a, int b) {
  uint64_t dtypes = 0;
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  if ((lanes) == 1 && ((code) == a || (code) == b)) dtypes |= 1ull << CUPLUG__PLACE_OF_##NAME;
  CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
  return dtypes;
}

/** The dtypes of a word of a `where` clause, groups included: bit k for place k. */
constexpr uint64_t dtypes_at(const char *text, int at) {
  if (is_word(text, at, "any")) return (1ull << CUPLUG__N_DTYPES) - 1;
  if (is_word(text, at, "integer")) return dtypes_of_codes(0, 1);
  if (is_word(text, at, "floating")) return dtypes_of_codes(2, 4);
  if (is_word(text, at, "complex")) return dtypes_of_codes(5, 5);
  const int place = dtype_at(text, at);
  return place < 0 ? 0 : 1ull << place;
}

/* ---- Parameters and outputs ----------------------------------------------------------------- */

constexpr kind kind_of(const char *text, int at, int dims, int end) {
  if (text[at] == '"' || text[at] == '\'') return kind::choice;
  if (is_word(text, at, "str")) return kind::string;
  if (text[dims] != '[') return is_word(text, at, "dtype") ? kind::dtype : kind::scalar;
  if (is_word(text, at, "handle")) return kind::handle;
  const bool empty = text[skip_spaces(text, dims + 1)] == ']';
  if (empty && is_word(text, at, "int")) return kind::integers;
  if (empty && is_word(text, at, "float")) return kind::floats;
  const int behind = skip_spaces(text, end_of_parts(text, dims + 1) + 1);
  return behind < end && text[behind] == '[' ? kind::arrays : kind::array;
}

constexpr bool has_unknown(const char *text, int dims) {
  for (int at = dims; text[at] && text[at] != ']'; at++)
    if (text[at] == '?') return true;
  return false;
}

/** The number of dimensions as written; -1 with groups of them. */
constexpr int rank_at(const char *text, int dims) {
  int rank = 0;
  for (int at = skip_spaces(text, dims + 1); at >= 0 && text[at] != ']';
       at = next_part(text, end_of_part(text, at)), rank++)
    if (text[at] == '*' || text[at] == '.') return -1;
  return rank;
}

/** Returns whether the `where` clause begins there, not an output or a dimension of that name. */
constexpr bool is_where(const char *text, int at) {
  if (!is_word(text, at, "where")) return false;
  const char next = text[after_word(text, at)];
  return is_of_word(next) || next == '(' || next == '-';
}

/** The parameter or output that begins at `at`: {word} [name:] type [= default]. */
constexpr item read_part(const char *text, int at, bool output) {
  item found;
  found.output = found.writable = output;
  for (int next = after_word(text, at); is_of_word(text[next]) && !is_where(text, next);
       at = next, next = after_word(text, at)) {
    found.writable |= is_word(text, at, "inout");
    found.on_host |= is_word(text, at, "host");
  }
  const int colon = after_word(text, at), end = end_of_part(text, at);
  found.name = at;
  found.type = text[colon] == ':' ? skip_spaces(text, colon + 1) : at;
  found.dims = after_word(text, found.type);
  found.what = kind_of(text, found.type, found.dims, end);
  found.unknown = output && has_unknown(text, found.dims);
  int equals = found.type;
  while (equals < end && text[equals] != '=') equals = next_character(text, equals);
  found.optional = equals < end && is_word(text, skip_spaces(text, equals + 1), "None");
  return found;
}

constexpr int begin_of_parameters(const char *text) {
  const int at = skip_spaces(text, after_word(text, skip_spaces(text, 0)) + 1);
  return text[at] == ')' ? -1 : at;
}

constexpr int end_of_parameters(const char *text) {
  return end_of_parts(text, after_word(text, skip_spaces(text, 0)) + 1);
}

/** The start of the first output, after "->" and the bracket of several; -1: there is none. */
constexpr int begin_of_outputs(const char *text) {
  int at = end_of_parameters(text);
  if (!text[at]) return -1;
  at = skip_spaces(text, at + 1);
  if (text[at] != '-') return -1;
  at = skip_spaces(text, at + 2);
  return text[at] == '(' ? skip_spaces(text, at + 1) : at;
}

/** Calls visit(item) for each parameter, then each output, until it returns true. Only here,
 * tensors, scalars and outputs are counted. */
template <class Visit> constexpr void visit_parts(const char *text, Visit visit) {
  int n_arrays = 0, n_others = 0, n_outputs = 0;
  for (int at = begin_of_parameters(text); at >= 0; at = next_part(text, end_of_part(text, at))) {
    item part = read_part(text, at, false);
    part.index = part.what == kind::array ? n_arrays++ : n_others++;
    if (visit(part)) return;
  }
  int at = begin_of_outputs(text);
  if (at < 0) return;
  /* After one output without brackets, commas separate clauses. */
  const bool bracketed = text[end_of_parts(text, at)] == ')';
  for (; at >= 0; at = bracketed ? next_part(text, end_of_part(text, at)) : -1) {
    item part = read_part(text, at, true);
    part.index = n_outputs++;
    if (visit(part)) return;
  }
}

/* ---- Names ---------------------------------------------------------------------------------- */

/** The parameter or output of a name; `out` is an output that has none. */
constexpr item find_part(const char *text, const char *name) {
  item found;
  visit_parts(text, [&](const item &part) {
    const bool named = part.name != part.type;
    if (named ? !is_word(text, part.name, name) : !is_word("out", 0, name)) return false;
    found = part;
    return true;
  });
  return found;
}

/** The first dimension, or group, of a name that is on its own in an array whose size is known. */
constexpr item find_size(const char *text, const char *name) {
  item found;
  visit_parts(text, [&](const item &part) {
    if (part.what != kind::array || part.optional || part.unknown) return false;
    int n[2] = {0, 0}, groups[2] = {0, 0}; /* dimensions and groups before and after it */
    bool seen = false, is_group = false;
    for (int at = skip_spaces(text, part.dims + 1); at >= 0 && text[at] != ']';
         at = next_part(text, end_of_part(text, at))) {
      const bool group = text[at] == '*' || text[at] == '.';
      const int word = text[at] == '*' ? at + 1 : at;
      if (!seen && is_of_word(text[word]) && is_word(text, word, name) &&
          after_word(text, word) == end_of_part(text, at)) {
        seen = true;
        is_group = group;
      } else {
        (group ? groups : n)[seen]++;
      }
    }
    if (!seen || (groups[0] && (is_group || groups[1])) || (is_group && groups[1])) return false;
    found = part;
    found.what = is_group ? kind::sizes : kind::size;
    found.first = groups[0] ? -1 - n[1] : n[0];
    found.beside = n[0] + n[1];
    return true;
  });
  return found;
}

/** The meaning of a name of a signature: a parameter, an output or a dimension. */
constexpr item find(const char *text, const char *name) {
  const item part = find_part(text, name);
  return part.what != kind::none ? part : find_size(text, name);
}

/** The first array that always has the dtype of a type variable: a parameter, else an output; else
 * the first list of arrays with it. */
constexpr item find_dtype(const char *text, const char *name, int there) {
  item found, in_list;
  visit_parts(text, [&](const item &part) {
    if (part.optional || !is_word(text, part.type, name, there)) return false;
    if (part.what == kind::arrays && in_list.what == kind::none) in_list = part;
    if (part.what == kind::array) found = part;
    return part.what == kind::array;
  });
  return found.what == kind::none ? in_list : found;
}

/** Where `where` binds a type variable, after the colon; -1: nowhere. */
constexpr int bound_at(const char *text, const char *name, int there) {
  int at = end_of_parameters(text);
  while (text[at] && (is_of_word(text[at]) || !is_where(text, at + 1))) at++;
  if (!text[at]) return -1;
  for (at = after_word(text, at + 1); at >= 0; at = next_part(text, end_of_part(text, at))) {
    const int colon = after_word(text, at);
    if (text[colon] == ':' && is_word(text, at, name, there)) return colon + 1;
  }
  return -1;
}

/** The dtypes that a type variable allows; 0: it is not bound. */
constexpr uint64_t dtypes_of(const char *text, const char *name, int there) {
  uint64_t dtypes = 0;
  for (int at = bound_at(text, name, there); at >= 0; at = after_bar(text, at))
    dtypes |= dtypes_at(text, skip_spaces(text, at));
  return dtypes;
}

/** 1 for an output; a dimension that occurs in one does not count as an output. */
constexpr int is_output(const item &found) {
  return found.output && found.what != kind::size && found.what != kind::sizes;
}

/** Those that an entry lists: a handle is set by a function. */
constexpr int n_outputs_of(const char *text) {
  int n = 0;
  visit_parts(text, [&n](const item &part) {
    n += part.output && part.what != kind::handle;
    return false;
  });
  return n;
}

/* ---- Lists of words, as "(T, I)", and choices ------------------------------------------------ */

/** The start of word number k of a list "(a, b)"; -1: it has fewer. */
constexpr int word_of_list(const char *list, int k) {
  int at = skip_spaces(list, 1);
  if (list[at] == ')') return -1;
  for (; at >= 0 && k > 0; k--) at = next_part(list, after_word(list, at));
  return at;
}

constexpr int n_words(const char *list) {
  int n = 0;
  while (word_of_list(list, n) >= 0) n++;
  return n;
}

/** The number of the word of a text in a list; -1: it is not there. */
constexpr int number_in_list(const char *list, const char *text, int at) {
  for (int k = 0; word_of_list(list, k) >= 0; k++)
    if (is_word(list, word_of_list(list, k), text, at)) return k;
  return -1;
}

/** The number of a choice, from 0; -1: it is not among them. */
constexpr int number_of_choice(const char *text, int at, const char *choice) {
  for (int number = 0;; number++) {
    const char quote = text[at++];
    int k = 0;
    while (choice[k] && text[at + k] == choice[k]) k++;
    if (!choice[k] && text[at + k] == quote) return number;
    while (text[at] && text[at] != quote) at++;
    at = skip_spaces(text, at + 1);
    if (text[at] != '|') return -1;
    at = skip_spaces(text, at + 1);
  }
}

} // namespace cuplug

#endif
