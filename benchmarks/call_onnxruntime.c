/* Times calls of a network of 512 inputs and 2 outputs in ONNX Runtime, through its C API, with one
   thread and memory for the outputs that is given:
   call_onnxruntime LIBONNXRUNTIME MODEL INPUTS OUTPUTS NAME
   The files are those of call_library.c; the output has a name.
   cc -O2 call_onnxruntime.c -ldl -o call_onnxruntime
   The package of Python has the library and no header. The table of its functions only ever grows at
   its end, so that each keeps its place in it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#include "timing.h"

enum { API_VERSION = 11, FLOAT = 1, ARENA = 1, DEFAULT_MEMORY = 0, WARNING = 2, ALL_OPTIMIZATIONS = 99 };
enum { /* places in the table */
  GET_ERROR_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_SESSION_OPTIONS = 10,
  SET_OPTIMIZATIONS = 23, SET_THREADS_IN_NODES = 24, SET_THREADS_OF_NODES = 25,
  CREATE_TENSOR_WITH_DATA = 49, CREATE_CPU_MEMORY_INFO = 69
};

typedef struct {
  void* const* (*table)(uint32_t version);
  const char* (*version)(void);
} base;

static void* const* api;
static void *session, *values[2];
static float x[512], made[2];
static const char *input_name, *output_name;

static void check(void* status) {
  if (status) stop(((const char* (*)(const void*))api[GET_ERROR_MESSAGE])(status));
}

static void call(void) {
  typedef void* run(void*, const void*, const char* const*, void* const*, size_t,
                    const char* const*, size_t, void**);
  check(((run*)api[RUN])(session, NULL, &input_name, &values[0], 1, &output_name, 1, &values[1]));
}

static void* tensor(void* memory, float* data, int64_t columns) {
  typedef void* create(const void*, void*, size_t, const int64_t*, size_t, int, void**);
  const int64_t shape[] = {1, columns};
  void* found;
  check(((create*)api[CREATE_TENSOR_WITH_DATA])(memory, data, (size_t)columns * sizeof *data, shape,
                                                2, FLOAT, &found));
  return found;
}

static void open_session(const char* path, const char* model) {
  void *handle = dlopen(path, RTLD_NOW), *environment, *options, *memory;
  if (!handle) stop(dlerror());
  const base* (*entry)(void) = (const base* (*)(void))dlsym(handle, "OrtGetApiBase");
  if (!entry) stop(dlerror());
  api = entry()->table(API_VERSION);
  if (!api) stop("ONNX Runtime has no such version of its API");
  check(((void* (*)(int, const char*, void**))api[CREATE_ENV])(WARNING, "call", &environment));
  check(((void* (*)(void**))api[CREATE_SESSION_OPTIONS])(&options));
  check(((void* (*)(void*, int))api[SET_OPTIMIZATIONS])(options, ALL_OPTIMIZATIONS));
  check(((void* (*)(void*, int))api[SET_THREADS_IN_NODES])(options, 1));
  check(((void* (*)(void*, int))api[SET_THREADS_OF_NODES])(options, 1));
  check(((void* (*)(void*, const char*, void*, void**))api[CREATE_SESSION])(environment, model,
                                                                            options, &session));
  check(((void* (*)(int, int, void**))api[CREATE_CPU_MEMORY_INFO])(ARENA, DEFAULT_MEMORY, &memory));
  values[0] = tensor(memory, x, 512);
  values[1] = tensor(memory, made, 2);
}

static void take(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file || fread(x, 1, sizeof x, file) != sizeof x) stop(path);
  fclose(file);
}

static void give(const char* path) {
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(made, 1, sizeof made, file) != sizeof made) stop(path);
  fclose(file);
}

int main(int count, char** words) {
  double begin, first;
  if (count != 6) stop("call_onnxruntime LIBONNXRUNTIME MODEL INPUTS OUTPUTS NAME");
  input_name = "x";
  output_name = words[5];
  begin = seconds();
  open_session(words[1], words[2]);
  take(words[3]);
  call();
  first = seconds() - begin;
  report(first, resident_kilobytes(), call);
  give(words[4]);
  return 0;
}
