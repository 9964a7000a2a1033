#include "replay_type.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "../dispatch.h"
#include "../pool.h"
#include "../random_state.h"
#include "array_type.h"
#include "guards_type.h"
#include "operation_type.h"
#include "plan_handle.h"
#include "recording.h"
#include "signature.h"
#include "view_notes.h"

namespace heterosis::python {

namespace {

// Where an input of a program comes from.
struct Source {
  enum class Kind : uint8_t { argument, outside, key, supplied };
  Kind kind;
  Py_ssize_t position;  // among the arguments, or among the supplied numbers
  Object array;         // from outside
};

// Result `from` of the plan is written into the array that input `into` is: if `recorded`, as an
// operation that gradients flow through; if `last`, nobody needs the result any more.
struct Write {
  size_t from;
  size_t into;
  bool recorded;
  bool last;
};

// A program for arguments of one kind. `shape` tells what is returned: one item, or a tuple or list
// of them. An item from 0 on is a result of the plan; below, -1 - i is the array of input i.
struct Entry : Counted {
  enum class Shape : uint8_t { one, tuple, list };
  std::vector<uint64_t> words;
  PlanHandle plan;
  std::vector<Source> sources;
  Shape shape;
  std::vector<Py_ssize_t> items;
  std::vector<Write> writes;
  Object supply;  // gives the supplied numbers of a run; null without
  Object record;  // is told of runs that gradients are recorded of: (inputs, results); null without
  Object guards;  // what else the program was made of
  bool constants;  // whether its arguments must be no variables
};

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
};

constexpr size_t kMostEntries = 256;  // then the oldest is dropped
constexpr size_t kMostAlike = 8;     // for arguments of one kind, of programs with other guards

ReplayObject& as_replay(PyObject* self) { return *reinterpret_cast<ReplayObject*>(self); }

// False if no program serves such arguments.
bool sign(Signature& signature, PyObject* const* given, Py_ssize_t count) {
  const uint64_t modes = (is_training() ? 1 : 0) | (is_recording() ? 2 : 0);
  signature.begin(modes, pool().threads());
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!is_array(given[i]) || signature.full()) return false;
    signature.add_array(as_array(given[i]));
  }
  return true;
}

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
Ref<const Entry> find(const std::vector<Slot>& entries, const Signature& signature) {
  const uint64_t hash = hash_of(signature);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!serves(entries[i], signature, hash)) continue;
    const Ref<const Entry> entry = entries[i].entry;
    if (hold(entry->guards.get())) return entry;
  }
  return {};
}

PyObject* input(const Source& source, PyObject* const* given) {
  return source.kind == Source::Kind::argument ? given[source.position] : source.array.get();
}

bool is_written(const Entry& entry, size_t which) {
  return std::any_of(entry.writes.begin(), entry.writes.end(),
                     [&](const Write& write) { return write.into == which; });
}

// Whether an argument shares memory with another input, and the program writes one of them: it has
// been captured for arrays that are apart.
bool is_entangled(const Entry& entry, PyObject* const* given) {
  if (entry.writes.empty()) return false;
  const auto storage = [&](const Source& source) -> const Storage* {
    PyObject* const array = input(source, given);
    return array ? as_array(array).storage.get() : nullptr;
  };
  for (size_t i = 0; i < entry.sources.size(); ++i) {
    if (entry.sources[i].kind != Source::Kind::argument) continue;
    const Storage* const own = storage(entry.sources[i]);
    for (size_t k = 0; k < entry.sources.size(); ++k) {
      const bool shared = k != i && storage(entry.sources[k]) == own;
      if (shared && (is_written(entry, i) || is_written(entry, k))) return true;
    }
  }
  return false;
}

// Whether an argument is a variable, of a program that must know which of them are.
bool has_variable(const Entry& entry, PyObject* const* given, Py_ssize_t count) {
  return entry.constants && std::any_of(given, given + count, is_tracked);
}

// One run of an entry: its inputs sorted, then its results.
class Run {
 public:
  Run(const Entry& entry, PyObject* const* given) : entry_(entry), given_(given) {
    arrays_.reserve(entry.sources.size());
    if (entry.supply) numbers_ = checked(PyObject_CallNoArgs(entry.supply.get()));
    for (const Source& source : entry.sources) add(source);
    Results results = entry.plan.run(std::move(arrays_), scalars_);
    for (Array& result : results) results_.push_back(checked(wrap(std::move(result))));
  }

  // Tells the tape, if it listens.
  void record() const {
    if (!entry_.record) return;
    Object inputs = checked(PyTuple_New(static_cast<Py_ssize_t>(entry_.sources.size())));
    size_t scalar = 0;
    for (size_t i = 0; i < entry_.sources.size(); ++i) {
      PyObject* one = is_number(entry_.sources[i]) ? number(entry_.sources[i], scalars_[scalar++])
                                                   : Py_NewRef(input(entry_.sources[i], given_));
      if (!one) throw PythonError();
      PyTuple_SET_ITEM(inputs.get(), static_cast<Py_ssize_t>(i), one);
    }
    Object results = checked(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (size_t i = 0; i < results_.size(); ++i) {
      PyTuple_SET_ITEM(results.get(), static_cast<Py_ssize_t>(i), Py_NewRef(results_[i].get()));
    }
    checked(PyObject_CallFunctionObjArgs(entry_.record.get(), inputs.get(), results.get(), nullptr));
  }

  void write_back() const {
    if (entry_.writes.empty()) return;
    struct Restored {
      bool recording;
      ~Restored() { set_recording(recording); }
    } restored{is_recording()};
    std::vector<Takeover> takeovers;
    takeovers.reserve(entry_.writes.size());
    for (const Write& write : entry_.writes) {
      PyObject* const from = results_[write.from].get();
      PyObject* const into = input(entry_.sources[write.into], given_);
      const Takeover takeover{&as_array(into), &as_array(from)};
      if (write.last && can_take_over(takeover)) {
        if (noting_views) tell_of_own_write(into);
        takeovers.push_back(takeover);
        continue;
      }
      take_over(std::exchange(takeovers, {}));  // writes stay in order
      set_recording(write.recorded);
      checked(call_operator_into(Operator::assign, &from, into));
    }
    take_over(takeovers);
  }

  PyObject* returned() const {
    if (entry_.shape == Entry::Shape::one) return item(entry_.items[0]);
    const auto count = static_cast<Py_ssize_t>(entry_.items.size());
    const bool is_tuple = entry_.shape == Entry::Shape::tuple;
    Object made = checked(is_tuple ? PyTuple_New(count) : PyList_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* one = item(entry_.items[static_cast<size_t>(i)]);
      is_tuple ? PyTuple_SET_ITEM(made.get(), i, one) : PyList_SET_ITEM(made.get(), i, one);
    }
    return made.release();
  }

 private:
  static bool is_number(const Source& source) {
    return source.kind == Source::Kind::key || source.kind == Source::Kind::supplied;
  }
  static PyObject* number(const Source& source, int64_t bits) {
    return source.kind == Source::Kind::key ? PyLong_FromLongLong(bits)
                                            : PyFloat_FromDouble(std::bit_cast<double>(bits));
  }

  void add(const Source& source) {
    if (source.kind == Source::Kind::key) {
      scalars_.push_back(random_state().next());
    } else if (source.kind == Source::Kind::supplied) {
      PyObject* one = PySequence_Fast_GET_ITEM(numbers_.get(), source.position);
      scalars_.push_back(std::bit_cast<int64_t>(PyFloat_AsDouble(one)));
    } else {
      arrays_.push_back(&as_array(input(source, given_)));
    }
  }

  PyObject* item(Py_ssize_t which) const {
    if (which >= 0) return Py_NewRef(results_[static_cast<size_t>(which)].get());
    return Py_NewRef(input(entry_.sources[static_cast<size_t>(-1 - which)], given_));
  }

  const Entry& entry_;
  PyObject* const* given_;
  Object numbers_;  // supplied: a list of floats
  std::vector<const Array*> arrays_;
  std::vector<int64_t> scalars_;
  std::vector<Object> results_;
};

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  ReplayObject& replay = as_replay(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  return guarded([&]() -> PyObject* {
    Signature signature;
    const bool plain =
        !names && !is_capturing() && !is_imperative() && sign(signature, given, count);
    const Ref<const Entry> entry = plain ? find(*replay.entries, signature) : Ref<const Entry>();
    if (!entry || is_entangled(*entry, given) || has_variable(*entry, given, count)) {
      return PyObject_Vectorcall(replay.slow, given, static_cast<size_t>(count), names);
    }
    if (must_wait()) wait_for_room();
    const Run run(*entry, given);
    run.record();
    run.write_back();
    return run.returned();
  });
}

// -- making entries -------------------------------------------------------------------------------

Py_ssize_t number(PyObject* object) {
  const Py_ssize_t found = PyLong_AsSsize_t(object);
  if (found == -1 && PyErr_Occurred()) throw PythonError();
  return found;
}

// Sources are positions of arguments, arrays from outside, None for random keys, and tuples of one
// position for supplied numbers.
Source source(PyObject* object) {
  if (object == Py_None) return {Source::Kind::key, 0, Object()};
  if (PyTuple_Check(object)) {
    return {Source::Kind::supplied, number(PyTuple_GET_ITEM(object, 0)), Object()};
  }
  if (is_array(object)) return {Source::Kind::outside, 0, Object::borrowed(object)};
  return {Source::Kind::argument, number(object), Object()};
}

// Whether nobody but this write needs its result: which is new memory, not returned, and not kept for
// gradients.
bool is_last_use(const Entry& entry, const Write& write) {
  const auto which = static_cast<Py_ssize_t>(write.from);
  const auto same = [&](const Write& other) { return other.from == write.from; };
  const bool written_once = std::count_if(entry.writes.begin(), entry.writes.end(), same) == 1;
  const bool returned = std::count(entry.items.begin(), entry.items.end(), which) > 0;
  const bool is_view = entry.plan.plan->results[write.from].view_of >= 0;
  return written_once && !returned && !is_view && !entry.record && !write.recorded;
}

template <typename Visit>
void each(PyObject* sequence, Visit visit) {
  const Object items = checked(PySequence_Fast(sequence, "expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    visit(PySequence_Fast_GET_ITEM(items.get(), i));
  }
}

Object unless_none(PyObject* object) {
  return object == Py_None ? Object() : Object::borrowed(object);
}

// Makes room for one more entry for such arguments, the oldest of which stand last.
void make_room(std::vector<Slot>& entries, const Signature& signature, uint64_t hash) {
  size_t alike = 0;
  std::erase_if(entries, [&](const Slot& slot) {
    return serves(slot, signature, hash) && ++alike >= kMostAlike;
  });
  if (entries.size() < kMostEntries) return;
  const Slot oldest = std::move(entries.back());  // goes last: what it holds may run Python
  entries.pop_back();
}

// add(arguments, plan, sources, items, writes, supply, record, guards, constants): serve calls with
// arguments like these while `guards` hold; if `constants`, with none that is a variable. `items` is
// a number, or a tuple or list of them; `writes` has triples of a result, an input, and whether
// gradients flow; `supply` and `record` may be None.
PyObject* add(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *example, *plan, *sources, *items, *writes, *supply, *record, *guards;
    int constants;
    if (!PyArg_ParseTuple(arguments, "O!OOOOOOOp", &PyTuple_Type, &example, &plan, &sources, &items,
                          &writes, &supply, &record, &guards, &constants)) {
      throw PythonError();
    }
    if (!is_guards(guards)) {
      PyErr_SetString(PyExc_TypeError, "add: expected Guards");
      throw PythonError();
    }
    Signature signature;
    if (!sign(signature, &PyTuple_GET_ITEM(example, 0), PyTuple_GET_SIZE(example))) Py_RETURN_FALSE;
    auto* const entry = new Entry;
    const Ref<const Entry> owned(entry);
    entry->words.assign(signature.words(), signature.words() + signature.count());
    entry->plan = nanobind::cast<PlanHandle&>(nanobind::handle(plan));
    entry->supply = unless_none(supply);
    entry->record = unless_none(record);
    entry->guards = Object::borrowed(guards);
    entry->constants = constants != 0;
    each(sources, [&](PyObject* one) { entry->sources.push_back(source(one)); });
    entry->shape = PyTuple_Check(items)  ? Entry::Shape::tuple
                   : PyList_Check(items) ? Entry::Shape::list
                                         : Entry::Shape::one;
    if (entry->shape == Entry::Shape::one) {
      entry->items.push_back(number(items));
    } else {
      each(items, [&](PyObject* one) { entry->items.push_back(number(one)); });
    }
    each(writes, [&](PyObject* pair) {
      Py_ssize_t from, into;
      int recorded;
      if (!PyArg_ParseTuple(pair, "nnp", &from, &into, &recorded)) throw PythonError();
      entry->writes.push_back(
          {static_cast<size_t>(from), static_cast<size_t>(into), recorded != 0, false});
    });
    for (Write& write : entry->writes) write.last = is_last_use(*entry, write);
    auto& entries = *as_replay(self).entries;
    const uint64_t hash = hash_of(signature);
    make_room(entries, signature, hash);
    entries.insert(entries.begin(), Slot{hash, owned});
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
    replay.entries = new std::vector<Slot>;
    return self.release();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_replay(self).slow);
  for (const Slot& slot : *as_replay(self).entries) {
    Py_VISIT(slot.entry->supply.get());
    Py_VISIT(slot.entry->record.get());
    Py_VISIT(slot.entry->guards.get());
  }
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_replay(self).slow);
  as_replay(self).entries->clear();
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

void add_replay_type(PyObject* module) {
  const Object type = checked(PyType_FromSpec(&specification));
  if (PyModule_AddObjectRef(module, "Replay", type.get())) throw PythonError();
}

}  // namespace heterosis::python
