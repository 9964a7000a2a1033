// Basic indexing: integers, slices, None and Ellipsis select a view without touching an element.
#include <optional>
#include <string>
#include <vector>

#include "array_type.h"
#include "front_lock.h"
#include "operation_type.h"
#include "recording.h"
#include "view_notes.h"

namespace heterosis::python {

namespace {

class Selection {
 public:
  explicit Selection(const Array& array) : array_(array) {}

  // False if `key` is of a kind that selects by elements: arrays, lists, masks.
  bool apply(PyObject* key) {
    if (!PyTuple_Check(key)) return apply_all(&key, 1);
    return apply_all(&PyTuple_GET_ITEM(key, 0), PyTuple_GET_SIZE(key));
  }

  Array result() const {
    Dims shape(static_cast<int>(shape_.size()));
    Dims strides(static_cast<int>(strides_.size()));
    std::copy(shape_.begin(), shape_.end(), shape.data());
    std::copy(strides_.begin(), strides_.end(), strides.data());
    return make_view(array_, std::move(shape), std::move(strides), offset_);
  }

 private:
  bool apply_all(PyObject** items, Py_ssize_t count) {
    int used = 0;
    int ellipses = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!is_basic(items[i])) return false;
      ellipses += items[i] == Py_Ellipsis;
      used += items[i] != Py_None && items[i] != Py_Ellipsis;
    }
    if (ellipses > 1) fail("an index may hold one ellipsis ('...') at most");
    if (used > array_.rank()) {
      fail("too many indices: " + std::to_string(used) + " for " + array_.describe());
    }
    for (Py_ssize_t i = 0; i < count; ++i) select(items[i], array_.rank() - used);
    while (at_ < array_.rank()) keep();
    if (shape_.size() > static_cast<size_t>(kMaxRank)) {
      fail("the result would have more than " + std::to_string(kMaxRank) + " dimensions");
    }
    return true;
  }

  static bool is_basic(PyObject* item) {
    return PyLong_CheckExact(item) || PySlice_Check(item) || item == Py_None ||
           item == Py_Ellipsis || (PyIndex_Check(item) && !PyBool_Check(item) && !is_array(item) &&
                                   !PyObject_HasAttrString(item, "__array__"));
  }

  void select(PyObject* item, int skipped) {
    if (item == Py_None) {
      shape_.push_back(1);
      strides_.push_back(0);
    } else if (item == Py_Ellipsis) {
      for (int i = 0; i < skipped; ++i) keep();
    } else if (PySlice_Check(item)) {
      slice(item);
    } else {
      pick(item);
    }
  }

  void keep() {
    shape_.push_back(array_.shape[at_]);
    strides_.push_back(array_.strides[at_]);
    ++at_;
  }

  void slice(PyObject* item) {
    Py_ssize_t start;
    Py_ssize_t stop;
    Py_ssize_t step;
    if (PySlice_Unpack(item, &start, &stop, &step)) throw PythonError();
    const Py_ssize_t length = PySlice_AdjustIndices(array_.shape[at_], &start, &stop, step);
    if (length > 0) offset_ += start * array_.strides[at_];
    shape_.push_back(length);
    strides_.push_back(step * array_.strides[at_]);
    ++at_;
  }

  void pick(PyObject* item) {
    const Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_IndexError)) throw PythonError();
      PyErr_Clear();
      fail("an index of more than 64 bits is out of bounds for axis " + std::to_string(at_) +
           " of " + array_.describe());
    }
    const int64_t extent = array_.shape[at_];
    if (index < -extent || index >= extent) {
      fail("index " + std::to_string(index) + " is out of bounds for axis " + std::to_string(at_) +
           " of " + array_.describe() + "; expected " + std::to_string(-extent) +
           " <= index < " + std::to_string(extent));
    }
    offset_ += (index < 0 ? index + extent : index) * array_.strides[at_];
    ++at_;
  }

  [[noreturn]] static void fail(const std::string& message) {
    throw Failure(ErrorKind::index, message + ".");
  }

  const Array& array_;
  int at_ = 0;  // next dimension of the array
  int64_t offset_ = 0;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
};

// The view that a basic key selects; nothing for other keys.
std::optional<Array> select_view(PyObject* self, PyObject* key) {
  Selection selection(as_array(self));
  if (!selection.apply(key)) return std::nullopt;
  return selection.result();
}

// Rows that follow one another share their memory in MXNet, too.
void note_item(PyObject* item, PyObject* self, PyObject* key) {
  const std::optional<Array> view = select_view(self, key);
  if (view && !view->contiguous) note_view(item, self);
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    Object item;
    if (!is_followed(self)) {
      std::optional<Array> view = select_view(self, key);
      if (view) item = checked(wrap(std::move(*view)));
    }
    const BesideArguments there(&self, 1);
    if (!item) item = checked(PyObject_CallFunctionObjArgs(hook("getitem"), self, key, nullptr));
    if (noting_views) {
      const FrontLock lock;
      note_item(item.get(), self, key);
    }
    return item.release();
  });
}

PyObject* get_view(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    std::optional<Array> view = select_view(self, key);
    if (view) return wrap(std::move(*view));
    PyErr_Format(PyExc_TypeError, "%R selects by elements: there is no view of these", key);
    throw PythonError();
  });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_status([&] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted; see np.delete");
      throw PythonError();
    }
    if (noting_views) {
      const FrontLock lock;
      tell_of_own_write(self);
    }
    const bool noted = is_followed(self) || is_followed(value);
    std::optional<Array> view = noted ? std::nullopt : select_view(self, key);
    if (!view) {
      const BesideArguments there(&self, 1);
      checked(PyObject_CallFunctionObjArgs(hook("setitem"), self, key, value, nullptr));
      return;
    }
    const Object target = checked(wrap(std::move(*view)));
    checked(call_operator_into(Operator::assign, &value, target.get()));
  });
}

}  // namespace heterosis::python
