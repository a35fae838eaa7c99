/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed arrays: a row's blocks lie far apart, and the blocks next to them belong to the next
 * rows. */
#ifndef CUPLUG_CORE_HOST_TILES_H
#define CUPLUG_CORE_HOST_TILES_H

#include <stdint.h>

#define CUPLUG__LINE 64 /* bytes */

/* Blocks of each side of the squares that are transposed in registers; 0: there are none. */
int64_t cuplug__square_side(int64_t block);

/* n_rows x n_blocks blocks of 1, 2, 4, 8 or 16 bytes, which come to lie together in rows. */
void cuplug__copy_tiles(char *to, int64_t to_stride, const char *from, int64_t row_stride,
                        int64_t stride, int64_t n_rows, int64_t n_blocks, int64_t block);

#endif
