/* What every library that Heterosis exports shows, whatever it computes.

   heterosis_open says whether the library runs on this processor and gives what all other functions
   take. There is no state: a library may be opened often, and used by any number of threads at a
   time, each with a workspace of its own. Nothing is allocated, and no function writes anywhere but
   to what it is given. Bad arguments give a code or NULL; addresses
   are checked for NULL alone, since C cannot say more of them.

   Arrays are dense, in row-major order, and begin where their elements may stand (a float at a
   multiple of 4). The names of functions are the same in all libraries: look them up with dlsym
   where a program uses several. */
#ifndef HETEROSIS_H
#define HETEROSIS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HETEROSIS_VERSION 2

/* Codes. Positive ones are failures of a program: see heterosis_message. */
enum {
  HETEROSIS_OK = 0,
  HETEROSIS_FOREIGN = -1,       /* not what heterosis_open of this library gave */
  HETEROSIS_NO_ENTRY = -2,      /* no such entry, array or axis */
  HETEROSIS_NULL = -3,          /* an address is NULL */
  HETEROSIS_WORKSPACE = -4,     /* the workspace, or other memory, is NULL or not aligned to 64 bytes */
  HETEROSIS_PROCESSOR = -5,     /* the processor lacks instructions that the library needs */
  HETEROSIS_OTHER_VERSION = -6, /* the library has another version of these functions */
  HETEROSIS_POOL = -7,          /* a pool of other than 1 to heterosis_threads threads */
  HETEROSIS_WEIGHTS = -8,       /* no file of parameters, or not that of this library */
  HETEROSIS_SIZES = -9          /* sizes that are out of bounds, or not given: see heterosis_at */
};

/* Types of elements. bool is a byte; float16 and bfloat16 are two. */
enum {
  HETEROSIS_BOOL, HETEROSIS_INT8, HETEROSIS_UINT8, HETEROSIS_INT32, HETEROSIS_INT64,
  HETEROSIS_FLOAT16, HETEROSIS_BFLOAT16, HETEROSIS_FLOAT32, HETEROSIS_FLOAT64,
  HETEROSIS_INT16, HETEROSIS_UINT16, HETEROSIS_UINT32, HETEROSIS_UINT64
};

/* Open the library, with HETEROSIS_VERSION: NULL if it cannot be used, and why in `code`, which may
   be NULL. */
const void* heterosis_open(int64_t version, int64_t* code);

/* The same for a library whose parameters are in a file, lib<name>.weights, which is mapped into memory:
   pages of it are read when they are needed, and processes share them. `weights` is the path of it, and
   of no meaning to other libraries. Its size and whether it belongs to the library are looked at here;
   heterosis_check reads all of it. Replace such a file by renaming another one, and never write to it.
   What was opened so is closed when no run uses it; closing any other library does nothing. */
const void* heterosis_open_with(int64_t version, const char* weights, int64_t* code);
int64_t heterosis_close(const void* library);

const char* heterosis_name(const void* library);

/* The kind of processors whose code was chosen of those that the library has: "x86-64-v4". */
const char* heterosis_target(const void* library);

/* The programs of the library, by number: how many, what they are called, and how many bytes of
   memory, aligned to 64, a run of one uses. */
int64_t heterosis_entries(const void* library);
const char* heterosis_entry_name(const void* library, int64_t entry);
int64_t heterosis_workspace_bytes(const void* library, int64_t entry);

/* The arrays that a program takes and gives, by position. */
int64_t heterosis_inputs(const void* library, int64_t entry);
const char* heterosis_input_name(const void* library, int64_t entry, int64_t position);
int64_t heterosis_input_dtype(const void* library, int64_t entry, int64_t position);
int64_t heterosis_input_rank(const void* library, int64_t entry, int64_t position);
int64_t heterosis_input_bytes(const void* library, int64_t entry, int64_t position);
int64_t heterosis_input_extent(const void* library, int64_t entry, int64_t position, int64_t axis);

int64_t heterosis_outputs(const void* library, int64_t entry);
const char* heterosis_output_name(const void* library, int64_t entry, int64_t position);
int64_t heterosis_output_dtype(const void* library, int64_t entry, int64_t position);
int64_t heterosis_output_rank(const void* library, int64_t entry, int64_t position);
int64_t heterosis_output_bytes(const void* library, int64_t entry, int64_t position);
int64_t heterosis_output_extent(const void* library, int64_t entry, int64_t position, int64_t axis);

/* Programs that take arrays of many extents have sizes, which these extents and those of the results
   follow from. They have names, and bounds; what extents are is written as "512", "n0" or
   "(n0 - 3)//2 + 1". Without sizes, what depends on them is HETEROSIS_SIZES. */
int64_t heterosis_sizes(const void* library, int64_t entry);
const char* heterosis_size_name(const void* library, int64_t entry, int64_t size);
int64_t heterosis_size_least(const void* library, int64_t entry, int64_t size);
int64_t heterosis_size_most(const void* library, int64_t entry, int64_t size);
const char* heterosis_input_extent_text(const void* library, int64_t entry, int64_t position, int64_t axis);
const char* heterosis_output_extent_text(const void* library, int64_t entry, int64_t position, int64_t axis);

/* A program for some sizes. What is returned is taken in place of the library by all functions that ask
   for or run this entry, which then has no sizes any more: how many bytes its arrays and its workspace
   have, and which extents, is known. It is written to the memory of the caller, heterosis_at_bytes of
   it, aligned to 64; it may be used for any number of runs, by several threads at a time, until the
   memory goes, and needs no closing. NULL if the program does not take these sizes, and why in `code`,
   which may be NULL. Of a program without sizes, this is the library itself. */
int64_t heterosis_at_bytes(const void* library, int64_t entry);
const void* heterosis_at(const void* library, int64_t entry, const int64_t* sizes, void* memory,
                         int64_t* code);

/* Run a program on the calling thread. `inputs` and `outputs` have an address for each array; those
   of outputs overlap nothing else. The workspace is used by one run at a time. */
int64_t heterosis_run(const void* library, int64_t entry, const void* const* inputs,
                      void* const* outputs, void* workspace);

/* How many threads may share a run, at most: what the library was exported for. Results are the same
   with any number of them. */
int64_t heterosis_threads(const void* library);

/* How the parallel loops of a run are shared between threads. `run` calls `share` for [0, count) in
   shares of `grain` indices (the last may be shorter), and returns when all are done. `worker` is
   below `workers`, and no other share that runs at the time has it. `workers` is from 1 to
   heterosis_threads. Loops may come from several runs at a time, and from inside shares: a pool may
   always run all shares itself, one after the other, with worker 0. */
typedef void (*heterosis_share)(void* context, int64_t begin, int64_t end, int64_t worker);
typedef struct heterosis_pool {
  void* state;
  void (*run)(void* state, heterosis_share share, void* context, int64_t count, int64_t grain);
  int64_t workers;
} heterosis_pool;

/* A pool of the library's own, in memory of the caller's, aligned to 64 bytes: a heterosis_pool stands
   at its beginning. The calling thread is one of its threads. Starting gives how many there are, which
   are fewer where the system refuses more, or a code. The process that started a pool stops it, when no
   run uses it, before the memory goes or the library is closed. */
int64_t heterosis_pool_bytes(const void* library, int64_t threads);
int64_t heterosis_pool_start(const void* library, void* memory, int64_t threads);
int64_t heterosis_pool_stop(const void* library, void* memory);

/* heterosis_run with the threads of a pool, or without any if it is NULL. */
int64_t heterosis_run_with(const void* library, int64_t entry, const void* const* inputs,
                           void* const* outputs, void* workspace, const heterosis_pool* pool);

/* What a code of `entry` means; a text that stays. */
const char* heterosis_message(const void* library, int64_t entry, int64_t code);

/* Whether a file is a whole library of this version, for this family of processors, or the file of its parameters: NULL if so, or a
   text that says what is wrong.
   The system's loader gives what it has loaded by a path before, though another file stands there now:
   give a file that was exported again another path, or start anew.
   Ask before dlopen where a file may be damaged: nothing of it is loaded here, whereas the system's
   loader follows whatever stands there. The file ends in 24 bytes, numbers in little-endian order:
   "HETEROSO", the version and the CRC-32 of all before (4 bytes each), how many these are (8). */
static inline const char* heterosis_check(const char* path) {
#if defined(__x86_64__)
  const uint64_t machine = 62; /* numbers of ELF's list */
#elif defined(__aarch64__)
  const uint64_t machine = 183;
#else
  const uint64_t machine = 0; /* not known */
#endif
  enum { SEAL = 24, BLOCK = 32768 };
  unsigned char begin[20] = {0};
  uint32_t table[8][256], crc = 0xFFFFFFFFu; /* of a byte with 0 to 7 bytes behind it */
  unsigned char seal[SEAL + BLOCK]; /* the last bytes read, which may be the seal, and a block */
  uint64_t size = 0, held = 0, read, i;
  FILE* file = path ? fopen(path, "rb") : NULL;
  if (!file) return "the file cannot be opened";
  for (i = 0; i < 256; ++i) {
    uint32_t rest = (uint32_t)i;
    int bit;
    for (bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? 0xEDB88320u : 0);
    table[0][i] = rest;
  }
  for (i = 256; i < 8 * 256; ++i) {
    const uint32_t before = table[i / 256 - 1][i % 256];
    table[i / 256][i % 256] = table[0][before & 255] ^ (before >> 8);
  }
  while ((read = fread(seal + held, 1, BLOCK, file)) > 0) {
    const uint64_t known = held + read > SEAL ? held + read - SEAL : 0;
    if (size + held == 0) memcpy(begin, seal, read < sizeof begin ? (size_t)read : sizeof begin);
    for (i = 0; i + 8 <= known; i += 8) {
      const unsigned char* next = seal + i;
      crc = table[7][(crc ^ next[0]) & 255] ^ table[6][((crc >> 8) ^ next[1]) & 255] ^
            table[5][((crc >> 16) ^ next[2]) & 255] ^ table[4][(crc >> 24) ^ next[3]] ^
            table[3][next[4]] ^ table[2][next[5]] ^ table[1][next[6]] ^ table[0][next[7]];
    }
    for (; i < known; ++i) crc = table[0][(crc ^ seal[i]) & 255] ^ (crc >> 8);
    size += known;
    held = held + read - known;
    memmove(seal, seal + known, (size_t)held);
  }
  i = (uint64_t)ferror(file);
  fclose(file);
  if (i) return "the file cannot be read";
  if (held < SEAL || memcmp(seal, "HETEROSO", 8)) {
    return "the file is cut short, stripped, or no library that Heterosis has exported";
  }
  {
    uint64_t said[3] = {0, 0, 0}; /* version, checksum, size */
    for (i = 0; i < 8; ++i) said[2] |= (uint64_t)seal[16 + i] << (8 * i);
    for (i = 0; i < 4; ++i) said[0] |= (uint64_t)seal[8 + i] << (8 * i);
    for (i = 0; i < 4; ++i) said[1] |= (uint64_t)seal[12 + i] << (8 * i);
    if (said[2] != size || said[1] != (crc ^ 0xFFFFFFFFu)) {
      return "the file is damaged: its size or its checksum is wrong";
    }
    if (said[0] != HETEROSIS_VERSION) return "the library has another version of heterosis.h";
    i = (uint64_t)begin[18] | (uint64_t)begin[19] << 8;
    if (machine && i != machine && !memcmp(begin, "\177ELF", 4)) {
      if (i == 183) return "the library is for another family of processors: AArch64";
      if (i == 62) return "the library is for another family of processors: x86-64";
      return "the library is for another family of processors";
    }
  }
  return NULL;
}

#ifdef __cplusplus
}
#endif

#endif /* HETEROSIS_H */
