// Memory for the small objects of the hot path (tasks, storages): made on one thread, destroyed on
// another, thousands a millisecond. Blocks wait on one locked list a size and never leave it, so
// the memory held is that of the largest number of objects alive at once.
#pragma once

#include <cstddef>

namespace heterosis {

void* recycled_new(std::size_t size);
void recycled_delete(void* block, std::size_t size) noexcept;

// Around fork(): no other thread may be inside a list that the child inherits.
void recycling_lock();
void recycling_unlock();

// Base of classes whose objects are made this way. Derived sizes come out right because deletion
// passes the size of the dynamic type (through a virtual destructor where there are subclasses).
struct Recycled {
  static void* operator new(std::size_t size) { return recycled_new(size); }
  static void operator delete(void* block, std::size_t size) noexcept {
    recycled_delete(block, size);
  }
};

}  // namespace heterosis
