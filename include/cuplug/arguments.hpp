/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ types of the names of a signature in entries. Part of <cuplug/plugin.hpp>.
 *
 *     x: T[n]           array<const T>    inout x: T[n], outputs   array<T>
 *     host x: T[n]      host_array<const T>   inout host x: T[n]   host_array<T>
 *     xs: T[n][]        arrays<const T>   inout xs: T[n][each]     arrays<T>
 *     k: int[]          list<int64_t>     outputs with `?`         output<T, rank>
 *     a: float32        float             a: int = None            optional<int64_t>
 *     mode: "a" | "b"   choice            s: str                   const char *
 *     to: dtype         uint32_t, CUPLUG_FLOAT32 ...
 *     n, *rows          int64_t, sizes, of arrays that are in no list
 *     plan: handle[plan]   handle
 *
 * All are small and passed by value. An array contains its address and its size, so that loops over
 * it need no local copies of them. */
#ifndef CUPLUG_ARGUMENTS_HPP
#define CUPLUG_ARGUMENTS_HPP

#include <cuplug/signature.hpp>
#include <type_traits>

struct __half; /* users include <cuda_fp16.h>, <cuda_bf16.h>, <cuda_fp8.h> */
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;

namespace cuplug {

template <class T> struct complex { T real, imag; };

constexpr uint32_t dtype_ids[] = {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) CUPLUG_##NAME,
    CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

/** An element of a dtype that has no type in C++: its bytes. A packed pair has the first of its two
 * in the low bits. */
template <int place> struct opaque {
  static constexpr size_t n_bytes =
      ((dtype_ids[place] >> 16 & 255) * (dtype_ids[place] & 65535) + 7) / 8;
  alignas(n_bytes) unsigned char bytes[n_bytes];
};

/** The C++ type of a dtype by its place in the list, as elements of arrays and as a scalar. */
template <int place> struct dtype {
  using element = opaque<place>;
  static constexpr uint32_t id = dtype_ids[place];
  static float read(const cuplug_scalar &from) { return (float)from.f; }
};
template <> struct dtype<-1> { using element = void; };
template <class Element> struct dtype_of : dtype<-1> {};
template <int place> struct dtype_of<opaque<place>> : dtype<place> {};
constexpr bool is_variable(dtype<-1>) { return true; }
template <int place> constexpr bool is_variable(dtype<place>) { return false; }
#define CUPLUG__DTYPE(NAME, E, S, member)                       \
  template <> struct dtype<CUPLUG__PLACE_OF_##NAME> {           \
    using element = E;                                          \
    static constexpr uint32_t id = CUPLUG_##NAME;               \
    static S read(const cuplug_scalar &from) { return member; } \
  };                                                            \
  template <> struct dtype_of<E> : dtype<CUPLUG__PLACE_OF_##NAME> {};
CUPLUG__DTYPE(BOOL, bool, bool, from.i != 0)
CUPLUG__DTYPE(INT8, int8_t, int8_t, (int8_t)from.i)
CUPLUG__DTYPE(INT16, int16_t, int16_t, (int16_t)from.i)
CUPLUG__DTYPE(INT32, int32_t, int32_t, (int32_t)from.i)
CUPLUG__DTYPE(INT64, int64_t, int64_t, from.i)
CUPLUG__DTYPE(UINT8, uint8_t, uint8_t, (uint8_t)from.u)
CUPLUG__DTYPE(UINT16, uint16_t, uint16_t, (uint16_t)from.u)
CUPLUG__DTYPE(UINT32, uint32_t, uint32_t, (uint32_t)from.u)
CUPLUG__DTYPE(UINT64, uint64_t, uint64_t, from.u)
CUPLUG__DTYPE(FLOAT16, __half, float, (float)from.f)
CUPLUG__DTYPE(BFLOAT16, __nv_bfloat16, float, (float)from.f)
CUPLUG__DTYPE(FLOAT32, float, float, (float)from.f)
CUPLUG__DTYPE(FLOAT64, double, double, from.f)
CUPLUG__DTYPE(COMPLEX64, complex<float>, complex<float>,
              (complex<float>{(float)from.c[0], (float)from.c[1]}))
CUPLUG__DTYPE(COMPLEX128, complex<double>, complex<double>, (complex<double>{from.c[0], from.c[1]}))
CUPLUG__DTYPE(FLOAT8_E4M3FN, __nv_fp8_e4m3, float, (float)from.f)
CUPLUG__DTYPE(FLOAT8_E5M2, __nv_fp8_e5m2, float, (float)from.f)
#undef CUPLUG__DTYPE

/** `const U` where T is const. */
template <class T, class U>
using as_const_as = std::conditional_t<std::is_const<T>::value, const U, U>;

/* ---- Arrays --------------------------------------------------------------------------------- */

template <class T> struct elements {};
template <> struct elements<void> {
  template <class Index> int &operator[](Index) const {
    static_assert(sizeof(Index) == 0, "elements of a type variable, which the entry lists, too, in "
                                      "parentheses before the names");
    static int none;
    return none;
  }
};
template <> struct elements<const void> : elements<void> {};

/** An array; T is void if the entry does not name its dtype. It converts to its address: x[i], and
 * an argument of kernels. An omitted one is false, and its size is 0. */
template <class T> class array : public elements<T> {
public:
  array(const cuplug_call *call, const cuplug_tensor *tensor)
      : data_(static_cast<T *>(tensor->data)), size_(cuplug_n_elements(tensor)), tensor_(tensor),
        tensors_(call->tensors) {}
  /* An item of a list: `tensors` is nullptr if it is not among the call's tensors. */
  array(const cuplug_tensor *tensors, const cuplug_tensor *tensor)
      : data_(static_cast<T *>(tensor->data)), size_(cuplug_n_elements(tensor)), tensor_(tensor),
        tensors_(tensors) {}

  T *data() const { return data_; }
  operator T *() const { return data_; }
  explicit operator bool() const { return tensor_->ndim >= 0; }
  int64_t size() const { return size_; } /* elements */
  T *begin() const { return data_; }
  T *end() const { return data_ + size_; }

  int ndim() const { return tensor_->ndim; }
  const int64_t *shape() const { return tensor_->shape; }
  int64_t shape(int k) const { return tensor_->shape[k < 0 ? tensor_->ndim + k : k]; }
  /** In elements; not in C order if the signature has CUPLUG_TAKES_STRIDES. */
  int64_t stride(int k) const {
    const int at = k < 0 ? tensor_->ndim + k : k;
    if (tensor_->strides) return tensor_->strides[at];
    int64_t stride = 1;
    for (int d = tensor_->ndim - 1; d > at; d--) stride *= tensor_->shape[d];
    return stride;
  }
  /** True if its elements are contiguous in C order, as for `strides` NULL. */
  bool is_contiguous() const {
    int64_t expected = 1;
    if (!tensor_->strides || !size_) return true;
    for (int d = tensor_->ndim - 1; d >= 0; expected *= tensor_->shape[d--])
      if (tensor_->shape[d] != 1 && tensor_->strides[d] != expected) return false;
    return true;
  }

  uint32_t type() const { return cuplug_type(tensor_); } /* CUPLUG_FLOAT32 ... */
  int64_t element_bytes() const { return cuplug_element_bytes(tensor_); }
  /** The address as another type of elements: 16 bits of __half, float2 of complex<float>. */
  template <class U> as_const_as<T, U> *as() const {
    return reinterpret_cast<as_const_as<T, U> *>(data_);
  }
  /* For cuplug_fault_index. */
  uint32_t number() const { return tensors_ ? (uint32_t)(tensor_ - tensors_) : UINT32_MAX; }

protected:
  T *data_;
  int64_t size_;
  const cuplug_tensor *tensor_, *tensors_;
};

/** An array in host memory, which kernels cannot read: it cannot be passed to a launch. */
template <class T> class host_array : public array<T> {
public:
  explicit host_array(const array<T> &x) : array<T>(x) {}
  operator T *() const = delete;
  template <class Index> auto &operator[](Index k) const { return this->data_[k]; }
};

/** An output with dimensions `?`: it has no memory until the entry sets its sizes. Rank is -1 if it
 * has groups of dimensions. */
template <class T, int rank> class output : public array<T> {
public:
  output(const cuplug_call *call, const cuplug_tensor *tensor)
      : array<T>(call, tensor), call_(call) {}

  /* All sizes, those with a name included. Returns CUPLUG_OK, or an error that the entry returns.
   */
  template <class... Sizes> CUPLUG__MUST_USE int allocate(Sizes... sizes) {
    static_assert(rank < 0 || sizeof...(sizes) == rank,
                  "allocate: expected a size for each dimension of the output");
    const int64_t shape[] = {static_cast<int64_t>(sizes)...};
    return allocate_shape(shape);
  }
  CUPLUG__MUST_USE int allocate_shape(const int64_t *shape) {
    const int status = cuplug_output(call_, this->number(), shape);
    if (!status) static_cast<array<T> &>(*this) = array<T>(call_, this->tensor_);
    return status;
  }

private:
  const cuplug_call *call_;
};

/* ---- Lists, sizes, None, choices ------------------------------------------------------------- */

template <class T> class list {
public:
  explicit list(const cuplug_items &items)
      : items_(static_cast<const T *>(items.items)), n_(items.n) {}
  int64_t size() const { return n_; }
  const T &operator[](int64_t k) const { return items_[k]; }
  const T *begin() const { return items_; }
  const T *end() const { return items_ + n_; }

private:
  const T *items_;
  int64_t n_;
};

template <class T> class arrays {
public:
  arrays(const cuplug_call *call, const cuplug_items &items)
      : items_(items), tensors_(is_among(call, items.items) ? call->tensors : nullptr) {}
  static bool is_among(const cuplug_call *call, const void *items) {
    const uintptr_t first = (uintptr_t)call->tensors, at = (uintptr_t)items;
    return at >= first && at < first + call->n_tensors * sizeof(cuplug_tensor);
  }
  int64_t size() const { return items_.n; }
  array<T> operator[](int64_t k) const {
    return array<T>(tensors_, static_cast<const cuplug_tensor *>(items_.items) + k);
  }

private:
  cuplug_items items_;
  const cuplug_tensor *tensors_; /* nullptr: the items are not among them */
};

/** The sizes of a group of dimensions. */
class sizes : public list<int64_t> {
public:
  sizes(const int64_t *first, int n) : list(cuplug_items{first, n}) {}
  int ndim() const { return (int)size(); }
  int64_t product() const {
    uint64_t n = 1; /* unsigned, as in cuplug_n_elements */
    for (int64_t size : *this) n *= (uint64_t)size;
    return (int64_t)n;
  }
};

/** A parameter whose default is None: false, or a value. */
template <class T> class optional {
public:
  optional(bool is_there, T value) : value_(value), is_there_(is_there) {}
  explicit operator bool() const { return is_there_; }
  const T &operator*() const { return value_; }
  const T *operator->() const { return &value_; }
  T value_or(T other) const { return is_there_ ? value_ : other; }

private:
  T value_;
  bool is_there_;
};

/** The value that an entry passed to call.set_handle: converts to a pointer of its type. */
class handle {
public:
  explicit handle(void *pointer) : pointer_(pointer) {}
  template <class T> operator T *() const { return static_cast<T *>(pointer_); }
  template <class T> T *as() const { return static_cast<T *>(pointer_); }

private:
  void *pointer_;
};

/** One of several strings, as its number: `mode == CUPLUG_CHOICE(mode, "wrap")`, and in a switch
 * `case CUPLUG_CHOICE(mode, "wrap"):`. Name: the parameter's name. */
template <class Name> class choice {
public:
  explicit choice(int64_t number) : number_((int)number) {}
  operator int() const { return number_; }
  static constexpr int number_of(const char *text) {
    return number_of_choice(Name::text(), Name::found.type, text);
  }

private:
  int number_;
};

template <int number> struct known_choice {
  static_assert(number >= 0, "this is none of the strings that the signature allows");
  static constexpr int value = number;
};
#define CUPLUG_CHOICE(parameter, text) \
  cuplug::known_choice<std::decay_t<decltype(parameter)>::number_of(text)>::value

/* ---- From a name to its argument ------------------------------------------------------------- */

template <int k, class... T> struct nth { using type = void; };
template <class First, class... T> struct nth<0, First, T...> { using type = First; };
template <int k, class First, class... T> struct nth<k, First, T...> : nth<k - 1, T...> {};

/* The dtype of a name: its own, or that of a type variable of the entry. */
template <class Name, class... Types> constexpr auto dtype_of_name() {
  constexpr int k = number_in_list(Name::type_names(), Name::text(), Name::found.type);
  if constexpr (k >= 0)
    return dtype_of<typename nth<k, Types...>::type>();
  else
    return dtype<dtype_at(Name::text(), Name::found.type)>();
}

template <class Name, class Value> auto as_maybe(const cuplug_call *call, Value value) {
  if constexpr (Name::found.optional)
    return optional<Value>(!(call->none_mask >> Name::found.index & 1), value);
  else
    return value;
}

struct unknown {}; /* the result after a failed static_assert */

template <class Name, class T>
using element_of = std::conditional_t<Name::found.writable, T, const T>;

template <class Name, class Dtype> auto get_array(const cuplug_call *call) {
  constexpr item found = Name::found;
  using T = element_of<Name, typename Dtype::element>;
  const cuplug_tensor *tensor = (found.output ? call->outputs : call->tensors) + found.index;
  if constexpr (found.unknown)
    return output<T, rank_at(Name::text(), found.dims)>(call, tensor);
  else if constexpr (found.on_host)
    return host_array<T>(array<T>(call, tensor));
  else
    return array<T>(call, tensor);
}

template <class Name, class Dtype> auto get_scalar(const cuplug_call *call) {
  constexpr item found = Name::found;
  const cuplug_scalar &scalar = call->scalars[found.index];
  if constexpr (found.what == kind::string)
    return as_maybe<Name>(call, scalar.s);
  else if constexpr (found.what == kind::choice)
    return as_maybe<Name>(call, choice<Name>(scalar.i));
  else if constexpr (found.what == kind::dtype)
    return (uint32_t)scalar.dtype.code << 24 | (uint32_t)scalar.dtype.bits << 16 |
           scalar.dtype.lanes;
  else if constexpr (found.what == kind::handle)
    return as_maybe<Name>(call, handle(scalar.handle));
  else if constexpr (found.what == kind::integers)
    return as_maybe<Name>(call, list<int64_t>(scalar.list));
  else if constexpr (found.what == kind::floats)
    return as_maybe<Name>(call, list<double>(scalar.list));
  else if constexpr (found.what == kind::arrays)
    return as_maybe<Name>(call,
                          arrays<element_of<Name, typename Dtype::element>>(call, scalar.list));
  else if constexpr (is_variable(Dtype())) {
    static_assert(!is_variable(Dtype()), "a scalar of a type variable, which the entry lists, too, "
                                         "in parentheses before the names");
    return unknown();
  } else
    return as_maybe<Name>(call, Dtype::read(scalar));
}

template <class Name> auto get_sizes(const cuplug_call *call) {
  constexpr item found = Name::found;
  const cuplug_tensor &tensor = (found.output ? call->outputs : call->tensors)[found.index];
  if constexpr (found.what == kind::sizes)
    return sizes(tensor.shape + found.first, tensor.ndim - found.beside);
  else
    return tensor.shape[found.first < 0 ? tensor.ndim + found.first : found.first];
}

/* The argument for a name of the signature. */
template <class Name, class... Types> auto get(const cuplug_call *call) {
  using Dtype = decltype(dtype_of_name<Name, Types...>());
  constexpr kind what = Name::found.what;
  if constexpr (what == kind::none)
    return unknown();
  else if constexpr (what == kind::array)
    return get_array<Name, Dtype>(call);
  else if constexpr (what == kind::size || what == kind::sizes)
    return get_sizes<Name>(call);
  else
    return get_scalar<Name, Dtype>(call);
}

template <class Name, class... Types> struct argument_of {
  using type = decltype(get<Name, Types...>(nullptr));
};
template <class Name, class... Types> using argument = typename argument_of<Name, Types...>::type;

} // namespace cuplug

#endif
