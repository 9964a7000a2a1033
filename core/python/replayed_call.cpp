#include "replayed_call.h"

#include <bit>
#include <cmath>
#include <limits>

#include "../pool.h"
#include "array_type.h"
#include "front_lock.h"
#include "recording.h"

namespace heterosis::python {

namespace {

constexpr int kDepth = 8;  // of containers in containers

// Of all that are not a number, one.
int64_t bits_of(double number) {
  return std::bit_cast<int64_t>(std::isnan(number) ? std::numeric_limits<double>::quiet_NaN()
                                                   : number);
}

}  // namespace

Call::Call(PyObject* const* given, Py_ssize_t count, PyObject* names) {
  const uint64_t modes = (is_training() ? 1 : 0) | (is_recording() ? 2 : 0);
  signature_.begin(modes, pool().intra_op_threads());
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!add(given[i], 0)) return;
  }
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (!add_text(PyTuple_GET_ITEM(names, i)) || !add(given[count + i], 0)) return;
  }
  signature_.set_device(device());
  is_plain_ = true;
}

bool Call::add(PyObject* argument, int depth) {
  if (signature_.full() || depth > kDepth) return false;
  if (is_array(argument)) {
    const int device = as_array(argument).storage->device;
    if (device_ >= 0 && device != device_) return false;
    device_ = device;
    arrays_[signature_.array_count] = argument;
    if (depth > 0) held_.push_back(Object::borrowed(argument));
    signature_.add_array(as_array(argument));
    return true;
  }
  if (argument == Py_None) return signature_.add_none(), true;
  if (PyBool_Check(argument)) {
    signature_.add_word(Tag::boolean, argument == Py_True);
    return true;
  }
  if (PyLong_CheckExact(argument)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (overflow) return false;
    signature_.add_word(Tag::integer, static_cast<uint64_t>(number));
    return true;
  }
  if (PyFloat_CheckExact(argument)) {
    signature_.add_number(Tag::real, bits_of(PyFloat_AS_DOUBLE(argument)));
    return true;
  }
#ifdef Py_GIL_DISABLED
  if (PyList_CheckExact(argument) || PyDict_CheckExact(argument)) {
    held_.push_back(own_copy(argument));
    argument = held_.back().get();
    if (PyTuple_CheckExact(argument)) {
      return add_items(Tag::list, &PyTuple_GET_ITEM(argument, 0), PyTuple_GET_SIZE(argument), depth);
    }
  }
#endif
  if (PyList_CheckExact(argument) || PyTuple_CheckExact(argument)) {
    const Tag tag = PyList_CheckExact(argument) ? Tag::list : Tag::tuple;
    return add_items(tag, PySequence_Fast_ITEMS(argument), PySequence_Fast_GET_SIZE(argument),
                     depth);
  }
  if (PyDict_CheckExact(argument)) return add_dict(argument, depth);
  return add_text(argument);
}

bool Call::add_items(Tag tag, PyObject* const* items, Py_ssize_t count, int depth) {
  signature_.add_word(tag, static_cast<uint64_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!add(items[i], depth + 1)) return false;
  }
  return true;
}

bool Call::add_dict(PyObject* dict, int depth) {
  signature_.add_word(Tag::dict, static_cast<uint64_t>(PyDict_GET_SIZE(dict)));
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (!add_text(key) || !add(value, depth + 1)) return false;
  }
  return true;
}

// By its address, if it is interned: of such, there is one. Others, such as names that were put
// together, by what they say.
bool Call::add_text(PyObject* text) {
  if (!PyUnicode_CheckExact(text) || signature_.full()) return false;
  if (!PyUnicode_CHECK_INTERNED(text)) return add_letters(text);
  signature_.add_word(Tag::text, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(text)));
  texts_.push_back(text);
  return true;
}

bool Call::add_letters(PyObject* text) {
  Py_ssize_t bytes = 0;
  const char* letters = PyUnicode_AsUTF8AndSize(text, &bytes);
  if (!letters) PyErr_Clear();  // a surrogate alone: the call takes the slow path
  if (!letters || static_cast<size_t>(bytes) > Signature::kLetters) return false;
  signature_.add_letters(letters, static_cast<size_t>(bytes));
  return true;
}

std::vector<Object> Call::texts() const {
  std::vector<Object> found;
  for (PyObject* const text : texts_) found.push_back(Object::borrowed(text));
  return found;
}

Places places_in(const Signature& signature) {
  Places found;
  size_t floats = 0;
  const auto count = static_cast<size_t>(signature.count());
  for (size_t at = 1; at < count;) {
    const uint64_t word = signature.words()[at];
    const Tag tag = tag_of(word);
    if (tag == Tag::array) {
      found.extents.push_back(at + 1);
      at += array_words(word);
    } else if (tag == Tag::letters) {
      at += letter_words(word);
    } else if (tag == Tag::real) {
      found.numbers.push_back({true, floats++});
      ++at;
    } else if (tag == Tag::none) {
      ++at;
    } else {
      if (tag == Tag::integer) found.numbers.push_back({false, at + 1});
      at += 2;
    }
  }
  return found;
}

}  // namespace heterosis::python
