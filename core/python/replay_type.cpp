#include "replay_type.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <structmember.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "../dispatch.h"
#include "array_type.h"
#include "front_lock.h"
#include "guards_type.h"
#include "recording.h"
#include "replayed.h"

namespace heterosis::python {

namespace {

// An entry beside the hash of its words: a call passes over others without a look at them.
struct Slot {
  uint64_t hash;
  Ref<const Entry> entry;
};

struct ReplayObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* slow;  // what to call where no entry fits
  std::vector<Slot>* entries;  // the newest first
  std::vector<Ref<const OpenEntry>>* open_entries;  // likewise
};

constexpr size_t kMostEntries = 256;  // then the oldest is dropped
constexpr size_t kMostOpen = 32;      // likewise
constexpr size_t kMostAlike = 8;     // for arguments of one kind, of programs with other guards

ReplayObject& as_replay(PyObject* self) { return *reinterpret_cast<ReplayObject*>(self); }

uint64_t hash_of(const Signature& signature) {
  return hash_words(signature.words(), signature.count());
}

bool serves(const Slot& slot, const Signature& signature, uint64_t hash) {
  if (slot.hash != hash) return false;
  const auto* words = signature.words();
  const auto& own = slot.entry->words;
  return std::equal(words, words + signature.count(), own.begin(), own.end());
}

// The reference keeps the entry: guards may wait for an array, and other threads replace entries.
Found find(const std::vector<Slot>& entries, const Call& call) {
  const uint64_t hash = hash_of(call.signature());
  Found found;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!serves(entries[i], call.signature(), hash)) continue;
    found.entry = entries[i].entry;
    if (call.has_floats() && !takes_floats(*found.entry, call, found.numbers)) continue;
    if (hold(found.entry->program->guards.get())) return found;
  }
  found.entry = {};
  return found;
}

// Makes room for one more entry for such arguments, the oldest of which stand last.
void make_room(std::vector<Slot>& entries, const Signature& signature, uint64_t hash) {
  size_t alike = 0;
  const auto is_old = [&](const Slot& slot) {
    return serves(slot, signature, hash) && ++alike >= kMostAlike;
  };
  std::vector<Slot> kept, dropped;  // go last: what they hold may run Python
  for (const Slot& slot : entries) (is_old(slot) ? dropped : kept).push_back(slot);
  entries.swap(kept);
  if (entries.size() < kMostEntries) return;
  dropped.push_back(std::move(entries.back()));
  entries.pop_back();
}

void keep(std::vector<Slot>& entries, const Signature& signature, const Ref<const Entry>& entry) {
  const uint64_t hash = hash_of(signature);
  make_room(entries, signature, hash);
  entries.insert(entries.begin(), Slot{hash, entry});
}

// The same for numbers never seen, if the core can tell the plan; then it is kept.
Found find_open(ReplayObject& replay, const Call& call) {
  for (size_t i = 0; i < replay.open_entries->size(); ++i) {
    const Ref<const OpenEntry> open = (*replay.open_entries)[i];
    const Ref<const Entry> found = entry_at(*open, call);
    if (!found) continue;
    keep(*replay.entries, call.signature(), found);
    return {found, found->numbers};
  }
  return {};
}

// -- calls ----------------------------------------------------------------------------------------

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  ReplayObject& replay = as_replay(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  return guarded([&]() -> PyObject* {
    const Call call(given, count, names);
    const OnDevice there(call.device());
    const bool may_serve = call.is_plain() && !is_capturing() && !is_imperative();
    const FrontLock lock;
    Found found = may_serve ? find(*replay.entries, call) : Found();
    if (may_serve && !found.entry) found = find_open(replay, call);
    if (found.entry && !is_entangled(*found.entry->program, call) &&
        !has_variable(*found.entry->program, call)) {
      if (must_wait()) wait_for_room();
      if (PyObject* const result = run_entry(found, call)) return result;
    }
    const InPython others;
    return PyObject_Vectorcall(replay.slow, given, static_cast<size_t>(count), names);
  });
}

// -- making entries -------------------------------------------------------------------------------

// The arguments of an example, a tuple of them and a dictionary of named ones.
class Example {
 public:
  Example(PyObject* arguments, PyObject* keywords)
      : names_(checked(PyList_AsTuple(checked(PyDict_Keys(keywords)).get()))),
        given_(&PyTuple_GET_ITEM(arguments, 0),
               &PyTuple_GET_ITEM(arguments, 0) + PyTuple_GET_SIZE(arguments)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names_.get()); ++i) {
      given_.push_back(PyDict_GetItem(keywords, PyTuple_GET_ITEM(names_.get(), i)));
    }
    call_ = std::make_unique<Call>(given_.data(), PyTuple_GET_SIZE(arguments), names_.get());
  }
  const Call& call() const { return *call_; }

 private:
  Object names_;
  std::vector<PyObject*> given_;
  std::unique_ptr<Call> call_;
};

// add(arguments, keywords, plan, numbers, program): serve calls with arguments like these while the
// guards of the program hold; the numbers are those that are known.
PyObject* add(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *given, *keywords, *plan, *numbers, *program;
    if (!PyArg_ParseTuple(arguments, "O!O!OOO!", &PyTuple_Type, &given, &PyDict_Type, &keywords,
                          &plan, &numbers, &PyTuple_Type, &program)) {
      throw PythonError();
    }
    const Example example(given, keywords);
    if (!example.call().is_plain()) Py_RETURN_FALSE;
    auto* const entry = new Entry;
    const Ref<const Entry> owned(entry);
    describe(*entry, example.call());
    entry->plan = nanobind::cast<PlanHandle&>(nanobind::handle(plan));
    entry->program = to_program(program);
    each(numbers, [&](PyObject* one) {
      entry->numbers.push_back(std::bit_cast<int64_t>(PyFloat_AsDouble(one)));
    });
    const FrontLock lock;
    keep(*as_replay(self).entries, example.call().signature(), owned);
    Py_RETURN_TRUE;
  });
}

// Pairs of a place and a name into `open`, by where the places are.
void to_open(PyObject* sequence, const Places& places, OpenEntry& open) {
  each(sequence, [&](PyObject* triple) {
    Py_ssize_t array, axis, name;
    if (!PyArg_ParseTuple(triple, "nnn", &array, &axis, &name)) throw PythonError();
    const auto which = static_cast<size_t>(name);
    if (array >= 0) {
      const size_t first = places.extents.at(static_cast<size_t>(array));
      open.sizes.push_back({first + static_cast<size_t>(axis), which});
      return;
    }
    const Places::Number number = places.numbers.at(static_cast<size_t>(axis));
    (number.is_float ? open.open_floats : open.sizes).push_back({number.at, which});
  });
  const auto before = [](const Open& a, const Open& b) { return a.at < b.at; };
  std::sort(open.sizes.begin(), open.sizes.end(), before);
  std::sort(open.open_floats.begin(), open.open_floats.end(), before);
}

// add_open(arguments, keywords, places, least, most, names, table, plans, planned, numbers, program,
// example): serve calls with arguments like these but for numbers at some places, which are triples:
// an array, an axis and a name, or -1, the position among Python's numbers and a name. The table has
// what must hold of so many names, of which sizes are from `least` to below `most`, and the words of
// `numbers`; `planned` are the names that `plans` are for. `served` gives `example` unless it is None.
PyObject* add_open(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *given, *keywords, *places, *table, *plans, *planned, *numbers, *program, *example;
    Py_ssize_t least, most, names;
    if (!PyArg_ParseTuple(arguments, "O!O!OnnnOOOOO!O", &PyTuple_Type, &given, &PyDict_Type,
                          &keywords, &places, &least, &most, &names, &table, &plans, &planned,
                          &numbers, &PyTuple_Type, &program, &example)) {
      throw PythonError();
    }
    const Example call(given, keywords);
    if (!call.call().is_plain()) Py_RETURN_FALSE;
    std::vector<int64_t> rows;
    each(table, [&](PyObject* one) { rows.push_back(to_number(one)); });
    auto* const open = new OpenEntry(Formulas(static_cast<size_t>(names), rows));
    const Ref<const OpenEntry> owned(open);
    describe(*open, call.call());
    to_open(places, places_in(call.call().signature()), *open);
    open->least = static_cast<uint64_t>(least);
    open->most = static_cast<uint64_t>(most);
    open->plans = nanobind::cast<std::shared_ptr<SizedPlans>>(nanobind::handle(plans));
    open->program = to_program(program);
    if (example != Py_None) open->example = Object::borrowed(example);
    each(planned, [&](PyObject* one) {
      open->planned.push_back(static_cast<size_t>(to_number(one)));
    });
    each(numbers, [&](PyObject* one) { open->numbers.emplace_back(to_number(one)); });
    const FrontLock lock;
    auto& entries = *as_replay(self).open_entries;
    entries.insert(entries.begin(), owned);
    if (entries.size() > kMostOpen) {
      const Ref<const OpenEntry> oldest = std::move(entries.back());  // goes last: may run Python
      entries.pop_back();
    }
    Py_RETURN_TRUE;
  });
}

// The sizes that an entry was made for, by their names.
Object sizes_of(const Entry& entry) {
  const OpenEntry& open = *entry.made_by;
  Object sizes = checked(PyDict_New());
  for (const Open& one : open.sizes) {
    const Object name = checked(PyLong_FromSize_t(one.name));
    const Object size = checked(PyLong_FromUnsignedLongLong(entry.words[one.at]));
    if (PyDict_SetItem(sizes.get(), name.get(), size.get())) throw PythonError();
  }
  return sizes;
}

// served(): the examples of open entries that have served calls without Python, each with the sizes
// of one, the oldest first.
PyObject* served(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Object found = checked(PyList_New(0));
    const FrontLock lock;
    const auto entries = *as_replay(self).entries;  // Python that runs here may change them
    for (size_t i = entries.size(); i-- > 0;) {
      const Entry& entry = *entries[i].entry;
      if (!entry.made_by || !entry.made_by->example) continue;
      const Object sizes = sizes_of(entry);
      const Object pair = checked(PyTuple_Pack(2, entry.made_by->example.get(), sizes.get()));
      if (PyList_Append(found.get(), pair.get())) throw PythonError();
    }
    return found.release();
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
    replay.entries = new std::vector<Slot>;
    replay.open_entries = new std::vector<Ref<const OpenEntry>>;
    return self.release();
  });
}

int traverse_program(const Program& program, visitproc visit, void* arg) {
  Py_VISIT(program.supply.get());
  Py_VISIT(program.record.get());
  Py_VISIT(program.guards.get());
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_replay(self).slow);
  for (const Slot& slot : *as_replay(self).entries) {
    // What open entries share is visited once: a reference more would be taken for one of others.
    if (slot.entry->made_by) continue;
    if (const int found = traverse_program(*slot.entry->program, visit, arg)) return found;
  }
  for (const Ref<const OpenEntry>& open : *as_replay(self).open_entries) {
    Py_VISIT(open->example.get());
    if (const int found = traverse_program(*open->program, visit, arg)) return found;
  }
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_replay(self).slow);
  as_replay(self).entries->clear();
  as_replay(self).open_entries->clear();
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(as_replay(self).slow);
  delete as_replay(self).entries;
  delete as_replay(self).open_entries;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "Serve calls like the given one by a plan from now on."},
    {"add_open", add_open, METH_VARARGS, "The same for calls of other sizes."},
    {"served", served, METH_NOARGS, "Calls of sizes that were served without Python."},
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

void add_replay_type(PyObject* module) {
  const Object type = checked(PyType_FromSpec(&specification));
  if (PyModule_AddObjectRef(module, "Replay", type.get())) throw PythonError();
}

}  // namespace heterosis::python
