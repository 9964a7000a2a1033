/* HETEROSIS_LIBRARY=libmy_mlp.so ... ./library_test; ../README.md says which libraries the variables
   name. Built like run_mlp.c, with -std=gnu11 and -ldl. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "my_mlp.h"

#define EXPECT(holds) ((holds) ? (void)0 : fail(#holds, __LINE__))

static void fail(const char* what, int line) {
  fprintf(stderr, "library_test.c:%d: %s\n", line, what);
  exit(1);
}

static void* memory_of(int64_t bytes) { return aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64); }

static int says(const void* library, int64_t code, const char* part) {
  const char* message = heterosis_message(library, 0, code);
  return message && strstr(message, part) != NULL;
}

static float x[3 * 512], scores[2];

static void tells_what_there_is(const void* library) {
  EXPECT(!strcmp(heterosis_name(library), "my_mlp"));
  EXPECT(heterosis_entries(library) == 1);
  EXPECT(!strcmp(heterosis_entry_name(library, 0), "forward"));
  EXPECT(heterosis_inputs(library, 0) == 1 && heterosis_outputs(library, 0) == 1);
  EXPECT(!strcmp(heterosis_input_name(library, 0, 0), "x"));
  EXPECT(heterosis_input_dtype(library, 0, 0) == HETEROSIS_FLOAT32);
  EXPECT(heterosis_input_rank(library, 0, 0) == 2 && heterosis_input_bytes(library, 0, 0) == 2048);
  EXPECT(heterosis_output_extent(library, 0, 0, 1) == 2);
  EXPECT(!strcmp(heterosis_output_extent_text(library, 0, 0, 1), "2"));
  EXPECT(heterosis_sizes(library, 0) == 0);
}

static void refuses(const void* library, void* workspace) {
  int64_t code = 0;
  const void *from[] = {x}, *nowhere[] = {NULL};
  void* to[] = {scores};
  char* behind = (char*)workspace + 1;
  EXPECT(!heterosis_open(HETEROSIS_VERSION + 1, &code) && code == HETEROSIS_OTHER_VERSION);
  EXPECT(heterosis_entries(NULL) == HETEROSIS_FOREIGN);
  EXPECT(heterosis_entries(&code) == HETEROSIS_FOREIGN);
  EXPECT(heterosis_inputs(library, 1) == HETEROSIS_NO_ENTRY);
  EXPECT(heterosis_input_bytes(library, 0, -1) == HETEROSIS_NO_ENTRY);
  EXPECT(!heterosis_input_name(library, 0, 1));
  EXPECT(heterosis_run(library, 0, NULL, to, workspace) == HETEROSIS_NULL);
  EXPECT(heterosis_run(library, 0, nowhere, to, workspace) == HETEROSIS_NULL);
  EXPECT(heterosis_run(library, 0, from, to, behind) == HETEROSIS_WORKSPACE);
  EXPECT(heterosis_pool_bytes(library, 2) == HETEROSIS_POOL);
  EXPECT(says(library, HETEROSIS_WORKSPACE, "aligned_alloc"));
  EXPECT(says(NULL, HETEROSIS_NULL, "NULL"));
}

static void* found(void* handle, const char* name) {
  void* function = dlsym(handle, name);
  EXPECT(function != NULL);
  return function;
}

/* Libraries show functions of the same names: a second one is asked through dlsym. */
static void runs_at_sizes(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(handle != NULL);
  __typeof__(heterosis_open)* open_sized = found(handle, "heterosis_open");
  __typeof__(heterosis_at)* at = found(handle, "heterosis_at");
  __typeof__(heterosis_run)* run = found(handle, "heterosis_run");
  __typeof__(heterosis_at_bytes)* at_bytes = found(handle, "heterosis_at_bytes");
  __typeof__(heterosis_workspace_bytes)* bytes = found(handle, "heterosis_workspace_bytes");
  __typeof__(heterosis_message)* message = found(handle, "heterosis_message");
  int64_t code = 0;
  const int64_t three[] = {3}, none[] = {0};
  const void* sized = open_sized(HETEROSIS_VERSION, NULL);
  void* memory = memory_of(at_bytes(sized, 0));
  const void* there = at(sized, 0, three, memory, &code);
  EXPECT(there == memory && code == 0);
  float made[6];
  const void* from[] = {x};
  void* to[] = {made};
  EXPECT(run(sized, 0, from, to, memory) == HETEROSIS_SIZES);
  void* workspace = memory_of(bytes(there, 0));
  EXPECT(run(there, 0, from, to, workspace) == 0);
  EXPECT(made[4] == made[0] && made[5] == made[1]);
  EXPECT(!at(sized, 0, none, memory, &code) && code == HETEROSIS_SIZES);
  EXPECT(strstr(message(sized, 0, code), "n0 from 1 to") != NULL);
  free(workspace);
  free(memory);
}

int main(void) {
  const char *path = getenv("HETEROSIS_LIBRARY"), *sized = getenv("HETEROSIS_SIZED");
  const char* other = getenv("HETEROSIS_OTHER");
  int64_t code = -1;
  EXPECT(path && sized && !heterosis_check(path) && heterosis_check("nowhere"));
  EXPECT(other && strstr(heterosis_check(other), "for another family of processors"));
  const void* library = heterosis_open(HETEROSIS_VERSION, &code);
  EXPECT(library && code == 0);
  for (int i = 0; i < 3 * 512; ++i) x[i] = 0.5f;
  tells_what_there_is(library);
  void* workspace = memory_of(heterosis_workspace_bytes(library, 0));
  EXPECT(my_mlp_forward(library, x, scores, workspace) == 0);
  EXPECT(isfinite(scores[0]) && scores[0] != scores[1]);
  refuses(library, workspace);
  free(workspace);
  EXPECT(heterosis_close(library) == 0);
  runs_at_sizes(sized);
  puts("all passed");
  return 0;
}
