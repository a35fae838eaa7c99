/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory in a layout for 2D and 3D locality, which kernels read through texture functions and
 * write through surface functions. Not installed. */
#ifndef CUPLUG_RUNTIME_TEXTURES_H
#define CUPLUG_RUNTIME_TEXTURES_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* The driver's numbers: addressing 0 wraps, 1 clamps, 2 mirrors, 3 has a border of zeros. */
typedef struct cuplug_texture_form {
  uint64_t sizes[3]; /* width, height, depth; 0: no such dimension */
  uint64_t texel_bytes;
  int32_t format;      /* format of a channel: CUarray_format */
  uint32_t n_channels; /* 1, 2 or 4 */
  int32_t addressing;
  int32_t is_linear;
  int32_t is_normalized;  /* coordinates from 0 to 1 */
  int32_t keeps_integers; /* they are not read as floats from 0 to 1, or -1 to 1 */
} cuplug_texture_form;

/* The created objects; kernels receive the handles. */
typedef struct cuplug_texture {
  void *array;
  uint64_t reader, writer; /* cudaTextureObject_t, cudaSurfaceObject_t */
} cuplug_texture;

/* [thread-safe] */
CUPLUG_API int cuplug_make_texture(int32_t device, const cuplug_texture_form *form,
                                   cuplug_texture *texture, cuplug_error *error);
/* Waits for the GPU. If that fails, for example during a graph capture, the memory stays allocated.
 * [thread-safe] [syncs] */
CUPLUG_API int cuplug_free_texture(int32_t device, const cuplug_texture *texture,
                                   cuplug_error *error);

/* Copies all texels from memory of the same GPU, in C order, or to it. [thread-safe]
 * [stream-ordered] */
CUPLUG_API int cuplug_copy_texture(int32_t device, const cuplug_texture *texture,
                                   const cuplug_texture_form *form, void *memory, int is_out,
                                   void *stream, cuplug_error *error);

CUPLUG__END_C
#endif
