// What happens around fork(): the parent's tasks are finished first and all locks are taken, so
// that the child finds whole values, whole lists, and no thread missing that it would wait for.
#include <pthread.h>

#include "allocator.h"
#include "engine.h"
#include "pool.h"
#include "processors.h"
#include "recycle.h"

namespace heterosis {
namespace {

void prepare() {
  engine().before_fork();
  pool().before_fork();
  processors_before_fork();
  allocator_lock();
  recycling_lock();
}

void resume(bool child) {
  recycling_unlock();
  allocator_unlock();
  processors_after_fork(child);
  pool().after_fork(child);
  engine().after_fork(child);
}

// When the library is loaded: before any thread can be started.
[[maybe_unused]] const int registered =
    pthread_atfork(prepare, [] { resume(false); }, [] { resume(true); });

}  // namespace
}  // namespace heterosis
