#include "profile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <utility>

namespace heterosis {

namespace {

std::mutex mutex;
std::vector<ProfiledRun> runs;  // guarded by mutex

}  // namespace

int64_t Profile::now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void Profile::add(const std::string& operation, int64_t queued, int64_t started, bool in_lane) {
  const int64_t ended = now();
  const std::lock_guard lock(mutex);
  runs.push_back({operation, queued, started, ended, syscall(SYS_gettid), in_lane});
}

std::vector<ProfiledRun> Profile::take() {
  const std::lock_guard lock(mutex);
  return std::exchange(runs, {});
}

Profile& profile() {
  static Profile instance;
  return instance;
}

}  // namespace heterosis
