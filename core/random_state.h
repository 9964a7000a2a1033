// Where random operations take their numbers from: a seed, and how many keys have been drawn.
#pragma once

#include <cstdint>

namespace heterosis {

// Guarded by the front end's lock, like every call that draws a key.
class RandomState {
 public:
  void seed(uint64_t seed) { seed_ = seed, drawn_ = 0; }

  // A key for one operation. Its numbers are a function of the key and of each element's place,
  // so they depend neither on threads nor on how operations are compiled together.
  int64_t next() {
    uint64_t x = seed_ + ++drawn_ * 0x9E3779B97F4A7C15ull;  // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return static_cast<int64_t>(x ^ (x >> 31));
  }

  uint64_t seed() const { return seed_; }
  uint64_t drawn() const { return drawn_; }
  void restore(uint64_t seed, uint64_t drawn) { seed_ = seed, drawn_ = drawn; }

 private:
  uint64_t seed_ = 0;
  uint64_t drawn_ = 0;
};

inline RandomState& random_state() {
  static RandomState state;
  return state;
}

}  // namespace heterosis
