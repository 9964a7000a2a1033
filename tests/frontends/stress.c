/* Calls one library from many threads, each with a workspace of its own, by turns alone, with a pool
   that all share, and with a pool of the caller's. All results must be the bits of the first one.

   stress LIBRARY THREADS SECONDS; built with -DLINKED, the library is linked and not opened. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "heterosis.h"

enum { MOST = 64 };

static void stop(const char* why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

#ifdef LINKED
#define FUNCTION(name) static __typeof__(heterosis_##name)* name##_ = heterosis_##name
#else
#define FUNCTION(name) static __typeof__(heterosis_##name)* name##_
#endif
FUNCTION(open);
FUNCTION(target);
FUNCTION(threads);
FUNCTION(inputs);
FUNCTION(outputs);
FUNCTION(input_bytes);
FUNCTION(output_bytes);
FUNCTION(workspace_bytes);
FUNCTION(pool_bytes);
FUNCTION(pool_start);
FUNCTION(pool_stop);
FUNCTION(run_with);

static void find_all(const char* path) {
#ifndef LINKED
  void* handle = dlopen(path, RTLD_NOW);
  if (!handle) stop(dlerror());
#define FIND(name) if (!(*(void**)&name##_ = dlsym(handle, "heterosis_" #name))) stop(#name)
  FIND(open); FIND(target); FIND(threads); FIND(inputs); FIND(outputs); FIND(input_bytes);
  FIND(output_bytes); FIND(workspace_bytes); FIND(pool_bytes); FIND(pool_start); FIND(pool_stop);
  FIND(run_with);
#else
  (void)path;
#endif
}

static const void* library;
static const void* from[MOST];
static void* expected[MOST];
static heterosis_pool* shared;
static double end_of_test;

static void* memory_of(int64_t bytes) {
  void* memory = bytes < 0 ? NULL : aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
  if (!memory) stop("no memory");
  return memory;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Shares in another order, on the calling thread. */
static void backwards(void* state, heterosis_share share, void* context, int64_t count, int64_t grain) {
  int64_t begin;
  (void)state;
  for (begin = (count - 1) / grain * grain; begin >= 0; begin -= grain) {
    share(context, begin, begin + grain < count ? begin + grain : count, 0);
  }
}

static int64_t run(int way, void** to, void* workspace) {
  const heterosis_pool own = {NULL, backwards, 1};
  const heterosis_pool* pools[3];
  pools[0] = NULL, pools[1] = shared, pools[2] = &own;
  return run_with_(library, 0, from, to, workspace, pools[way % 3]);
}

static void* calls(void* number) {
  void* to[MOST];
  int64_t i, made = outputs_(library, 0);
  intptr_t count = 0;
  int way = (int)(intptr_t)number;
  void* workspace = memory_of(workspace_bytes_(library, 0));
  for (i = 0; i < made; ++i) to[i] = memory_of(output_bytes_(library, 0, i));
  while (seconds() < end_of_test) {
    for (i = 0; i < made; ++i) memset(to[i], 0x55, (size_t)output_bytes_(library, 0, i));
    if (run(way++, to, workspace)) stop("a run failed");
    for (i = 0; i < made; ++i) {
      if (memcmp(to[i], expected[i], (size_t)output_bytes_(library, 0, i))) stop("other results");
    }
    ++count;
  }
  for (i = 0; i < made; ++i) free(to[i]);
  free(workspace);
  return (void*)count;
}

/* Pools that end while their threads look for work. */
static void start_and_stop(int64_t threads) {
  void* memory = memory_of(pool_bytes_(library, threads));
  int turn;
  for (turn = 0; turn < 1000; ++turn) {
    if (pool_start_(library, memory, threads) < 1) stop("no pool");
    pool_stop_(library, memory);
  }
  free(memory);
}

int main(int count, char** words) {
  pthread_t threads[MOST];
  int64_t i, j, started;
  intptr_t all = 0;
  if (count != 4 || atoi(words[2]) > MOST) stop("stress LIBRARY THREADS SECONDS");
  find_all(words[1]);
  library = open_(HETEROSIS_VERSION, NULL);
  if (!library) stop("the library cannot be used here");
  for (i = 0; i < inputs_(library, 0); ++i) {
    const int64_t bytes = input_bytes_(library, 0, i);
    float* numbers = memory_of(bytes);
    for (j = 0; j < bytes / 4; ++j) numbers[j] = (float)(j % 17) / 16.0f - 0.5f;
    from[i] = numbers;
  }
  for (i = 0; i < outputs_(library, 0); ++i) expected[i] = memory_of(output_bytes_(library, 0, i));
  void* workspace = memory_of(workspace_bytes_(library, 0));
  if (run(0, expected, workspace)) stop("the first run failed");
  start_and_stop(threads_(library));
  shared = memory_of(pool_bytes_(library, threads_(library)));
  started = pool_start_(library, shared, threads_(library));
  end_of_test = seconds() + atof(words[3]);
  for (i = 0; i < atoi(words[2]); ++i) {
    if (pthread_create(&threads[i], NULL, calls, (void*)(intptr_t)i)) stop("no thread");
  }
  for (i = 0; i < atoi(words[2]); ++i) {
    void* done;
    pthread_join(threads[i], &done);
    all += (intptr_t)done;
  }
  pool_stop_(library, shared);
  free(shared);
  free(workspace);
  printf("%s: %ld calls from %s threads, a pool of %ld\n", target_(library), (long)all, words[2],
         (long)started);
  return 0;
}
