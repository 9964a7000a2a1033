#include "guards_type.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_type.h"
#include "front_lock.h"

namespace heterosis::python {

namespace {

// -- comparing what is found with what was found --------------------------------------------------

bool is_same(PyObject* found, PyObject* expected);

bool are_same_items(PyObject* const* found, PyObject* const* expected, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_same(found[i], expected[i])) return false;
  }
  return true;
}

bool are_same_tuples(PyObject* found, PyObject* expected) {
  const Py_ssize_t count = PyTuple_GET_SIZE(found);
  return count == PyTuple_GET_SIZE(expected) &&
         are_same_items(&PyTuple_GET_ITEM(found, 0), &PyTuple_GET_ITEM(expected, 0), count);
}

// Floats by their bits: a program for 0.0 is none for -0.0, and one for NaN goes on to hold.
bool are_same_floats(PyObject* found, PyObject* expected) {
  const double a = PyFloat_AS_DOUBLE(found), b = PyFloat_AS_DOUBLE(expected);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// One object, or two that no program can tell apart: numbers, texts, and tuples of such. Null, for
// what was not there, is the same as itself only.
bool is_same(PyObject* found, PyObject* expected) {
  if (found == expected) return true;
  if (!found || !expected || Py_TYPE(found) != Py_TYPE(expected)) return false;
  if (PyFloat_CheckExact(found)) return are_same_floats(found, expected);
  if (PyTuple_CheckExact(found)) return are_same_tuples(found, expected);
  if (PyMethod_Check(found)) {  // made anew whenever it is looked up
    return PyMethod_GET_SELF(found) == PyMethod_GET_SELF(expected) &&
           PyMethod_GET_FUNCTION(found) == PyMethod_GET_FUNCTION(expected);
  }
  if (!PyLong_CheckExact(found) && !PyUnicode_CheckExact(found) && !PyBytes_CheckExact(found)) {
    return false;
  }
  const int equal = PyObject_RichCompareBool(found, expected, Py_EQ);
  if (equal < 0) throw PythonError();
  return equal == 1;
}

// A value that is checked by identity first. An equal one takes its place, so that the next check
// is quick again. Like all guards, under the front end's lock.
class Expected {
 public:
  explicit Expected(PyObject* value) : value_(Object::borrowed(value)) {}

  bool admits(PyObject* found) {
    if (found == value_.get()) return true;
    if (!is_same(found, value_.get())) return false;
    value_ = Object::borrowed(found);
    return true;
  }
  PyObject* get() const { return value_.get(); }

 private:
  Object value_;  // null: nothing was there
};

// A number that changes with every change of a dictionary; 0 where Python keeps none.
uint64_t version_of(PyObject* dict) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  (void)dict;
  return 0;
#endif
}

// The number of a type's state, bases included; 0 where it has none now.
unsigned int version_of(PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
  return __atomic_load_n(&type->tp_version_tag, __ATOMIC_ACQUIRE);
}

struct Named {
  Object name;
  Expected value;
};

// What a weak reference leads to; null, if that is gone. To be compared, not to be kept.
PyObject* referent(PyObject* reference) {
#if PY_VERSION_HEX < 0x030D0000
  PyObject* const found = PyWeakref_GET_OBJECT(reference);
  return found == Py_None ? nullptr : found;
#else
  PyObject* found = nullptr;
  if (PyWeakref_GetRef(reference, &found) < 0) throw PythonError();
  Py_XDECREF(found);
  return found;
#endif
}

// -- the kinds of guards --------------------------------------------------------------------------

// Whether one of `items` has this name.
bool is_among(const std::vector<Named>& items, PyObject* name) {
  return std::any_of(items.begin(), items.end(), [&](const Named& item) {
    return item.name.get() == name || PyUnicode_Compare(item.name.get(), name) == 0;
  });
}

// Names, as a frozenset, that are read wherever they stand: none may come to be among `keys`.
bool contains(PyObject* names, PyObject* key) {
  const int found = PyUnicode_Check(key) ? PySet_Contains(names, key) : 0;
  if (found < 0) throw PythonError();
  return found == 1;
}

// Items of a dictionary: an object's attributes, or a module's variables.
struct NamespaceGuard {
  Object dict;
  std::vector<Named> items;
  Object names;          // all that the program reads of any object
  Py_ssize_t size = -1;  // when no further item had one of these names

  bool holds() {
    for (Named& item : items) {
      if (!item.value.admits(found_in(dict.get(), item.name.get()).get())) return false;
    }
    if (PyDict_GET_SIZE(dict.get()) != size && has_more()) return false;
    size = PyDict_GET_SIZE(dict.get());
    return true;
  }

 private:
  bool has_more() const {
    const Unchanging still(dict.get());
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict.get(), &at, &key, &value)) {
      if (contains(names.get(), key) && !is_among(items, key)) return true;
    }
    return false;
  }
};

// All items of a dictionary that the user filled, in their order.
struct DictGuard {
  Object dict;
  std::vector<Named> items;

  bool holds() {
    const Unchanging still(dict.get());
    if (PyDict_GET_SIZE(dict.get()) != static_cast<Py_ssize_t>(items.size())) return false;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    for (Named& item : items) {
      if (!PyDict_Next(dict.get(), &at, &key, &value)) return false;
      if (!is_same(key, item.name.get()) || !item.value.admits(value)) return false;
    }
    return true;
  }
};

// Guards of dictionaries. A network has a thousand, of which hardly one ever changes: the versions
// with which they held stand side by side, where all are compared in a few microseconds.
template <typename Guard>
class VersionedGuards {
 public:
  void add(Guard guard) {
    seen_.push_back({guard.dict.get(), 0});
    guards_.push_back(std::move(guard));
  }

  bool hold() {
    for (size_t i = 0; i < seen_.size(); ++i) {
      Seen& seen = seen_[i];
      const uint64_t now = version_of(seen.dict);
      if (now && now == seen.version) continue;
      if (!guards_[i].holds()) return false;
      seen.version = now;
    }
    return true;
  }

  auto begin() const { return guards_.begin(); }
  auto end() const { return guards_.end(); }

 private:
  struct Seen {
    PyObject* dict;
    uint64_t version;
  };
  std::vector<Seen> seen_;
  std::vector<Guard> guards_;
};

// What a type and its bases define.
struct TypeGuard {
  Object type;
  std::vector<Named> items;
  Object names;  // all that the program reads of any object
  unsigned int version = 0;

  bool holds() {
    auto* const watched = reinterpret_cast<PyTypeObject*>(type.get());
    const unsigned int now = version_of(watched);
    if (now && now == version) return true;
    for (Named& item : items) {
      if (!item.value.admits(attribute_of(watched, item.name.get()).get())) return false;
    }
    if (has_more(watched)) return false;
    version = version_of(watched);  // looking up may have given it one
    return true;
  }

 private:
  bool has_more(PyTypeObject* watched) const {
    const Object iterator = checked(PyObject_GetIter(names.get()));
    while (const Object name{PyIter_Next(iterator.get())}) {
      if (attribute_of(watched, name.get()) && !is_among(items, name.get())) return true;
    }
    return false;
  }
};

struct CellGuard {
  Object cell;
  Expected value;

  bool holds() { return value.admits(content_of(cell.get()).get()); }
};

// Which class an object has, as long as somebody has the object.
struct ClassGuard {
  Object object;  // a weak reference to it, if it takes one
  Object type;

  bool holds() const {
    PyObject* const found = PyWeakref_CheckRef(object.get()) ? referent(object.get()) : object.get();
    return !found || Py_TYPE(found) == reinterpret_cast<PyTypeObject*>(type.get());
  }
};

// What calls of a function written in Python run: others may give it new code where it stands.
struct FunctionGuard {
  Object function, parts;  // its code, its defaults and those by name, or None

  bool holds() const {
    PyObject* const now = function.get();
    return is(0, PyFunction_GET_CODE(now)) && is(1, PyFunction_GET_DEFAULTS(now)) &&
           is(2, PyFunction_GET_KW_DEFAULTS(now));
  }

 private:
  bool is(Py_ssize_t part, PyObject* found) const {
    return PyTuple_GET_ITEM(parts.get(), part) == (found ? found : Py_None);
  }
};

// Whether a weak reference leads to what it was made for.
struct ReferenceGuard {
  Object reference;
  bool leads;

  bool holds() const { return (referent(reference.get()) != nullptr) == leads; }
};

// An attribute that is no item of the object's dictionary: a slot.
struct SlotGuard {
  Object object, name;
  Expected value;

  bool holds() {
    const Object found(PyObject_GetAttr(object.get(), name.get()));
    if (!found) PyErr_Clear();
    return value.admits(found.get());
  }
};

// The items of a list, a set or a deque.
struct SequenceGuard {
  Object sequence;
  std::vector<Expected> items;

  bool holds() {
    if (PyList_Check(sequence.get())) return admits(sequence.get());
    const Object listed(PySequence_List(sequence.get()));
    if (!listed) PyErr_Clear();
    return listed && admits(listed.get());
  }

 private:
  bool admits(PyObject* list) {
    const Unchanging still(list);
    if (PyList_GET_SIZE(list) != static_cast<Py_ssize_t>(items.size())) return false;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!items[i].admits(PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i)))) return false;
    }
    return true;
  }
};

// A buffer that an object shows, until it is let go of; none, if it shows none now.
class Shown {
 public:
  explicit Shown(PyObject* source) : is_there_(!PyObject_GetBuffer(source, &view_, PyBUF_FULL_RO)) {
    if (!is_there_) PyErr_Clear();
  }
  ~Shown() {
    if (is_there_) PyBuffer_Release(&view_);
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  explicit operator bool() const { return is_there_; }
  std::string format() const { return view_.format ? view_.format : "B"; }
  std::vector<Py_ssize_t> shape() const { return {view_.shape, view_.shape + view_.ndim}; }

  // `bytes` as `tobytes` gives them.
  bool has(PyObject* bytes) {
    if (view_.len != PyBytes_GET_SIZE(bytes)) return false;
    const char* const expected = PyBytes_AS_STRING(bytes);
    const auto count = static_cast<size_t>(view_.len);
    if (PyBuffer_IsContiguous(&view_, 'C')) return std::memcmp(view_.buf, expected, count) == 0;
    std::vector<char> copy(count);
    if (PyBuffer_ToContiguous(copy.data(), &view_, view_.len, 'C')) throw PythonError();
    return std::memcmp(copy.data(), expected, count) == 0;
  }

 private:
  Py_buffer view_;
  bool is_there_;
};

// The elements of an array of another library, with their type and its shape: NumPy's may be given
// others in place.
struct BufferGuard {
  Object source;
  Object bytes;  // as `tobytes` gave them
  std::string format;
  std::vector<Py_ssize_t> shape;

  bool holds() {
    Shown now(source.get());
    return now && now.format() == format && now.shape() == shape && now.has(bytes.get());
  }
};

// The elements of one of our arrays, which Python has read.
struct ArrayGuard {
  Object array;
  Object bytes;  // as `tobytes` gave them
  uint64_t version = 0;
  int64_t released = 0;

  bool holds() {
    const Storage& storage = *as_array(array.get()).storage;
    if (storage.is_ours() && storage.version == version && storage.released == released) {
      return true;
    }
    wait_for(as_array(array.get()).storage->variable);
    Shown elements(array.get());
    if (!elements || !elements.has(bytes.get())) return false;
    see();
    return true;
  }
  void see() {
    const Storage& storage = *as_array(array.get()).storage;
    version = storage.version;
    released = storage.released;
  }
};

// -- all guards of a program ----------------------------------------------------------------------

struct Watched {
  VersionedGuards<NamespaceGuard> namespaces;
  VersionedGuards<DictGuard> dicts;
  std::vector<TypeGuard> types;
  std::vector<CellGuard> cells;
  std::vector<ClassGuard> classes;
  std::vector<FunctionGuard> functions;
  std::vector<ReferenceGuard> references;
  std::vector<SlotGuard> slots;
  std::vector<SequenceGuard> sequences;
  std::vector<BufferGuard> buffers;
  std::vector<ArrayGuard> arrays;

  bool hold() {
    const auto all = [](auto& guards) {
      return std::all_of(guards.begin(), guards.end(), [](auto& guard) { return guard.holds(); });
    };
    return namespaces.hold() && all(types) && dicts.hold() && all(cells) && all(classes) &&
           all(functions) && all(references) && all(slots) && all(sequences) && all(buffers) &&
           all(arrays);
  }
};

struct GuardsObject {
  PyObject_HEAD
  Watched* watched;
};

PyTypeObject* guards_type = nullptr;

Watched& as_watched(PyObject* self) { return *reinterpret_cast<GuardsObject*>(self)->watched; }

// -- making them ----------------------------------------------------------------------------------

void check_is(bool fits, const char* what) {
  if (fits) return;
  PyErr_Format(PyExc_TypeError, "a guard watches %s", what);
  throw PythonError();
}

// (name, value) pairs; a name alone is what was not there.
std::vector<Named> named(PyObject* pairs) {
  const Object items = checked(PySequence_Fast(pairs, "expected a sequence of pairs"));
  std::vector<Named> made;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject *name, *value = nullptr;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(items.get(), i), "O|O", &name, &value)) {
      throw PythonError();
    }
    made.push_back({Object::borrowed(name), Expected(value)});
  }
  return made;
}

void add_namespace(Watched& watched, PyObject* place, PyObject* pairs, PyObject* names) {
  check_is(names && PyAnySet_Check(names), "a namespace with a set of all names");
  if (PyType_Check(place)) {
    watched.types.push_back({Object::borrowed(place), named(pairs), Object::borrowed(names)});
    return;
  }
  check_is(PyDict_Check(place), "a dict or a type");
  watched.namespaces.add({Object::borrowed(place), named(pairs), Object::borrowed(names)});
}

void add_dict(Watched& watched, PyObject* dict, PyObject* pairs) {
  check_is(PyDict_Check(dict), "a dict");
  watched.dicts.add({Object::borrowed(dict), named(pairs)});
}

void add_cell(Watched& watched, PyObject* cell, PyObject* value) {
  check_is(PyCell_Check(cell), "a cell");
  watched.cells.push_back({Object::borrowed(cell), Expected(value)});
}

void add_class(Watched& watched, PyObject* object, PyObject* type) {
  check_is(PyType_Check(type), "an object and its class");
  watched.classes.push_back({Object::borrowed(object), Object::borrowed(type)});
}

void add_function(Watched& watched, PyObject* function, PyObject* parts) {
  const bool are_three = PyTuple_CheckExact(parts) && PyTuple_GET_SIZE(parts) == 3;
  check_is(PyFunction_Check(function) && are_three, "a function and three parts of it");
  watched.functions.push_back({Object::borrowed(function), Object::borrowed(parts)});
}

void add_reference(Watched& watched, PyObject* reference, PyObject* leads) {
  check_is(PyWeakref_CheckRef(reference), "a weak reference");
  watched.references.push_back({Object::borrowed(reference), leads == Py_True});
}

void add_buffer(Watched& watched, PyObject* source, PyObject* bytes) {
  const Shown now(source);
  check_is(static_cast<bool>(now) && PyBytes_Check(bytes), "a buffer and its bytes");
  watched.buffers.push_back(
      {Object::borrowed(source), Object::borrowed(bytes), now.format(), now.shape()});
}

void add_sequence(Watched& watched, PyObject* sequence, PyObject* items) {
  const Object listed = checked(PySequence_Fast(items, "expected a sequence"));
  SequenceGuard made{Object::borrowed(sequence), {}};
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(listed.get()); ++i) {
    made.items.emplace_back(PySequence_Fast_GET_ITEM(listed.get(), i));
  }
  watched.sequences.push_back(std::move(made));
}

// One row: its kind, what is watched, and how that was.
void add(Watched& watched, PyObject* row) {
  const char* kind;
  PyObject *place, *first = nullptr, *second = nullptr;
  if (!PyArg_ParseTuple(row, "sO|OO", &kind, &place, &first, &second)) throw PythonError();
  const std::string_view is = kind;
  if (is == "cell") return add_cell(watched, place, first);
  check_is(first != nullptr, "something that was somehow");
  if (is == "namespace") return add_namespace(watched, place, first, second);
  if (is == "dict") return add_dict(watched, place, first);
  if (is == "class") return add_class(watched, place, first);
  if (is == "function") return add_function(watched, place, first);
  if (is == "reference") return add_reference(watched, place, first);
  if (is == "slot") {
    watched.slots.push_back({Object::borrowed(place), Object::borrowed(first), Expected(second)});
  } else if (is == "sequence") {
    add_sequence(watched, place, first);
  } else if (is == "buffer") {
    add_buffer(watched, place, first);
  } else if (is == "array") {
    check_is(is_array(place) && PyBytes_Check(first), "an array and its bytes");
    watched.arrays.push_back({Object::borrowed(place), Object::borrowed(first)});
    watched.arrays.back().see();
  } else {
    PyErr_Format(PyExc_ValueError, "no guard is called %s", kind);
    throw PythonError();
  }
}

// -- the type -------------------------------------------------------------------------------------

PyObject* new_guards(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* rows;
    if (!PyArg_ParseTuple(arguments, "O", &rows)) throw PythonError();
    Object self = checked(type->tp_alloc(type, 0));
    auto* const watched = new Watched;
    reinterpret_cast<GuardsObject*>(self.get())->watched = watched;
    const Object items = checked(PySequence_Fast(rows, "expected a sequence of rows"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      add(*watched, PySequence_Fast_GET_ITEM(items.get(), i));
    }
    return self.release();
  });
}

PyObject* holds(PyObject* self, PyObject*) {
  return guarded([&] {
    const FrontLock lock;
    return PyBool_FromLong(hold(self));
  });
}

int visit_named(const std::vector<Named>& items, visitproc visit, void* arg) {
  for (const Named& item : items) {
    Py_VISIT(item.name.get());
    Py_VISIT(item.value.get());
  }
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Watched* const watched = reinterpret_cast<GuardsObject*>(self)->watched;
  if (!watched) return 0;
  for (const NamespaceGuard& guard : watched->namespaces) {
    Py_VISIT(guard.dict.get());
    if (const int stop = visit_named(guard.items, visit, arg)) return stop;
  }
  for (const TypeGuard& guard : watched->types) {
    Py_VISIT(guard.type.get());
    if (const int stop = visit_named(guard.items, visit, arg)) return stop;
  }
  for (const DictGuard& guard : watched->dicts) {
    Py_VISIT(guard.dict.get());
    if (const int stop = visit_named(guard.items, visit, arg)) return stop;
  }
  for (const CellGuard& guard : watched->cells) {
    Py_VISIT(guard.cell.get());
    Py_VISIT(guard.value.get());
  }
  for (const ClassGuard& guard : watched->classes) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.type.get());
  }
  for (const FunctionGuard& guard : watched->functions) {
    Py_VISIT(guard.function.get());
    Py_VISIT(guard.parts.get());
  }
  for (const ReferenceGuard& guard : watched->references) Py_VISIT(guard.reference.get());
  for (const SlotGuard& guard : watched->slots) {
    Py_VISIT(guard.object.get());
    Py_VISIT(guard.value.get());
  }
  for (const SequenceGuard& guard : watched->sequences) {
    Py_VISIT(guard.sequence.get());
    for (const Expected& item : guard.items) Py_VISIT(item.get());
  }
  for (const BufferGuard& guard : watched->buffers) Py_VISIT(guard.source.get());
  for (const ArrayGuard& guard : watched->arrays) Py_VISIT(guard.array.get());
  return 0;
}

int clear(PyObject* self) {
  delete std::exchange(reinterpret_cast<GuardsObject*>(self)->watched, nullptr);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"holds", holds, METH_NOARGS, "Whether everything is as it was."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_guards)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis._core.Guards",
    sizeof(GuardsObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    slots,
};

}  // namespace

bool is_guards(PyObject* object) { return Py_IS_TYPE(object, guards_type); }

bool hold(PyObject* guards) {
  if (!reinterpret_cast<GuardsObject*>(guards)->watched) return false;  // cleared with its cycle
  return as_watched(guards).hold();
}

bool watches(PyObject* guards, const Storage& storage) {
  if (!reinterpret_cast<GuardsObject*>(guards)->watched) return false;
  const std::vector<ArrayGuard>& arrays = as_watched(guards).arrays;
  return std::any_of(arrays.begin(), arrays.end(), [&](const ArrayGuard& guard) {
    return as_array(guard.array.get()).storage.get() == &storage;
  });
}

void add_guards_type(PyObject* module) {
  Object type = checked(PyType_FromSpec(&specification));
  guards_type = reinterpret_cast<PyTypeObject*>(type.get());
  if (PyModule_AddObjectRef(module, "Guards", type.get())) throw PythonError();
  type.release();  // as long as the process
}

}  // namespace heterosis::python
