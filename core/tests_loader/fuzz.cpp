// Damaged objects: each must load or be refused with a LoadError. The sanitizers watch.
#include <elf.h>

#include <cstring>
#include <random>

#include "../object_loader.h"
#include "testing.h"

using heterosis::LoadedObject;
using heterosis::LoadError;

namespace {

// From a block of its exact size, so that reading one byte too far is seen.
bool loads(const Bytes& object) {
  try {
    LoadedObject::load(object, resolve);
    return true;
  } catch (const LoadError&) {
    return false;
  }
}

void truncate(const Bytes& object) {
  for (std::size_t size = 0; size < object.size(); ++size)
    loads(Bytes(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(size)));
}

template <class Word>
void overwrite(const Bytes& object, std::size_t at, Word word) {
  Bytes damaged = object;
  std::memcpy(damaged.data() + at, &word, sizeof word);
  loads(damaged);
}

// Every aligned word of the file, each replaced by the numbers that arithmetic trips over.
void plant_extremes(const Bytes& object) {
  const std::uint64_t extremes[] = {0,          1,          object.size(),      object.size() - 1,
                                    0x7fffffff, 0x80000000, ~std::uint64_t{0},  ~std::uint64_t{7},
                                    1ull << 63, 1ull << 62, 0x0fffffff00000000, 1ull << 28};
  for (std::size_t at = 0; at + 8 <= object.size(); at += 4)
    for (const std::uint64_t extreme : extremes) {
      overwrite(object, at, extreme);
      overwrite(object, at, static_cast<std::uint32_t>(extreme));
    }
}

void flip(const Bytes& object, int rounds) {
  std::mt19937_64 random(1);
  int loaded = 0;
  for (int round = 0; round < rounds; ++round) {
    Bytes damaged = object;
    for (auto flips = 1 + random() % 8; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    loaded += loads(damaged);
  }
  std::printf("fuzz: %d of %d damaged objects were still loadable\n", loaded, rounds);
}

}  // namespace

void fuzz(const Bytes& object) {
  CHECK(loads(object));
  truncate(object);
  plant_extremes(object);
  flip(object, 30000);
}
