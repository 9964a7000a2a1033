#include "replay_type.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "../dispatch.h"
#include "../pool.h"
#include "../random_state.h"
#include "array_type.h"
#include "operation_type.h"
#include "origin.h"
#include "plan_handle.h"
#include "recording.h"
#include "signature.h"

namespace heterosis::python {

namespace {

uint64_t change_count = 0;

// Where an input of a program comes from.
struct Source {
  enum class Kind : uint8_t { argument, outside, key };
  Kind kind;
  Py_ssize_t position;  // among the arguments
  Object array;         // from outside
};

// Result `from` of the plan is written into the array that input `into` is.
struct Write {
  size_t from;
  size_t into;
};

// A program for arguments of one kind. `shape` tells what is returned: one item, or a tuple or list
// of them. An item from 0 on is a result of the plan; below, -1 - i is the array of input i.
struct Entry {
  enum class Shape : uint8_t { one, tuple, list };
  std::vector<uint64_t> words;
  uint64_t changes;
  Ref<const Plan> plan;
  std::vector<Source> sources;
  Shape shape;
  std::vector<Py_ssize_t> items;
  std::vector<Write> writes;
};

struct ReplayObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* slow;  // what to call where no entry fits
  std::vector<Entry>* entries;
};

constexpr size_t kMostEntries = 64;  // then all are dropped: shapes that vary without end

ReplayObject& as_replay(PyObject* self) { return *reinterpret_cast<ReplayObject*>(self); }

// False if no program serves such arguments.
bool sign(Signature& signature, PyObject* const* given, Py_ssize_t count) {
  signature.begin(is_training(), pool().threads());
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_array(given[i]) || signature.full()) return false;
    signature.add_array(as_array(given[i]));
  }
  return true;
}

Entry* find(std::vector<Entry>& entries, const Signature& signature) {
  for (Entry& entry : entries) {
    const auto* words = signature.words();
    if (std::equal(words, words + signature.count(), entry.words.begin(), entry.words.end())) {
      return &entry;
    }
  }
  return nullptr;
}

PyObject* input(const Source& source, PyObject* const* given) {
  return source.kind == Source::Kind::argument ? given[source.position] : source.array.get();
}

Object item(const Entry& entry, Py_ssize_t which, Results& results, std::vector<Object>& wrapped,
            PyObject* const* given) {
  if (which < 0) {
    return Object::borrowed(input(entry.sources[static_cast<size_t>(-1 - which)], given));
  }
  Object& found = wrapped[static_cast<size_t>(which)];
  if (!found) found = checked(wrap(results[static_cast<size_t>(which)]));
  return Object::borrowed(found.get());
}

void write_back(const Entry& entry, Results& results, PyObject* const* given) {
  for (const Write& write : entry.writes) {
    const Object source = checked(wrap(results[write.from]));
    PyObject* const from = source.get();
    checked(call_operator_into(Operator::assign, &from, input(entry.sources[write.into], given)));
  }
}

PyObject* returned(const Entry& entry, Results& results, PyObject* const* given) {
  if (entry.shape == Entry::Shape::one && entry.items[0] >= 0) {
    return wrap(std::move(results[static_cast<size_t>(entry.items[0])]));
  }
  std::vector<Object> wrapped(results.size());
  if (entry.shape == Entry::Shape::one) {
    return item(entry, entry.items[0], results, wrapped, given).release();
  }
  const auto count = static_cast<Py_ssize_t>(entry.items.size());
  const bool is_tuple = entry.shape == Entry::Shape::tuple;
  Object made = checked(is_tuple ? PyTuple_New(count) : PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* one = item(entry, entry.items[static_cast<size_t>(i)], results, wrapped, given).release();
    is_tuple ? PyTuple_SET_ITEM(made.get(), i, one) : PyList_SET_ITEM(made.get(), i, one);
  }
  return made.release();
}

PyObject* run_entry(const Entry& entry, PyObject* const* given) {
  constexpr size_t kFew = 64;
  const Array* few[kFew];
  std::vector<const Array*> many;
  if (entry.sources.size() > kFew) many.resize(entry.sources.size());
  const Array** arrays = many.empty() ? few : many.data();
  int array_count = 0;
  std::vector<int64_t> keys;
  for (const Source& source : entry.sources) {
    if (source.kind == Source::Kind::key) {
      keys.push_back(random_state().next());
    } else {
      arrays[array_count++] = &as_array(input(source, given));
    }
  }
  const Invocation invocation{entry.plan.get(), arrays, array_count, keys.data(),
                              static_cast<int>(keys.size())};
  Results results = run(invocation, {}, user_line);
  write_back(entry, results, given);
  return returned(entry, results, given);
}

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  ReplayObject& replay = as_replay(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  return guarded([&]() -> PyObject* {
    Signature signature;
    const bool plain = !names && !is_recording() && !is_capturing() && sign(signature, given, count);
    const Entry* entry = plain ? find(*replay.entries, signature) : nullptr;
    if (!entry || entry->changes != change_count) {
      return PyObject_Vectorcall(replay.slow, given, static_cast<size_t>(count), names);
    }
    if (must_wait()) wait_for_room();
    return run_entry(*entry, given);
  });
}

// -- making entries -------------------------------------------------------------------------------

Py_ssize_t number(PyObject* object) {
  const Py_ssize_t found = PyLong_AsSsize_t(object);
  if (found == -1 && PyErr_Occurred()) throw PythonError();
  return found;
}

// Sources are positions of arguments, arrays from outside, and None for random keys.
Source source(PyObject* object) {
  if (object == Py_None) return {Source::Kind::key, 0, Object()};
  if (is_array(object)) return {Source::Kind::outside, 0, Object::borrowed(object)};
  return {Source::Kind::argument, number(object), Object()};
}

template <typename Visit>
void each(PyObject* sequence, Visit visit) {
  const Object items = checked(PySequence_Fast(sequence, "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    visit(PySequence_Fast_GET_ITEM(items.get(), i));
  }
}

// add(arguments, plan, sources, items, writes): serve calls with arguments like these. `items` is
// a number, or a tuple or list of them; `writes` has pairs of a result and an input.
PyObject* add(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *example, *plan, *sources, *items, *writes;
    if (!PyArg_ParseTuple(arguments, "O!OOOO", &PyTuple_Type, &example, &plan, &sources, &items,
                          &writes)) {
      throw PythonError();
    }
    Signature signature;
    if (!sign(signature, &PyTuple_GET_ITEM(example, 0), PyTuple_GET_SIZE(example))) Py_RETURN_FALSE;
    Entry entry;
    entry.words.assign(signature.words(), signature.words() + signature.count());
    entry.changes = change_count;
    entry.plan = nanobind::cast<PlanHandle&>(nanobind::handle(plan)).plan;
    each(sources, [&](PyObject* one) { entry.sources.push_back(source(one)); });
    entry.shape = PyTuple_Check(items)  ? Entry::Shape::tuple
                  : PyList_Check(items) ? Entry::Shape::list
                                        : Entry::Shape::one;
    if (entry.shape == Entry::Shape::one) {
      entry.items.push_back(number(items));
    } else {
      each(items, [&](PyObject* one) { entry.items.push_back(number(one)); });
    }
    each(writes, [&](PyObject* pair) {
      Py_ssize_t from, into;
      if (!PyArg_ParseTuple(pair, "nn", &from, &into)) throw PythonError();
      entry.writes.push_back({static_cast<size_t>(from), static_cast<size_t>(into)});
    });
    auto& entries = *as_replay(self).entries;
    if (Entry* same = find(entries, signature)) {
      *same = std::move(entry);
    } else {
      if (entries.size() >= kMostEntries) entries.clear();
      entries.insert(entries.begin(), std::move(entry));
    }
    Py_RETURN_TRUE;
  });
}

// -- the type -------------------------------------------------------------------------------------

PyObject* new_replay(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* slow;
    if (!PyArg_ParseTuple(arguments, "O", &slow)) throw PythonError();
    Object self = checked(type->tp_alloc(type, 0));
    ReplayObject& replay = as_replay(self.get());
    replay.vectorcall = call;
    replay.slow = Py_NewRef(slow);
    replay.entries = new std::vector<Entry>;
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_replay(self).slow);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_replay(self).slow);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(as_replay(self).slow);
  delete as_replay(self).entries;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "Serve calls like the given one by a plan from now on."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ReplayObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_replay)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis._core.Replay",
    sizeof(ReplayObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    slots,
};

}  // namespace

uint64_t changes() { return change_count; }
void count_change() { ++change_count; }

void add_replay_type(PyObject* module) {
  const Object type = checked(PyType_FromSpec(&specification));
  if (PyModule_AddObjectRef(module, "Replay", type.get())) throw PythonError();
}

}  // namespace heterosis::python
