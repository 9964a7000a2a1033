/* What R cannot do by itself: open a library, and hand over addresses. */
#include "heterosis.h"

#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  void* loaded;
  const void* library;
  void* pool;
  void* prepared; /* where a program for some sizes stands, which another one opened */
  pid_t process;  /* that has the threads of the pool: one that was forked from it has none */
  __typeof__(heterosis_open_with)* open_with;
  __typeof__(heterosis_close)* close;
  __typeof__(heterosis_target)* target;
  __typeof__(heterosis_threads)* threads;
  __typeof__(heterosis_entries)* entries;
  __typeof__(heterosis_entry_name)* entry_name;
  __typeof__(heterosis_workspace_bytes)* workspace_bytes;
  __typeof__(heterosis_inputs)* inputs;
  __typeof__(heterosis_input_name)* input_name;
  __typeof__(heterosis_input_dtype)* input_dtype;
  __typeof__(heterosis_input_rank)* input_rank;
  __typeof__(heterosis_input_bytes)* input_bytes;
  __typeof__(heterosis_input_extent)* input_extent;
  __typeof__(heterosis_outputs)* outputs;
  __typeof__(heterosis_output_name)* output_name;
  __typeof__(heterosis_output_dtype)* output_dtype;
  __typeof__(heterosis_output_rank)* output_rank;
  __typeof__(heterosis_output_bytes)* output_bytes;
  __typeof__(heterosis_output_extent)* output_extent;
  __typeof__(heterosis_pool_bytes)* pool_bytes;
  __typeof__(heterosis_pool_start)* pool_start;
  __typeof__(heterosis_pool_stop)* pool_stop;
  __typeof__(heterosis_input_extent_text)* input_extent_text;
  __typeof__(heterosis_output_extent_text)* output_extent_text;
  __typeof__(heterosis_sizes)* sizes;
  __typeof__(heterosis_size_name)* size_name;
  __typeof__(heterosis_at_bytes)* at_bytes;
  __typeof__(heterosis_at)* at;
  __typeof__(heterosis_run_with)* run_with;
  __typeof__(heterosis_message)* message;
} Opened;

static const char* const kTypes[] = {"bool", "int8", "uint8", "int32", "int64",
                                     "float16", "bfloat16", "float32", "float64",
                                     "int16", "uint16", "uint32", "uint64"};

static void* memory_of(int64_t bytes) {
  void* memory = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
  if (!memory) Rf_error("no memory for %lld bytes", (long long)bytes);
  return memory;
}

static void finalize(SEXP handle) {
  Opened* opened = R_ExternalPtrAddr(handle);
  if (!opened) return;
  R_ClearExternalPtr(handle);
  if (opened->prepared) {
    free(opened->prepared);
    free(opened);
    return;
  }
  if (opened->pool && opened->process == getpid()) {
    opened->pool_stop(opened->library, opened->pool);
  }
  if (opened->library) opened->close(opened->library);
  if (opened->loaded) dlclose(opened->loaded);
  free(opened->pool);
  free(opened);
}

static void find_all(Opened* o, const char* path) {
#define FIND(name)                                                              \
  if (!(*(void**)&o->name = dlsym(o->loaded, "heterosis_" #name)))              \
    Rf_error("%s: heterosis_" #name " is missing: no library of Heterosis", path)
  FIND(open_with); FIND(close); FIND(target); FIND(threads); FIND(entries); FIND(entry_name);
  FIND(workspace_bytes); FIND(inputs); FIND(input_name); FIND(input_dtype); FIND(input_rank);
  FIND(input_bytes); FIND(input_extent); FIND(outputs); FIND(output_name); FIND(output_dtype);
  FIND(output_rank); FIND(output_bytes); FIND(output_extent); FIND(pool_bytes); FIND(pool_start);
  FIND(pool_stop); FIND(run_with); FIND(message); FIND(input_extent_text); FIND(output_extent_text);
  FIND(sizes); FIND(size_name); FIND(at_bytes); FIND(at);
#undef FIND
}

/* The library and, if there is one, its file of parameters. */
static SEXP open_files(SEXP files, SEXP wanted) {
  const char* path = CHAR(STRING_ELT(files, 0));
  const char* weights = Rf_length(files) > 1 ? CHAR(STRING_ELT(files, 1)) : NULL;
  for (int i = 0; i < Rf_length(files); ++i) {
    const char* wrong = heterosis_check(CHAR(STRING_ELT(files, i)));
    if (wrong) Rf_error("%s: %s", CHAR(STRING_ELT(files, i)), wrong);
  }
  Opened* o = calloc(1, sizeof *o);
  if (!o) Rf_error("no memory");
  SEXP handle = PROTECT(R_MakeExternalPtr(o, R_NilValue, R_NilValue));
  R_RegisterCFinalizerEx(handle, finalize, TRUE);
  if (!(o->loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL))) Rf_error("%s", dlerror());
  find_all(o, path);
  int64_t code = 0;
  if (!(o->library = o->open_with(HETEROSIS_VERSION, weights, &code))) {
    Rf_error("%s: %s", path, o->message(NULL, 0, code));
  }
  const int64_t most = o->threads(o->library);
  const int64_t threads = Rf_asInteger(wanted) ? Rf_asInteger(wanted) : most;
  const int64_t bytes = o->pool_bytes(o->library, threads);
  if (bytes < 0) Rf_error("got threads = %d; expected 1 to %d", (int)threads, (int)most);
  void* pool = memory_of(bytes);
  o->pool_start(o->library, pool, threads);
  o->pool = pool;
  o->process = getpid();
  UNPROTECT(1);
  return handle;
}

static Opened* opened_of(SEXP handle) {
  Opened* o = R_ExternalPtrAddr(handle);
  if (!o) Rf_error("the library is not open: it does not outlive its session");
  return o;
}

static SEXP target(SEXP handle) {
  Opened* o = opened_of(handle);
  return Rf_mkString(o->target(o->library));
}

static SEXP named_list(int count, const char* const* names) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
  SEXP labels = PROTECT(Rf_allocVector(STRSXP, count));
  for (int i = 0; i < count; ++i) SET_STRING_ELT(labels, i, Rf_mkChar(names[i]));
  Rf_setAttrib(list, R_NamesSymbol, labels);
  UNPROTECT(2);
  return list;
}

static SEXP describe_side(Opened* o, int64_t entry, int is_input) {
  static const char* const fields[] = {"name", "dtype", "shape", "bytes", "extents"};
  const int64_t count = (is_input ? o->inputs : o->outputs)(o->library, entry);
  SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
  for (int64_t i = 0; i < count; ++i) {
    SEXP one = named_list(5, fields);
    SET_VECTOR_ELT(list, i, one);
    const char* name = (is_input ? o->input_name : o->output_name)(o->library, entry, i);
    const int64_t dtype = (is_input ? o->input_dtype : o->output_dtype)(o->library, entry, i);
    const int64_t rank = (is_input ? o->input_rank : o->output_rank)(o->library, entry, i);
    const int64_t bytes = (is_input ? o->input_bytes : o->output_bytes)(o->library, entry, i);
    SET_VECTOR_ELT(one, 0, Rf_mkString(name));
    SET_VECTOR_ELT(one, 1, Rf_mkString(kTypes[dtype]));
    SEXP shape = Rf_allocVector(REALSXP, rank);
    SET_VECTOR_ELT(one, 2, shape);
    for (int64_t axis = 0; axis < rank; ++axis) {
      REAL(shape)[axis] =
          (double)(is_input ? o->input_extent : o->output_extent)(o->library, entry, i, axis);
    }
    SET_VECTOR_ELT(one, 3, Rf_ScalarReal((double)bytes));
    SEXP extents = Rf_allocVector(STRSXP, rank);
    SET_VECTOR_ELT(one, 4, extents);
    for (int64_t axis = 0; axis < rank; ++axis) {
      const char* text =
          (is_input ? o->input_extent_text : o->output_extent_text)(o->library, entry, i, axis);
      SET_STRING_ELT(extents, axis, Rf_mkChar(text));
    }
  }
  UNPROTECT(1);
  return list;
}

static SEXP describe_entry(SEXP handle, SEXP number) {
  static const char* const fields[] = {"name", "number", "inputs", "outputs", "sizes"};
  Opened* o = opened_of(handle);
  const int64_t i = Rf_asInteger(number), sizes = o->sizes(o->library, i);
  SEXP one = PROTECT(named_list(5, fields));
  SET_VECTOR_ELT(one, 0, Rf_mkString(o->entry_name(o->library, i)));
  SET_VECTOR_ELT(one, 1, Rf_ScalarInteger((int)i));
  SET_VECTOR_ELT(one, 2, describe_side(o, i, 1));
  SET_VECTOR_ELT(one, 3, describe_side(o, i, 0));
  SEXP names = Rf_allocVector(STRSXP, sizes);
  SET_VECTOR_ELT(one, 4, names);
  for (int64_t size = 0; size < sizes; ++size) {
    SET_STRING_ELT(names, size, Rf_mkChar(o->size_name(o->library, i, size)));
  }
  UNPROTECT(1);
  return one;
}

static SEXP count(SEXP handle) {
  Opened* o = opened_of(handle);
  return Rf_ScalarInteger((int)o->entries(o->library));
}

/* What stands for a library where a program has these sizes; the library lives as long. */
static SEXP at(SEXP handle, SEXP number, SEXP sizes) {
  Opened* whole = opened_of(handle);
  const int64_t entry = Rf_asInteger(number);
  int64_t* given = (int64_t*)R_alloc((size_t)Rf_xlength(sizes) + 1, sizeof *given);
  for (R_xlen_t i = 0; i < Rf_xlength(sizes); ++i) given[i] = (int64_t)REAL(sizes)[i];
  Opened* o = calloc(1, sizeof *o);
  if (!o) Rf_error("no memory");
  *o = *whole;
  o->prepared = NULL;
  SEXP made = PROTECT(R_MakeExternalPtr(o, R_NilValue, handle));
  o->prepared = memory_of(whole->at_bytes(whole->library, entry));
  R_RegisterCFinalizerEx(made, finalize, TRUE);
  int64_t code = 0;
  o->library = whole->at(whole->library, entry, given, o->prepared, &code);
  if (!o->library) {
    char shown[512] = "";
    for (R_xlen_t i = 0, used = 0; i < Rf_xlength(sizes) && used < (R_xlen_t)sizeof shown; ++i) {
      used += snprintf(shown + used, sizeof shown - (size_t)used, "%s%s = %lld", i ? ", " : "",
                       whole->size_name(whole->library, entry, i), (long long)given[i]);
    }
    Rf_error("%s at %s: %s", whole->entry_name(whole->library, entry), shown,
             whole->message(whole->library, entry, code));
  }
  UNPROTECT(1);
  return made;
}

/* A program on raw vectors: a list of such. */
static SEXP run(SEXP handle, SEXP number, SEXP arrays) {
  Opened* o = opened_of(handle);
  const int64_t entry = Rf_asInteger(number);
  const int64_t given = o->inputs(o->library, entry), made = o->outputs(o->library, entry);
  if (given != Rf_xlength(arrays)) Rf_error("expected %d arrays", (int)given);
  const void** from = (const void**)R_alloc((size_t)given + 1, sizeof *from);
  void** to = (void**)R_alloc((size_t)made + 1, sizeof *to);
  for (int64_t i = 0; i < given; ++i) {
    SEXP array = VECTOR_ELT(arrays, i);
    const int64_t bytes = o->input_bytes(o->library, entry, i);
    if (TYPEOF(array) != RAWSXP || Rf_xlength(array) != bytes) {
      Rf_error("%s: expected a raw vector of %lld bytes", o->input_name(o->library, entry, i),
               (long long)bytes);
    }
    from[i] = RAW(array);
  }
  SEXP results = PROTECT(Rf_allocVector(VECSXP, made));
  for (int64_t i = 0; i < made; ++i) {
    SET_VECTOR_ELT(results, i, Rf_allocVector(RAWSXP, o->output_bytes(o->library, entry, i)));
    to[i] = RAW(VECTOR_ELT(results, i));
  }
  void* workspace = memory_of(o->workspace_bytes(o->library, entry));
  const int64_t code = o->run_with(o->library, entry, from, to, workspace, o->pool);
  free(workspace);
  if (code) Rf_error("%s", o->message(o->library, entry, code));
  UNPROTECT(1);
  return results;
}

static int dtype_of(SEXP name) {
  for (int i = 0; i < (int)(sizeof kTypes / sizeof *kTypes); ++i) {
    if (!strcmp(CHAR(STRING_ELT(name, 0)), kTypes[i])) return i;
  }
  Rf_error("unknown element type %s", CHAR(STRING_ELT(name, 0)));
}

static const int kBytes[] = {1, 1, 1, 4, 8, 2, 2, 4, 8, 2, 2, 4, 8};

/* Whether a number is a whole one that a type holds; of 64 bits, those that R's numbers tell apart. */
static int holds(int dtype, double x) {
  static const double most = 9007199254740992.0;
  static const double bounds[][2] = {
      {-most, most}, {-128, 127}, {0, 255}, {-2147483648.0, 2147483647.0}, {-most, most},
      {0, 65535}, {0, 65535}, {0, 0}, {0, 0}, {-32768, 32767}, {0, 65535}, {0, 4294967295.0},
      {0, most}};
  return x >= bounds[dtype][0] && x <= bounds[dtype][1] && x == floor(x);
}

/* R's numbers as elements of a type; 16-bit floats are given as their bits. */
static SEXP pack(SEXP numbers, SEXP type) {
  const int dtype = dtype_of(type);
  SEXP from = PROTECT(Rf_coerceVector(numbers, REALSXP));
  const R_xlen_t count = Rf_xlength(from);
  SEXP packed = PROTECT(Rf_allocVector(RAWSXP, count * kBytes[dtype]));
  const double* x = REAL(from);
  void* to = RAW(packed);
  for (R_xlen_t i = 0; i < count; ++i) {
    const int whole = dtype != HETEROSIS_FLOAT32 && dtype != HETEROSIS_FLOAT64;
    if (whole && !holds(dtype, x[i])) {
      Rf_error("element %lld is %.17g, which is no whole number of %s", (long long)i + 1, x[i],
               kTypes[dtype]);
    }
    switch (dtype) {
      case HETEROSIS_BOOL: ((uint8_t*)to)[i] = x[i] != 0; break;
      case HETEROSIS_INT8: ((int8_t*)to)[i] = (int8_t)(int64_t)x[i]; break;
      case HETEROSIS_UINT8: ((uint8_t*)to)[i] = (uint8_t)(int64_t)x[i]; break;
      case HETEROSIS_INT32: ((int32_t*)to)[i] = (int32_t)(int64_t)x[i]; break;
      case HETEROSIS_UINT32: ((uint32_t*)to)[i] = (uint32_t)(int64_t)x[i]; break;
      case HETEROSIS_UINT64:
      case HETEROSIS_INT64: ((int64_t*)to)[i] = (int64_t)x[i]; break;
      case HETEROSIS_INT16:
      case HETEROSIS_UINT16:
      case HETEROSIS_FLOAT16:
      case HETEROSIS_BFLOAT16: ((uint16_t*)to)[i] = (uint16_t)(int64_t)x[i]; break;
      case HETEROSIS_FLOAT32: ((float*)to)[i] = (float)x[i]; break;
      default: ((double*)to)[i] = x[i];
    }
  }
  UNPROTECT(2);
  return packed;
}

static double element(const void* from, R_xlen_t i, int dtype) {
  switch (dtype) {
    case HETEROSIS_BOOL:
    case HETEROSIS_UINT8: return ((const uint8_t*)from)[i];
    case HETEROSIS_INT8: return ((const int8_t*)from)[i];
    case HETEROSIS_INT32: return ((const int32_t*)from)[i];
    case HETEROSIS_INT64: return (double)((const int64_t*)from)[i];
    case HETEROSIS_INT16: return ((const int16_t*)from)[i];
    case HETEROSIS_UINT32: return ((const uint32_t*)from)[i];
    case HETEROSIS_UINT64: return (double)((const uint64_t*)from)[i];
    case HETEROSIS_UINT16:
    case HETEROSIS_FLOAT16:
    case HETEROSIS_BFLOAT16: return ((const uint16_t*)from)[i];
    case HETEROSIS_FLOAT32: return ((const float*)from)[i];
    default: return ((const double*)from)[i];
  }
}

static SEXP unpack(SEXP bytes, SEXP type) {
  const int dtype = dtype_of(type);
  const R_xlen_t count = Rf_xlength(bytes) / kBytes[dtype];
  SEXP numbers = PROTECT(Rf_allocVector(REALSXP, count));
  for (R_xlen_t i = 0; i < count; ++i) REAL(numbers)[i] = element(RAW(bytes), i, dtype);
  SEXP found = dtype == HETEROSIS_BOOL ? Rf_coerceVector(numbers, LGLSXP) : numbers;
  UNPROTECT(1);
  return found;
}

static const R_CallMethodDef kMethods[] = {
    {"C_open", (DL_FUNC)&open_files, 2}, {"C_describe", (DL_FUNC)&describe_entry, 2},
    {"C_count", (DL_FUNC)&count, 1},     {"C_at", (DL_FUNC)&at, 3},
    {"C_target", (DL_FUNC)&target, 1},   {"C_run", (DL_FUNC)&run, 3},
    {"C_pack", (DL_FUNC)&pack, 2},       {"C_unpack", (DL_FUNC)&unpack, 2},
    {NULL, NULL, 0}};

void R_init_heterosis(DllInfo* info) {
  R_registerRoutines(info, NULL, kMethods, NULL, NULL);
  R_useDynamicSymbols(info, FALSE);
}
