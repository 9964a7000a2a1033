// The contract between compiled functions and whoever calls them: the engine here, or a program
// without Python that loads an exported library. Plain C, nothing else of the framework inside.
//
// src/heterosis/backends/native/codegen/emit/abi.py describes the same layout to the code
// generator; change both.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One share of a parallel loop: indices [begin, end). `worker` is unique among the shares running
// at the same time and below `hx_runtime.workers`, so that it can select private scratch memory.
typedef void (*hx_loop_body)(void* context, int64_t begin, int64_t end, int64_t worker);

// What compiled code may ask of its host.
typedef struct hx_runtime {
  void* pool;
  // Runs `body` over [0, count) in shares of `grain` indices (the last may be shorter), handed out
  // dynamically, and returns when all are done. Runs on the calling thread alone if count <= grain.
  // No share may wait for another: they may all run on one thread, in any order.
  void (*parallel_for)(void* pool, hx_loop_body body, void* context, int64_t count, int64_t grain);
  int64_t workers;
} hx_runtime;

typedef struct hx_call {
  void* const* buffers;      // inputs, then outputs, each at its first element
  const int64_t* integers;   // sizes and strides (in elements) of a function compiled for any size
  const int64_t* scalars;    // bits of number arguments: int64, or the bits of a double
  void* workspace;           // 64-byte aligned scratch of the size the plan asked for
  const hx_runtime* runtime;
} hx_call;

// Zero for success; otherwise a code whose meaning the plan that owns the function knows: which of
// its failures in the low 16 bits, counted from one, and a number for the message above them.
typedef int64_t (*hx_function)(const hx_call* call);

#ifdef __cplusplus
}
#endif
