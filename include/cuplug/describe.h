/* SPDX-License-Identifier: Apache-2.0 */
/* The host API that describes operators, their overloads and signatures, the search path, and its
 * files. Part of <cuplug/host.h>, which includes it. All functions are [thread-safe] [no-cuda].
 * Strings live as long as the object that they describe. */
#ifndef CUPLUG_DESCRIBE_H
#define CUPLUG_DESCRIBE_H

#include <cuplug/operators.h>

CUPLUG__BEGIN_C

/* ---- Operators ----------------------------------------------------------------------------- */

/** The name in the plugin's table. */
CUPLUG_API const char *cuplug_operator_name(const cuplug_operator *op);
/** Name, version and file of its plugin. */
CUPLUG_API const char *cuplug_operator_plugin(const cuplug_operator *op);
CUPLUG_API const char *cuplug_operator_version(const cuplug_operator *op);
CUPLUG_API const char *cuplug_operator_path(const cuplug_operator *op);
/** The compute capabilities of its plugin's CUDA code: "750,900" for 7.5 and 9.0; "" without. */
CUPLUG_API const char *cuplug_operator_architectures(const cuplug_operator *op);
/** The SHA-256 of its plugin's file, which is read once. ERROR_PLUGIN: it has none, or the file was
 * replaced since its table was read. */
CUPLUG_API int cuplug_operator_digest(const cuplug_operator *op, uint8_t digest[32],
                                      cuplug_error *error);
/** 1 when its code is in the process. */
CUPLUG_API int cuplug_operator_is_loaded(const cuplug_operator *op);
/** Its overloads, tried in this order. */
CUPLUG_API uint32_t cuplug_operator_n_overloads(const cuplug_operator *op);

/* ---- Overloads ----------------------------------------------------------------------------- */

/** Overload k of an operator; NULL past the last. */
CUPLUG_API const cuplug_overload *cuplug_operator_overload(const cuplug_operator *op, uint32_t k);

/** The text of its signature, which begins with the operator's name. */
CUPLUG_API const char *cuplug_overload_signature(const cuplug_overload *overload);
/** One line; "" if the plugin has none. */
CUPLUG_API const char *cuplug_overload_doc(const cuplug_overload *overload);
/** The exported function for a DLPack device type, CUPLUG_CPU or CUPLUG_CUDA, or one that this core
 * does not call; NULL if there is none. */
CUPLUG_API const char *cuplug_overload_entry(const cuplug_overload *overload, int32_t device_type);
/** The value of a key, such as "gradient": "" for a key without a value, NULL if the key is absent.
 * docs/abi.md lists the keys. */
CUPLUG_API const char *cuplug_overload_property(const cuplug_overload *overload, const char *key);
/** The k-th of the fields of its note, "key=value" or "key"; NULL past the last. */
CUPLUG_API const char *cuplug_overload_field(const cuplug_overload *overload, uint32_t k);

/** The properties that calls depend on. */
#define CUPLUG_OVERLOAD_TAKES_STRIDES 1u
#define CUPLUG_OVERLOAD_PREFERS_CUDA 2u
#define CUPLUG_OVERLOAD_NONBLOCKING 4u
#define CUPLUG_OVERLOAD_NO_SPLIT 8u
#define CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES 16u
#define CUPLUG_OVERLOAD_IN_PLACE 32u
#define CUPLUG_OVERLOAD_HANDLES 64u         /* by its signature: it takes a handle, or makes one */
#define CUPLUG_OVERLOAD_ELEMENT_RANGES 256u /* by its signature: elements must be in a range */
/** CUPLUG_OVERLOAD_TAKES_STRIDES ... */
CUPLUG_API uint32_t cuplug_overload_flags(const cuplug_overload *overload);

/* ---- Signatures ---------------------------------------------------------------------------- */

/** A parsed signature. */
typedef struct cuplug_signature cuplug_signature;

/** The same for overload k of an operator; NULL past the last. */
CUPLUG_API const cuplug_signature *cuplug_operator_signature(const cuplug_operator *op, uint32_t k);

/** As the plugin has it. */
CUPLUG_API const char *cuplug_signature_text(const cuplug_signature *signature);
CUPLUG_API uint32_t cuplug_signature_n_parameters(const cuplug_signature *signature);
CUPLUG_API uint32_t cuplug_signature_n_outputs(const cuplug_signature *signature);

typedef enum cuplug_kind {
  CUPLUG_PARAMETER_ARRAY,  /* x: T[n] */
  CUPLUG_PARAMETER_INOUT,  /* inout x: T[n] */
  CUPLUG_PARAMETER_SCALAR, /* a: T, a: float64, a: int */
  CUPLUG_PARAMETER_STRING, /* s: str */
  CUPLUG_PARAMETER_CHOICE, /* s: "a" | "b" */
  CUPLUG_PARAMETER_OUTPUT, /* -> T[n] */
  CUPLUG_PARAMETER_LIST,   /* axes: int[], a: float[] */
  CUPLUG_PARAMETER_ARRAYS, /* xs: T[n][] or T[n][each], a list of arrays; also with inout */
  CUPLUG_PARAMETER_HANDLE, /* plan: handle[plan], or the one output of that type */
  CUPLUG_PARAMETER_DTYPE   /* to: dtype, which is the dtype of outputs to[n] */
} cuplug_kind;

/** Parameter i of a signature, from 0; the outputs follow the last parameter. Past them: NULL, 0
 * and kind -1. */
CUPLUG_API const char *cuplug_parameter_name(const cuplug_signature *signature, uint32_t i);
CUPLUG_API int32_t cuplug_parameter_kind(const cuplug_signature *signature, uint32_t i);
/** Bit k: the k-th dtype of CUPLUG_DTYPE_LIST is allowed. 0 for strings, choices and handles. */
CUPLUG_API uint64_t cuplug_parameter_dtypes(const cuplug_signature *signature, uint32_t i);
/** The number of dimensions in its brackets; "...", and "*n", each any number of them, count as
 * 1. */
CUPLUG_API uint32_t cuplug_parameter_n_dims(const cuplug_signature *signature, uint32_t i);
/** 1 when the call changes it in place: an `inout` array or list of arrays; else 0. */
CUPLUG_API int32_t cuplug_parameter_is_inout(const cuplug_signature *signature, uint32_t i);
/** 1 for an array that is in the memory of the host in all calls, `host x`; else 0. */
CUPLUG_API int32_t cuplug_parameter_is_host(const cuplug_signature *signature, uint32_t i);
/** The tag of a handle; NULL for others. */
CUPLUG_API const char *cuplug_parameter_tag(const cuplug_signature *signature, uint32_t i);
/** The text of its default, as written; NULL without: it must be given. */
CUPLUG_API const char *cuplug_parameter_default(const cuplug_signature *signature, uint32_t i);

/** The name of the k-th dtype of CUPLUG_DTYPE_LIST, and the dtype, a cuplug_type_id; NULL and 0
 * past the last. */
CUPLUG_API const char *cuplug_dtype_name(uint32_t k);
CUPLUG_API uint32_t cuplug_dtype_id(uint32_t k);

/* ---- The search path, and the files on it --------------------------------------------------- */

typedef enum cuplug_origin {
  CUPLUG_ORIGIN_CUPLUG_PATH,  /* LD_LIBRARY_CUPLUG_PATH */
  CUPLUG_ORIGIN_LIBRARY_PATH, /* LD_LIBRARY_PATH */
  CUPLUG_ORIGIN_USER,         /* $XDG_DATA_HOME/cuplug/plugins or ~/.local/share/cuplug/plugins */
  CUPLUG_ORIGIN_SYSTEM,       /* /usr/local/lib/cuplug, /usr/lib/cuplug */
  CUPLUG_ORIGIN_ADDED,        /* cuplug_add_directory */
  CUPLUG_ORIGIN_STOCK,        /* the folder `cuplug` next to libcuplug.so */
  CUPLUG_ORIGIN_LOADED        /* a file passed to cuplug_load */
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
 * each path. ERROR_VALUE for a path that is not absolute. */
CUPLUG_API int cuplug_add_directory(const char *path, cuplug_error *error);

/** Checks a file by the rules for plugins: a regular file that no other user may write, on the
 * allow-list if there is one. ERROR_PLUGIN: the reason; ERROR_NOT_FOUND: no such file. Messages do
 * not name the file. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_check_trust(const char *path, cuplug_error *error);

/* ---- Listings ------------------------------------------------------------------------------ */

typedef struct cuplug_listing cuplug_listing;
/** A place on the search path. */
typedef struct cuplug_directory cuplug_directory;
/** A file `lib*.so` in one of those directories, with the contents of its table. */
typedef struct cuplug_file cuplug_file;

/** Takes a snapshot of the search path and, with `with_files`, of every candidate in it; free it
 * with cuplug_free_listing. Runs no plugin code. One bad file never fails the listing.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error);
/** NULL is taken. [thread-safe], once nobody uses it any more; [no-cuda] */
CUPLUG_API void cuplug_free_listing(cuplug_listing *listing);

/** Reads the table of one file with all checks, without running it. Free `file` with
 * cuplug_free_file, also after an error, when it contains all that could be read. [thread-safe]
 * [no-cuda] */
CUPLUG_API int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error);
/** Of cuplug_inspect, not of a listing; NULL is taken. [thread-safe], once nobody uses it any more;
 * [no-cuda] */
CUPLUG_API void cuplug_free_file(cuplug_file *file);

/* The functions below read a snapshot. Their results live as long as the snapshot. [thread-safe]
 * [no-cuda] */

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
/** The description of the plugin in its table; "" and 0 if it could not be read. */
CUPLUG_API const char *cuplug_file_name(const cuplug_file *file);
CUPLUG_API const char *cuplug_file_version(const cuplug_file *file);
CUPLUG_API const char *cuplug_file_architectures(const cuplug_file *file); /* "750,900" */
CUPLUG_API uint32_t cuplug_file_abi_version(const cuplug_file *file);      /* 0x00020000 for 2.0 */
/** The overloads of all its operators. */
CUPLUG_API uint32_t cuplug_file_n_overloads(const cuplug_file *file);
CUPLUG_API const cuplug_overload *cuplug_file_overload(const cuplug_file *file, uint32_t k);

CUPLUG__END_C
#endif
