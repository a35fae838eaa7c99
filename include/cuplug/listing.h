/* SPDX-License-Identifier: Apache-2.0 */
/* The host API of the search path and of the files on it. Part of <cuplug/host.h>, which includes
 * it. */
#ifndef CUPLUG_LISTING_H
#define CUPLUG_LISTING_H

#include <cuplug/operators.h>

CUPLUG__BEGIN_C

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
  CUPLUG_STATE_SHADOWED,  /* an earlier directory has a plugin of that name: see the reason */
  CUPLUG_STATE_DUPLICATE, /* the same file (device, inode) as an earlier one */
  CUPLUG_STATE_REJECTED,  /* see the reason */
  CUPLUG_STATE_CHANGED,   /* loaded, and since replaced on disk */
  CUPLUG_STATE_NO_PLUGIN, /* a library without a symbol table */
  CUPLUG_STATE_MISSING    /* a directory that does not exist */
} cuplug_state;

/** Appends a directory, an absolute path, to the search path, before the stock plugins. Once for
 * each path. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_add_directory(const char *path, cuplug_error *error);

/** Whether a file may be used by the rules for plugins: a regular file that nobody else may write,
 * on the allow-list where there is one. ERROR_PLUGIN: the reason; ERROR_NOT_FOUND: no such file.
 * Messages do not name the file. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_check_trust(const char *path, cuplug_error *error);

/* ---- Listings ------------------------------------------------------------------------------ */

typedef struct cuplug_listing cuplug_listing;
/** A place on the search path. */
typedef struct cuplug_directory cuplug_directory;
/** A file `lib*.so` in one of those directories, with what its table says. */
typedef struct cuplug_file cuplug_file;

/** Takes a snapshot of the search path and, with `with_files`, of every candidate in it; to be
 * given to cuplug_free_listing. Runs no plugin code. One bad file never fails the listing.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error);
/** NULL is taken. [thread-safe], once nobody uses it any more; [no-cuda] */
CUPLUG_API void cuplug_free_listing(cuplug_listing *listing);

/** Reads the table of one file with all checks, without running it. `file` is to be given to
 * cuplug_free_file, also after an error, when it says what could be read. [thread-safe] [no-cuda]
 */
CUPLUG_API int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error);
/** Of cuplug_inspect, not of a listing; NULL is taken. [thread-safe], once nobody uses it any more;
 * [no-cuda] */
CUPLUG_API void cuplug_free_file(cuplug_file *file);

/* The functions below tell what stands in a snapshot. What they return lives as long as that.
 * [thread-safe] [no-cuda] */

/** Directories and files in search order: of files with one name, the first is used. Numbers count
 * from 0; NULL past the last. */
CUPLUG_API size_t cuplug_listing_n_directories(const cuplug_listing *listing);
CUPLUG_API const cuplug_directory *cuplug_listing_directory(const cuplug_listing *listing,
                                                            size_t k);
CUPLUG_API size_t cuplug_listing_n_files(const cuplug_listing *listing);
CUPLUG_API const cuplug_file *cuplug_listing_file(const cuplug_listing *listing, size_t k);

CUPLUG_API const char *cuplug_directory_path(const cuplug_directory *directory);
CUPLUG_API int32_t cuplug_directory_origin(const cuplug_directory *directory); /* a cuplug_origin */
/** A cuplug_state: OK, MISSING, REJECTED or DUPLICATE; and why it is not used, "" for OK. */
CUPLUG_API int32_t cuplug_directory_state(const cuplug_directory *directory);
CUPLUG_API const char *cuplug_directory_reason(const cuplug_directory *directory);

CUPLUG_API const char *cuplug_file_path(const cuplug_file *file);
CUPLUG_API int32_t cuplug_file_origin(const cuplug_file *file); /* a cuplug_origin */
/** A cuplug_state; and why it is not OK, "" for OK. */
CUPLUG_API int32_t cuplug_file_state(const cuplug_file *file);
CUPLUG_API const char *cuplug_file_reason(const cuplug_file *file);
/** 1 when its code is in the process. */
CUPLUG_API int cuplug_file_is_loaded(const cuplug_file *file);
/** What the table says of the plugin; "" and 0 where it could not be read. */
CUPLUG_API const char *cuplug_file_name(const cuplug_file *file);
CUPLUG_API const char *cuplug_file_version(const cuplug_file *file);
CUPLUG_API const char *cuplug_file_architectures(const cuplug_file *file); /* "750,900" */
CUPLUG_API uint32_t cuplug_file_abi_version(const cuplug_file *file);      /* 0x00020000 for 2.0 */
/** Its rows, <cuplug/describe.h>: operators, and overloads of them. */
CUPLUG_API uint32_t cuplug_file_n_rows(const cuplug_file *file);
CUPLUG_API const cuplug_row *cuplug_file_row(const cuplug_file *file, uint32_t k);

CUPLUG__END_C
#endif
