/* Times calls of an exported network of 512 inputs and 2 outputs: call_library LIBRARY INPUT [checked]
   cc -O2 call_library.c -I../src/heterosis/backends -ldl -o call_library */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "heterosis.h"
#include "timing.h"

static float x[512], made[2];
static const void* library;
static void* workspace;
static __typeof__(heterosis_run)* run;

static void call(void) {
  const void* from[] = {x};
  void* to[] = {made};
  if (run(library, 0, from, to, workspace)) stop("a run failed");
}

static void* found(void* handle, const char* name) {
  void* function = dlsym(handle, name);
  if (!function) stop(dlerror());
  return function;
}

static void open_library(const char* path) {
  char weights[4096];
  void* handle = dlopen(path, RTLD_NOW);
  if (!handle) stop(dlerror());
  snprintf(weights, sizeof weights, "%.*s.weights", (int)strlen(path) - 3, path);
  __typeof__(heterosis_open_with)* opened = found(handle, "heterosis_open_with");
  __typeof__(heterosis_workspace_bytes)* bytes = found(handle, "heterosis_workspace_bytes");
  run = found(handle, "heterosis_run");
  library = opened(HETEROSIS_VERSION, weights, NULL);
  if (!library) stop("the library cannot be used here");
  workspace = aligned_alloc(64, ((size_t)bytes(library, 0) + 64) / 64 * 64);
}

int main(int count, char** words) {
  double begin, first;
  if (count < 3) stop("call_library LIBRARY INPUT [checked]");
  read_file(words[2], x, sizeof x);
  begin = seconds();
  if (count > 3 && heterosis_check(words[1])) stop(heterosis_check(words[1]));
  open_library(words[1]);
  call();
  first = seconds() - begin;
  report(first, resident_kilobytes(), call, made);
  return 0;
}
