// A view of a storage: element type, shape, strides, and where the first element stands.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "dims.h"
#include "dtype.h"
#include "ref.h"
#include "storage.h"

namespace heterosis {

// Invariant: every element lies inside the storage. Strides count elements and may be zero or
// negative. `contiguous` says that the elements stand in row-major order without gaps.
struct Array {
  Ref<Storage> storage;
  int64_t offset = 0;  // bytes from the start of the storage to the first element
  DType dtype = DType::float32;
  bool contiguous = true;
  bool is_detached = false;  // whether what recorded calls write to its memory is not its own
  Dims shape;
  Dims strides;

  int rank() const { return shape.size(); }
  int64_t size() const;
  int64_t nbytes() const { return size() * itemsize(dtype); }
  std::byte* data() const { return static_cast<std::byte*>(storage->data()) + offset; }

  // "float32[2, 3]"
  std::string describe() const;
};

// Strides of an array of `shape` in row-major order without gaps.
Dims row_major(const Dims& shape);

// Whether the elements stand in row-major order without gaps; extents of 1 do not count.
bool is_contiguous(const Dims& shape, const Dims& strides);

// Throws if an extent is negative: two of them would make a positive size, and an array of memory
// that nobody has written.
void check_extents(const Dims& shape);

// The number of the context that the calling thread makes arrays on, where no operand says it.
int current_device();
void set_current_device(int device);

// Makes a device the current one, as long as this lives.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(current_device()) { set_current_device(device); }
  ~OnDevice() { set_current_device(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const int before_;
};

// A new array without gaps, on the current device. Its memory is allocated by the first work that
// writes it.
Array make_array(DType dtype, Dims shape);

// Another view of the storage of `base`, as detached as that one; `offset` counts elements from the
// first of `base`.
Array make_view(const Array& base, Dims shape, Dims strides, int64_t offset);

}  // namespace heterosis
