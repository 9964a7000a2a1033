/* Runs a program on arrays in files, with all threads that it was exported for. Says how many
   microseconds a call takes: run_files LIBRARY FOLDER CALLS [SIZE...]
   cc run_files.c -I../../src/heterosis/backends -ldl -o run_files */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "heterosis.h"

enum { MOST = 16 }; /* arrays of a side */

static void stop(const char* why) {
  fprintf(stderr, "%s\n", why ? why : "unknown");
  exit(1);
}

static void* find(void* handle, const char* name) {
  void* found = dlsym(handle, name);
  if (!found) stop(dlerror());
  return found;
}

static void* memory_of(int64_t bytes) {
  void* memory = bytes < 0 ? NULL : aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
  if (!memory) stop("no memory");
  return memory;
}

static FILE* opened(const char* folder, const char* side, int64_t position, const char* mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%d", folder, side, (int)position);
  FILE* file = fopen(path, mode);
  if (!file) stop(path);
  return file;
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

typedef int64_t count_of(const void*, int64_t);
typedef int64_t bytes_of(const void*, int64_t, int64_t);

int main(int count, char** words) {
  if (count < 4 || count - 4 > MOST) stop("run_files LIBRARY FOLDER CALLS [SIZE...]");
  const char* wrong = heterosis_check(words[1]);
  if (wrong) stop(wrong);
  char weights[4096]; /* beside a library that has its parameters in a file */
  snprintf(weights, sizeof weights, "%.*s.weights", (int)strlen(words[1]) - 3, words[1]);
  void* handle = dlopen(words[1], RTLD_NOW);
  if (!handle) stop(dlerror());
  const void* (*open_library)(int64_t, const char*, int64_t*);
  int64_t (*run)(const void*, int64_t, const void* const*, void* const*, void*,
                 const heterosis_pool*);
  int64_t (*threads)(const void*), (*start)(const void*, void*, int64_t);
  int64_t (*stop_pool)(const void*, void*);
  count_of *inputs, *outputs, *workspace_bytes, *pool_bytes, *sizes, *at_bytes;
  const void* (*at)(const void*, int64_t, const int64_t*, void*, int64_t*);
  const char* (*message)(const void*, int64_t, int64_t);
  bytes_of *input_bytes, *output_bytes;
  *(void**)&open_library = find(handle, "heterosis_open_with");
  *(void**)&run = find(handle, "heterosis_run_with");
  *(void**)&threads = find(handle, "heterosis_threads");
  *(void**)&pool_bytes = find(handle, "heterosis_pool_bytes");
  *(void**)&start = find(handle, "heterosis_pool_start");
  *(void**)&stop_pool = find(handle, "heterosis_pool_stop");
  *(void**)&inputs = find(handle, "heterosis_inputs");
  *(void**)&outputs = find(handle, "heterosis_outputs");
  *(void**)&workspace_bytes = find(handle, "heterosis_workspace_bytes");
  *(void**)&sizes = find(handle, "heterosis_sizes");
  *(void**)&at_bytes = find(handle, "heterosis_at_bytes");
  *(void**)&at = find(handle, "heterosis_at");
  *(void**)&message = find(handle, "heterosis_message");
  *(void**)&input_bytes = find(handle, "heterosis_input_bytes");
  *(void**)&output_bytes = find(handle, "heterosis_output_bytes");

  const void* whole = open_library(HETEROSIS_VERSION, weights, NULL);
  if (!whole) stop("the library cannot be used here");
  if (sizes(whole, 0) != count - 4) stop("another number of sizes");
  int64_t given_sizes[MOST], code;
  for (int i = 4; i < count; ++i) given_sizes[i - 4] = atoll(words[i]);
  void* prepared = memory_of(at_bytes(whole, 0));
  const void* library = at(whole, 0, given_sizes, prepared, &code);
  if (!library) stop(message(whole, 0, code));
  const int64_t given = inputs(library, 0), made = outputs(library, 0);
  if (given > MOST || made > MOST) stop("too many arrays");
  const void* from[MOST];
  void* to[MOST];
  for (int64_t i = 0; i < given; ++i) {
    const size_t bytes = (size_t)input_bytes(library, 0, i);
    void* memory = memory_of((int64_t)bytes);
    FILE* file = opened(words[2], "input", i, "rb");
    if (fread(memory, 1, bytes, file) != bytes) stop("an input is too short");
    fclose(file);
    from[i] = memory;
  }
  for (int64_t i = 0; i < made; ++i) to[i] = memory_of(output_bytes(library, 0, i));
  void* workspace = memory_of(workspace_bytes(library, 0));
  void* pool = memory_of(pool_bytes(library, threads(library)));
  if (start(library, pool, threads(library)) < 1) stop("no pool");
  if (run(library, 0, from, to, workspace, pool)) stop("the program failed");
  for (int64_t i = 0; i < made; ++i) {
    FILE* file = opened(words[2], "output", i, "wb");
    fwrite(to[i], 1, (size_t)output_bytes(library, 0, i), file);
    if (fclose(file)) stop("an output cannot be written");
  }
  const long calls = atol(words[3]);
  const double before = microseconds();
  for (long i = 0; i < calls; ++i) run(library, 0, from, to, workspace, pool);
  printf("%g\n", (microseconds() - before) / (double)calls);
  stop_pool(library, pool);
  return 0;
}
