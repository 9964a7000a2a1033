// The arguments of a call that a program may serve without Python: arrays, numbers, texts and None,
// by position or by name, in lists, tuples and dictionaries too.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "common.h"
#include "signature.h"

namespace heterosis::python {

class Call {
 public:
  // Positional arguments, then one for each of `names`, a tuple or null.
  Call(PyObject* const* given, Py_ssize_t count, PyObject* names);

  // Whether all arguments are of these kinds. Floats are described by their bits beside the words.
  bool is_plain() const { return is_plain_; }
  const Signature& signature() const { return signature_; }
  int device() const { return device_ < 0 ? current_device() : device_; }

  // The arrays in order, as Python counts them.
  PyObject* const* arrays() const { return arrays_; }
  Py_ssize_t array_count() const { return signature_.array_count; }

  bool has_floats() const { return signature_.scalar_count > 0; }
  const int64_t* floats() const { return signature_.scalars; }

  // What the words name by address, for those who keep the words.
  std::vector<Object> texts() const;

 private:
  bool add(PyObject* argument, int depth);
  bool add_items(Tag tag, PyObject* const* items, Py_ssize_t count, int depth);
  bool add_dict(PyObject* dict, int depth);
  bool add_text(PyObject* text);
  bool add_letters(PyObject* text);

  Signature signature_;
  PyObject* arrays_[Signature::kArrays];  // borrowed, from `given` or from `held_`
  std::vector<Object> held_;   // arrays in containers, which others may change meanwhile
  std::vector<PyObject*> texts_;
  int device_ = -1;  // of its arrays; if they are on several, the call is not plain
  bool is_plain_ = false;
};

// Where the words are that say what may be open, of a signature that `Call` has made.
struct Places {
  struct Number {
    bool is_float;
    size_t at;  // among the words, or among the floats
  };
  std::vector<size_t> extents;  // the first extent of each array
  std::vector<Number> numbers;  // Python's, in order
};
Places places_in(const Signature& signature);

}  // namespace heterosis::python
