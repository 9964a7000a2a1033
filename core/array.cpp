#include "array.h"

#include "error.h"

namespace heterosis {

namespace {

[[gnu::tls_model("initial-exec")]] thread_local int device_now = 0;

}  // namespace

int current_device() { return device_now; }
void set_current_device(int device) { device_now = device; }

int64_t Array::size() const {
  int64_t total = 1;
  for (int64_t extent : shape) total *= extent;
  return total;
}

std::string Array::describe() const {
  std::string text(facts(dtype).name);
  text += '[';
  for (int i = 0; i < rank(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ']';
}

Dims row_major(const Dims& shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

bool is_contiguous(const Dims& shape, const Dims& strides) {
  int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

void check_extents(const Dims& shape) {
  for (int64_t extent : shape) {
    if (extent >= 0) continue;
    throw Failure(ErrorKind::shape, "an array cannot have an extent of " + std::to_string(extent) +
                                        "; expected numbers from 0 on.");
  }
}

Array make_array(DType dtype, Dims shape) {
  check_extents(shape);
  Array array;
  array.dtype = dtype;
  array.strides = row_major(shape);
  array.shape = std::move(shape);
  array.storage = Storage::make(array.nbytes());
  array.storage->device = current_device();
  return array;
}

Array make_view(const Array& base, Dims shape, Dims strides, int64_t offset) {
  check_extents(shape);
  Array view;
  view.storage = base.storage;
  view.offset = base.offset + offset * itemsize(base.dtype);
  view.dtype = base.dtype;
  view.contiguous = is_contiguous(shape, strides);
  view.is_detached = base.is_detached;
  view.shape = std::move(shape);
  view.strides = std::move(strides);
  return view;
}

}  // namespace heterosis
