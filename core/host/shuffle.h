/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of what others hold. */
#ifndef CUPLUG_CORE_HOST_SHUFFLE_H
#define CUPLUG_CORE_HOST_SHUFFLE_H

/* The elements of a and b, one behind the other, at these places, as a vector of the same type. */
#ifdef __clang__
#define CUPLUG__SHUFFLE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CUPLUG__SHUFFLE(T, a, b, ...) __builtin_shuffle(a, b, (T){__VA_ARGS__})
#endif

#endif
