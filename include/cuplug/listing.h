/* SPDX-License-Identifier: Apache-2.0 */
/* The host API of tables and of the search path. Part of <cuplug/host.h>, which includes it. */
#ifndef CUPLUG_LISTING_H
#define CUPLUG_LISTING_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* ---- Tables -------------------------------------------------------------------------------- */

/* What a row's flags say: the properties of plugin.h that calls depend on. */
#define CUPLUG_ROW_TAKES_STRIDES 1u
#define CUPLUG_ROW_PREFERS_CUDA 2u
#define CUPLUG_ROW_NEVER_WAITS 4u
#define CUPLUG_ROW_KEEPS_WHOLE 8u

/* One row of a symbol table: one operator, or one overload of it. The strings are parts of `text`
 * and live as long as the row; "" for what the plugin does not say. */
struct cuplug_row {
  const char *signature; /* begins with the operator's name */
  const char *doc;
  const char *host_entry; /* symbol; "": no entry on that side */
  const char *cuda_entry;
  const char *text; /* all of the note: zero-terminated "key=value", one behind the other */
  uint32_t text_bytes;
  uint32_t flags; /* CUPLUG_ROW_TAKES_STRIDES ... */
};

/* What a row says of a key, such as "gradient": its value, "" for one without a value, NULL where
 * it says nothing. [thread-safe] [no-cuda] */
CUPLUG_API const char *cuplug_row_property(const cuplug_row *row, const char *key);

/* ---- Discovery ----------------------------------------------------------------------------- */

typedef enum cuplug_origin {
  CUPLUG_ORIGIN_CUPLUG_PATH,  /* LD_LIBRARY_CUPLUG_PATH */
  CUPLUG_ORIGIN_LIBRARY_PATH, /* LD_LIBRARY_PATH */
  CUPLUG_ORIGIN_USER,         /* $XDG_DATA_HOME/cuplug/plugins or ~/.local/share/cuplug/plugins */
  CUPLUG_ORIGIN_SYSTEM,       /* /usr/local/lib/cuplug, /usr/lib/cuplug */
  CUPLUG_ORIGIN_ADDED,        /* cuplug_add_directory */
  CUPLUG_ORIGIN_STOCK,        /* the folder `cuplug` beside libcuplug.so */
  CUPLUG_ORIGIN_LOADED        /* a file given to cuplug_load */
} cuplug_origin;

typedef enum cuplug_state {
  CUPLUG_STATE_OK,
  CUPLUG_STATE_SHADOWED,  /* an earlier directory has a plugin of that name: see `reason` */
  CUPLUG_STATE_DUPLICATE, /* the same file (device, inode) as an earlier one */
  CUPLUG_STATE_REJECTED,  /* see `reason` */
  CUPLUG_STATE_CHANGED,   /* loaded, and since replaced on disk */
  CUPLUG_STATE_NO_PLUGIN, /* a library without a symbol table */
  CUPLUG_STATE_MISSING    /* a directory that does not exist */
} cuplug_state;

/* A place on the search path. */
typedef struct cuplug_directory {
  char *path;
  char *reason; /* why it is not used; NULL when it is */
  int32_t origin;
  int32_t state; /* OK, MISSING, REJECTED or DUPLICATE */
} cuplug_directory;

/* A file `lib*.so` in one of those directories, with what its table says. */
typedef struct cuplug_file {
  char *path;
  char *reason; /* NULL for CUPLUG_STATE_OK */
  int32_t state;
  int32_t origin;
  int32_t loaded; /* 1: its code is in the process */
  uint32_t n_rows;
  uint32_t abi_version;
  const char *name; /* of the plugin; "" where it could not be read, like the next two */
  const char *version;
  const char *architectures; /* "750,900" for 7.5 and 9.0 */
  cuplug_row *rows;          /* n_rows of them */
  void *notes;               /* the core's own */
} cuplug_file;

/* A snapshot; free it with cuplug_free_listing. */
typedef struct cuplug_listing {
  cuplug_directory *directories;
  size_t n_directories;
  cuplug_file *files; /* in search order: the first of a name is the one that is used */
  size_t n_files;
} cuplug_listing;

/* Lists the search path and, with `with_files`, every candidate in it. Runs no plugin code. One bad
 * file never fails the listing. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error);
CUPLUG_API void cuplug_free_listing(cuplug_listing *listing);

/* Reads the table of one file with all checks, without running it. `file` is to be given to
 * cuplug_free_file, also after an error, when it says what could be read. [thread-safe] [no-cuda]
 */
CUPLUG_API int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error);

/* Whether a file may be used by the rules for plugins: a regular file that nobody else may write,
 * on the allow-list where there is one. ERROR_PLUGIN: the reason; ERROR_NOT_FOUND: no such file.
 * Messages do not name the file. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_check_trust(const char *path, cuplug_error *error);
CUPLUG_API void cuplug_free_file(cuplug_file *file);

/* Appends a directory to the search path, before the stock plugins. Once for each path.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_add_directory(const char *path, cuplug_error *error);

CUPLUG__END_C
#endif
