// The sizes of memory blocks: multiples of 64 up to 512, then eight steps a doubling, so that a
// block is at most an eighth larger than asked, and like sizes share a cache.
#pragma once

#include <bit>
#include <cstdint>

namespace heterosis {

constexpr int kSmallClasses = 8;
constexpr int kClasses = kSmallClasses + 38 * 8;
constexpr int64_t kLargestBlock = int64_t{1} << 47;  // larger than any address space

// The class of blocks of at least `nbytes`, 1 <= nbytes <= kLargestBlock.
constexpr int class_of(int64_t nbytes) {
  const uint64_t last = static_cast<uint64_t>(nbytes) - 1;
  if (last < 512) return static_cast<int>(last / 64);
  const int doubling = std::bit_width(last) - 10;  // 0 for 513..1024
  const int step = static_cast<int>(last >> (doubling + 6)) - 8;
  return kSmallClasses + doubling * 8 + step;
}

constexpr int64_t class_size(int index) {
  if (index < kSmallClasses) return int64_t{64} * (index + 1);
  const int doubling = (index - kSmallClasses) / 8;
  const int step = (index - kSmallClasses) % 8;
  return int64_t{step + 9} << (doubling + 6);
}

static_assert(class_size(class_of(1)) == 64 && class_size(class_of(512)) == 512);
static_assert(class_size(class_of(513)) == 576 && class_size(class_of(1024)) == 1024);
static_assert(class_size(class_of(1025)) == 1152 && class_size(class_of(4 << 20)) == 4 << 20);
static_assert(class_of(kLargestBlock) == kClasses - 1 && class_size(kClasses - 1) == kLargestBlock);

}  // namespace heterosis
