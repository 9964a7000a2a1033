/* Times calls of the first program of an exported library:
   call_library LIBRARY INPUTS OUTPUTS THREADS [checked]
   INPUTS is a file with the elements of all inputs, one behind the other, and OUTPUTS one that is
   written, with those of the results.
   cc -O2 call_library.c -I../src/heterosis/backends -ldl -o call_library */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "heterosis.h"
#include "timing.h"

enum { MOST = 16 }; /* arrays in or out */

static const void *library, *from[MOST];
static void *handle, *to[MOST], *workspace, *pool;
static __typeof__(heterosis_run_with)* run;

static void call(void) {
  if (run(library, 0, from, to, workspace, pool)) stop("a run failed");
}

static void* found(const char* name) {
  void* function = dlsym(handle, name);
  if (!function) stop(dlerror());
  return function;
}

static void* memory(int64_t bytes) { return aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64); }

static int64_t how_many(const char* name) {
  const int64_t count = ((__typeof__(heterosis_inputs)*)found(name))(library, 0);
  if (count < 0 || count > MOST) stop("a library with more arrays than this program has room for");
  return count;
}

static void open_library(const char* path, int64_t threads) {
  char weights[4096];
  handle = dlopen(path, RTLD_NOW);
  if (!handle) stop(dlerror());
  snprintf(weights, sizeof weights, "%.*s.weights", (int)strlen(path) - 3, path);
  __typeof__(heterosis_open_with)* opened = found("heterosis_open_with");
  __typeof__(heterosis_workspace_bytes)* bytes = found("heterosis_workspace_bytes");
  run = found("heterosis_run_with");
  library = opened(HETEROSIS_VERSION, weights, NULL);
  if (!library) stop("the library cannot be used here");
  workspace = memory(bytes(library, 0));
  if (threads > 1) {
    pool = memory(((__typeof__(heterosis_pool_bytes)*)found("heterosis_pool_bytes"))(library, threads));
    if (((__typeof__(heterosis_pool_start)*)found("heterosis_pool_start"))(library, pool, threads) < threads)
      stop("there are fewer threads");
  }
}

static void take_inputs(const char* path) {
  __typeof__(heterosis_input_bytes)* bytes = found("heterosis_input_bytes");
  const int64_t count = how_many("heterosis_inputs");
  FILE* file = fopen(path, "rb");
  int64_t i;
  for (i = 0; i < count; ++i) {
    const size_t size = (size_t)bytes(library, 0, i);
    void* array = memory((int64_t)size);
    if (!file || fread(array, 1, size, file) != size) stop(path);
    from[i] = array;
  }
  fclose(file);
}

static void make_outputs(void) {
  __typeof__(heterosis_output_bytes)* bytes = found("heterosis_output_bytes");
  const int64_t count = how_many("heterosis_outputs");
  int64_t i;
  for (i = 0; i < count; ++i) to[i] = memory(bytes(library, 0, i));
}

static void give_outputs(const char* path) {
  __typeof__(heterosis_output_bytes)* bytes = found("heterosis_output_bytes");
  const int64_t count = how_many("heterosis_outputs");
  FILE* file = fopen(path, "wb");
  int64_t i;
  for (i = 0; i < count; ++i) {
    const size_t size = (size_t)bytes(library, 0, i);
    if (!file || fwrite(to[i], 1, size, file) != size) stop(path);
  }
  fclose(file);
}

int main(int count, char** words) {
  double begin, first;
  if (count < 5) stop("call_library LIBRARY INPUTS OUTPUTS THREADS [checked]");
  begin = seconds();
  if (count > 5 && heterosis_check(words[1])) stop(heterosis_check(words[1]));
  open_library(words[1], strtoll(words[4], NULL, 10));
  take_inputs(words[2]);
  make_outputs();
  call();
  first = seconds() - begin;
  report(first, resident_kilobytes(), call);
  give_outputs(words[3]);
  return 0;
}
