/* What every library that Heterosis exports shows, whatever it computes.

   heterosis_open says whether the library runs on this processor and gives what all other functions
   take. There is no state: a library may be opened often, and used by any number of threads at a
   time, each with a workspace of its own. Nothing is allocated, nothing has to be closed, and no
   function writes anywhere but to what it is given. Bad arguments give a code or NULL; addresses
   are checked for NULL alone, since C cannot say more of them.

   Arrays are dense, in row-major order, and begin where their elements may stand (a float at a
   multiple of 4). The names of functions are the same in all libraries: look them up with dlsym
   where a program uses several. */
#ifndef HETEROSIS_H
#define HETEROSIS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HETEROSIS_VERSION 1

/* Codes. Positive ones are failures of a program: see heterosis_message. */
enum {
  HETEROSIS_OK = 0,
  HETEROSIS_FOREIGN = -1,       /* not what heterosis_open of this library gave */
  HETEROSIS_NO_ENTRY = -2,      /* no such entry, array or axis */
  HETEROSIS_NULL = -3,          /* an address is NULL */
  HETEROSIS_WORKSPACE = -4,     /* the workspace is NULL or not aligned to 64 bytes */
  HETEROSIS_PROCESSOR = -5,     /* the processor lacks instructions that the library needs */
  HETEROSIS_OTHER_VERSION = -6  /* the library has another version of these functions */
};

/* Types of elements. bool is a byte; float16 and bfloat16 are two. */
enum {
  HETEROSIS_BOOL, HETEROSIS_INT8, HETEROSIS_UINT8, HETEROSIS_INT32, HETEROSIS_INT64,
  HETEROSIS_FLOAT16, HETEROSIS_BFLOAT16, HETEROSIS_FLOAT32, HETEROSIS_FLOAT64
};

/* Open the library, with HETEROSIS_VERSION: NULL if it cannot be used, and why in `code`, which may
   be NULL. */
const void* heterosis_open(int64_t version, int64_t* code);

const char* heterosis_name(const void* library);

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

/* Run a program on the calling thread. `inputs` and `outputs` have an address for each array; those
   of outputs overlap nothing else. The workspace is used by one run at a time. */
int64_t heterosis_run(const void* library, int64_t entry, const void* const* inputs,
                      void* const* outputs, void* workspace);

/* What a code of `entry` means; a text that stays. */
const char* heterosis_message(const void* library, int64_t entry, int64_t code);

#ifdef __cplusplus
}
#endif

#endif /* HETEROSIS_H */
