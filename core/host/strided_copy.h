/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements at equal distances, along one dimension or two. */
#ifndef CUPLUG_CORE_HOST_STRIDED_COPY_H
#define CUPLUG_CORE_HOST_STRIDED_COPY_H

#include <stdint.h>

#define CUPLUG__LINE 64 /* bytes */

/* Copies n elements of `bytes` bytes. Steps are in bytes; a from_step of 0 repeats one element. */
void cuplug__move(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n,
                  int64_t bytes);

/* Blocks along each side of the squares that are transposed in registers; 0: none are. */
int64_t cuplug__square_side(int64_t block);

/* n_rows x n_blocks blocks of 1, 2, 4, 8 or 16 bytes, which become contiguous in rows. For
 * transposed arrays: a row's blocks are far apart, and blocks next to them belong to other rows. */
void cuplug__move_tiles(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                        int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block);

#endif
