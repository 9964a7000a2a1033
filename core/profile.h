// When each operation ran, while somebody asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace heterosis {

struct ProfiledRun {
  std::string operation;
  int64_t queued;   // nanoseconds of the monotonic clock: when the call was issued,
  int64_t started;  // and when its work began
  int64_t ended;
  int64_t thread;   // as the system numbers them
  bool in_lane;     // on the thread for what waits for somebody outside
};

// Collects runs from all threads. Off, it costs one relaxed load a call.
class Profile {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void set(bool on) { on_.store(on, std::memory_order_relaxed); }

  static int64_t now();
  void add(const std::string& operation, int64_t queued, int64_t started,
           bool in_lane = false);  // ends now

  // What has been collected since the last time.
  std::vector<ProfiledRun> take();

 private:
  std::atomic<bool> on_{false};
};

Profile& profile();

}  // namespace heterosis
