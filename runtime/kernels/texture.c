/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces: CUDA's arrays, and the objects that kernels receive. */
#include "base/core.h"
#include "kernels/driver.h"

#include <runtime/textures.h>
#include <string.h>

/* The size in dimension d. GPUs read a line as a plane of one row, and would mix it with its
 * neighbors. */
static int32_t addressing_of(const cuplug_texture_form *form, int d) {
  return form->sizes[d] ? form->addressing : CUPLUG__ADDRESS_CLAMP;
}

static int make_objects(const cuplug_texture_form *form, cuplug_texture *texture) {
  const uint32_t as_integers = form->keeps_integers ? CUPLUG__READ_AS_INTEGER : 0;
  const cuplug__resource resource = {.type = CUPLUG__RESOURCE_ARRAY, .of.array = texture->array};
  const cuplug__sampler sampler = {
      .addressing = {addressing_of(form, 0), addressing_of(form, 1), addressing_of(form, 2)},
      .filter = form->is_linear,
      .flags = as_integers | (form->is_normalized ? CUPLUG__NORMALIZED : 0),
  };
  CUtexObject reader = 0;
  CUsurfObject writer = 0;
  int code = (int)cuplug__kernel_driver()->cuTexObjectCreate(&reader, &resource, &sampler, NULL);
  if (!code) code = (int)cuplug__kernel_driver()->cuSurfObjectCreate(&writer, &resource);
  texture->reader = reader;
  texture->writer = writer;
  return code;
}

static void destroy(const cuplug_texture *texture) {
  if (texture->writer) cuplug__kernel_driver()->cuSurfObjectDestroy(texture->writer);
  if (texture->reader) cuplug__kernel_driver()->cuTexObjectDestroy(texture->reader);
  if (texture->array) cuplug__kernel_driver()->cuArrayDestroy(texture->array);
}

int cuplug_make_texture(int32_t device, const cuplug_texture_form *form, cuplug_texture *texture,
                        cuplug_error *error) {
  memset(texture, 0, sizeof *texture);
  ENTER_OR_RETURN(device, error);
  RELAXED mode = core->capture_allow_unsafe();
  const cuplug__texels texels = {
      .width = form->sizes[0],
      .height = form->sizes[1],
      .depth = form->sizes[2],
      .format = form->format,
      .n_channels = form->n_channels,
      .flags = CUPLUG__ARRAY_SURFACE,
  };
  CUarray array = NULL;
  if (!cuplug__kernel_driver()->cuArray3DCreate)
    return core->fail(error, CUPLUG_ERROR_CUDA, "the driver has no textures");
  int code = (int)cuplug__kernel_driver()->cuArray3DCreate(&array, &texels);
  texture->array = array;
  if (!code) code = make_objects(form, texture);
  if (code) destroy(texture);
  return core->cuda_check(error, code, "making a texture");
}

int cuplug_free_texture(int32_t device, const cuplug_texture *texture, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  RELAXED mode = core->capture_allow_unsafe();
  int code = (int)core->driver->cuCtxSynchronize();
  if (!code) destroy(texture);
  return core->cuda_check(error, code, "freeing a texture");
}

int cuplug_copy_texture(int32_t device, const cuplug_texture *texture,
                        const cuplug_texture_form *form, void *memory, int is_out, void *stream,
                        cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  const uint64_t *sizes = form->sizes;
  const size_t height = sizes[1] ? sizes[1] : 1, row_bytes = sizes[0] * form->texel_bytes;
  const cuplug__copy_end linear = {.memory_type = CUPLUG__COPY_DEVICE,
                                   .device = (uintptr_t)memory,
                                   .pitch_bytes = row_bytes,
                                   .height = height},
                         texels = {.memory_type = CUPLUG__COPY_ARRAY, .array = texture->array};
  const cuplug__copy_3d copy = {.from = is_out ? texels : linear,
                                .to = is_out ? linear : texels,
                                .width_bytes = row_bytes,
                                .height = height,
                                .depth = sizes[2] ? sizes[2] : 1};
  return core->cuda_check(error, (int)cuplug__kernel_driver()->cuMemcpy3DAsync(&copy, stream),
                          "copying a texture");
}
