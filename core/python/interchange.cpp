// Sharing memory with others: the buffer protocol and DLPack, both without a copy.
#include <cstring>
#include <memory>
#include <vector>

#include "array_type.h"
#include "front_lock.h"
#include "recording.h"
#include "remote.h"

namespace heterosis::python {

namespace {

// The structures of DLPack 0.8, as its specification lays them out.
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

constexpr int32_t kCpu = 1;
constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

// Keeps what a consumer reads alive until it calls the deleter.
struct Export {
  DLManagedTensor managed;
  Array array;
};

void delete_export(DLManagedTensor* managed) {
  const std::unique_ptr<Export> held(static_cast<Export*>(managed->context));
  held->array.storage->let_go();
}

void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kFresh)) return;  // its consumer has taken it over
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  managed->deleter(managed);
}

void release_import(void* context) noexcept {
  auto* managed = static_cast<DLManagedTensor*>(context);
  if (!managed->deleter) return;
  PyGILState_STATE state = PyGILState_Ensure();  // the producer may be Python code
  managed->deleter(managed);
  PyGILState_Release(state);
}

DType dtype_of(const DLDataType& type) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (facts(dtype).dlpack_code == type.code && itemsize(dtype) * 8 == type.bits && type.lanes == 1) {
      return dtype;
    }
  }
  throw Failure(ErrorKind::value, "from_dlpack: element type (code " + std::to_string(type.code) +
                                      ", " + std::to_string(type.bits) + " bits) is not supported.");
}

// Bytes from the lowest to the highest element, and where the first one stands among them.
struct Span {
  int64_t low = 0;
  int64_t high = 0;
};

Span span_of(const Dims& shape, const Dims& strides, int64_t size) {
  Span span{0, size};
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {0, 0};
    const int64_t reach = (shape[i] - 1) * strides[i] * size;
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

Array import_tensor(DLManagedTensor* managed) {
  const DLTensor& tensor = managed->tensor;
  if (tensor.device.device_type != kCpu) {
    throw Failure(ErrorKind::value, "from_dlpack: the data are not in main memory.");
  }
  if (tensor.ndim > kMaxRank) throw Failure(ErrorKind::value, "from_dlpack: too many dimensions.");
  Array array;
  array.dtype = dtype_of(tensor.dtype);
  array.shape.resize(tensor.ndim);
  std::copy_n(tensor.shape, tensor.ndim, array.shape.data());
  check_extents(array.shape);
  array.strides = row_major(array.shape);
  if (tensor.strides) std::copy_n(tensor.strides, tensor.ndim, array.strides.data());
  array.contiguous = is_contiguous(array.shape, array.strides);
  const Span span = span_of(array.shape, array.strides, itemsize(array.dtype));
  array.offset = -span.low;
  auto* first = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  array.storage = Storage::adopt(first + span.low, span.high - span.low, release_import, managed);
  if (current_device() < kFirstRemote) array.storage->device = current_device();
  return array;
}

// What a Py_buffer points to.
struct BufferShape {
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
  char format[2];
};

// Of an array that is not in main memory, for reading alone: writes would reach a copy.
void lend_copy(PyObject* self, Py_buffer* view, int flags) {
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "the array is on a device, where nobody else can write");
    throw PythonError();
  }
  check_read(self);
  const Object copy = in_main_memory(self);
  if (PyObject_GetBuffer(copy.get(), view, flags)) throw PythonError();
  view->readonly = 1;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_status([&] {
    const Array& array = as_array(self);
    if (array.storage->is_remote()) return lend_copy(self, view, flags);
    if (!facts(array.dtype).format) {
      PyErr_SetString(PyExc_BufferError, "bfloat16 has no buffer format; use .asnumpy()");
      throw PythonError();
    }
    if (!array.contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
      PyErr_SetString(PyExc_BufferError, "the array has gaps, and the consumer takes no strides");
      throw PythonError();
    }
    check_read(self);
    const FrontLock lock;
    wait_until_ours(array.storage->variable);
    array.storage->ensure();
    auto held = std::make_unique<BufferShape>();
    const int64_t size = itemsize(array.dtype);
    for (int i = 0; i < array.rank(); ++i) {
      held->shape.push_back(array.shape[i]);
      held->strides.push_back(array.strides[i] * size);
    }
    held->format[0] = facts(array.dtype).format;
    held->format[1] = 0;
    view->obj = Py_NewRef(self);
    view->buf = array.data();
    view->len = array.nbytes();
    view->readonly = 0;
    view->itemsize = size;
    view->format = flags & PyBUF_FORMAT ? held->format : nullptr;
    view->ndim = array.rank();
    view->shape = flags & PyBUF_ND ? held->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? held->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = held.release();
    array.storage->hold();
  });
}

void release_buffer(PyObject* self, Py_buffer* view) {
  delete static_cast<BufferShape*>(view->internal);
  as_array(self).storage->let_go();
}

PyObject* to_dlpack(PyObject* self, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Array& array = as_array(self);
    check_read(self);
    const FrontLock lock;
    wait_for(array.storage->variable);
    if (array.storage->is_remote()) {
      const InPython others;
      return checked(PyObject_CallFunctionObjArgs(hook("remote_dlpack"), self, nullptr)).release();
    }
    array.storage->ensure();
    auto held = std::make_unique<Export>();
    held->array = array;
    const auto bits = static_cast<uint8_t>(itemsize(array.dtype) * 8);
    held->managed.tensor = {array.data(),
                            {kCpu, 0},
                            array.rank(),
                            {facts(array.dtype).dlpack_code, bits, 1},
                            held->array.shape.data(),
                            held->array.strides.data(),
                            0};
    held->managed.context = held.get();
    held->managed.deleter = delete_export;
    array.storage->hold();
    PyObject* capsule = PyCapsule_New(&held->managed, kFresh, drop_capsule);
    if (capsule) held.release();
    return capsule;
  });
}

PyObject* from_dlpack(PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
    if (!managed) throw PythonError();
    Array array = import_tensor(managed);
    PyCapsule_SetName(capsule, kUsed);
    return wrap(std::move(array));
  });
}

}  // namespace heterosis::python
