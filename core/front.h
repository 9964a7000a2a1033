// The front end's threads: whether they run side by side, and how work that one of them runs inline
// lets the others go on.
#pragma once

namespace heterosis {

// Whether the front end's own lock, which a thread holds while it is in the core, is ours: Python
// without its interpreter lock. Where Python has that, what depends on this costs nothing.
#ifdef HETEROSIS_FREE_THREADED
inline constexpr bool kFreeThreaded = true;
#else
inline constexpr bool kFreeThreaded = false;
#endif

// How a thread that computes lets go of the front end's lock, and takes it back. Set once, before
// there is a second thread.
struct Front {
  void* (*leave)() = nullptr;  // null from a thread that does not hold the lock
  void (*enter)(void* left) = nullptr;
};
inline Front front;

// While this lives, other threads may use the front end.
class OutsideFront {
 public:
  OutsideFront() : left_(front.leave ? front.leave() : nullptr) {}
  ~OutsideFront() noexcept(false) {  // a process that ends may end the thread here
    if (left_) front.enter(left_);
  }
  OutsideFront(const OutsideFront&) = delete;
  OutsideFront& operator=(const OutsideFront&) = delete;

 private:
  void* const left_;
};

}  // namespace heterosis
