#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "../dispatch.h"
#include "../random_state.h"
#include "array_type.h"
#include "front_lock.h"
#include "guards_type.h"
#include "operation_type.h"
#include "recording.h"
#include "replayed.h"
#include "view_notes.h"

namespace heterosis::python {

namespace {

PyObject* input(const Source& source, const Call& call) {
  const bool is_argument = source.kind == Source::Kind::argument;
  return is_argument ? call.arrays()[source.position] : source.array.get();
}

bool is_written(const Program& program, size_t which) {
  return std::any_of(program.writes.begin(), program.writes.end(),
                     [&](const Write& write) { return write.into == which; });
}

// One run of an entry: its inputs sorted, then its results.
class Run {
 public:
  Run(const Found& found, const Call& call)
      : plan_(*found.entry->plan.plan),
        program_(*found.entry->program),
        known_(found.entry->slots.empty() ? found.entry->numbers : found.numbers),
        call_(call) {
    if (noting_views) tell_of_last_writes();
    arrays_.reserve(program_.sources.size());
    if (program_.supply) {
      const InPython others;
      numbers_ = checked(PyObject_CallNoArgs(program_.supply.get()));
    }
    for (const Source& source : program_.sources) add(source);
    const Refusal refusal = program_.waits ? std::make_shared<ErrorPointer>() : nullptr;
    if (refusal) {  // an operand's error is no reason to lose what would be written over
      for (const Array* array : arrays_) wait_for(array->storage->variable);
    }
    // A run elsewhere tells of its refusal by the results that it has been given.
    const bool over = !(refusal && plan_.remote);
    Results results = found.entry->plan.run(arrays_, scalars_, over ? &program_.taken_over : nullptr,
                                            refusal ? &refusal : nullptr);
    if (refusal) wait(results, *refusal);
    for (Array& result : results) results_.push_back(checked(wrap(std::move(result))));
  }

  // Tells the tape, if it listens.
  void record() const {
    if (!program_.record) return;
    Object inputs = checked(PyTuple_New(static_cast<Py_ssize_t>(program_.sources.size())));
    size_t scalar = 0;
    for (size_t i = 0; i < program_.sources.size(); ++i) {
      PyObject* one = is_number(program_.sources[i]) ? number(program_.sources[i], scalars_[scalar++])
                                                   : Py_NewRef(input(program_.sources[i], call_));
      if (!one) throw PythonError();
      PyTuple_SET_ITEM(inputs.get(), static_cast<Py_ssize_t>(i), one);
    }
    Object results = checked(PyTuple_New(static_cast<Py_ssize_t>(results_.size())));
    for (size_t i = 0; i < results_.size(); ++i) {
      PyTuple_SET_ITEM(results.get(), static_cast<Py_ssize_t>(i), Py_NewRef(results_[i].get()));
    }
    const InPython others;
    checked(PyObject_CallFunctionObjArgs(program_.record.get(), inputs.get(), results.get(), nullptr));
  }

  void write_back() const {
    if (program_.writes.empty()) return;
    struct Restored {
      bool recording;
      ~Restored() { set_recording(recording); }
    } restored{is_recording()};
    std::vector<Takeover> takeovers;
    takeovers.reserve(program_.writes.size());
    for (const Write& write : program_.writes) {
      PyObject* const from = results_[write.from].get();
      PyObject* const into = input(program_.sources[write.into], call_);
      const Takeover takeover{&as_array(into), &as_array(from)};
      const bool is_view = plan_.results[write.from].view_of >= 0;
      if (!is_view && takeover.array->storage == takeover.from->storage) continue;  // stands there
      if (noting_views && !write.last) tell_of_write(into);
      if (write.last && !is_view && can_take_over(takeover)) {
        takeovers.push_back(takeover);
        continue;
      }
      take_over(std::exchange(takeovers, {}));  // writes stay in order
      set_recording(write.recorded);
      checked(call_operator_into(Operator::assign, &from, into));
    }
    take_over(takeovers);
  }

  PyObject* returned() const { return made(program_.returned).release(); }

 private:
  void wait(const Results& results, const ErrorPointer& refused) const {
    for (const Array& result : results) wait_for(result.storage->variable);
    if (refused) throw Failure(refused);
  }

  static bool is_number(const Source& source) {
    return source.kind != Source::Kind::argument && source.kind != Source::Kind::outside;
  }
  static PyObject* number(const Source& source, int64_t bits) {
    return source.kind == Source::Kind::key ? PyLong_FromLongLong(bits)
                                            : PyFloat_FromDouble(std::bit_cast<double>(bits));
  }

  // Before the run, which may write where the arrays stand.
  void tell_of_last_writes() const {
    for (const Write& write : program_.writes) {
      if (write.last) tell_of_write(input(program_.sources[write.into], call_));
    }
  }

  void add(const Source& source) {
    if (source.kind == Source::Kind::key) {
      scalars_.push_back(random_state().next());
    } else if (source.kind == Source::Kind::supplied) {
      PyObject* one = PySequence_Fast_GET_ITEM(numbers_.get(), source.position);
      scalars_.push_back(std::bit_cast<int64_t>(PyFloat_AsDouble(one)));
    } else if (source.kind == Source::Kind::known) {
      scalars_.push_back(known_[static_cast<size_t>(source.position)]);
    } else {
      arrays_.push_back(&as_array(input(source, call_)));
    }
  }

  PyObject* array(Py_ssize_t which) const {
    if (which >= 0) return results_[static_cast<size_t>(which)].get();
    return input(program_.sources[static_cast<size_t>(-1 - which)], call_);
  }

  // A part of what is returned. Containers are new ones at each call.
  Object made(const Item& item) const {
    switch (item.kind) {
      case Item::Kind::array: return Object::borrowed(array(item.array));
      case Item::Kind::constant: return Object::borrowed(item.constant.get());
      case Item::Kind::dict: return made_dict(item);
      default: break;
    }
    const auto count = static_cast<Py_ssize_t>(item.items.size());
    const bool is_tuple = item.kind == Item::Kind::tuple;
    Object found = checked(is_tuple ? PyTuple_New(count) : PyList_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const one = made(item.items[static_cast<size_t>(i)]).release();
      is_tuple ? PyTuple_SET_ITEM(found.get(), i, one) : PyList_SET_ITEM(found.get(), i, one);
    }
    return found;
  }

  Object made_dict(const Item& item) const {
    Object found = checked(PyDict_New());
    for (size_t i = 0; i < item.items.size(); ++i) {
      const Object value = made(item.items[i]);
      if (PyDict_SetItem(found.get(), item.keys.at(i).get(), value.get())) throw PythonError();
    }
    return found;
  }

  const Plan& plan_;
  const Program& program_;
  const std::vector<int64_t>& known_;
  const Call& call_;
  Object numbers_;  // supplied: a list of floats
  std::vector<const Array*> arrays_;
  std::vector<int64_t> scalars_;
  std::vector<Object> results_;
};

PyObject* finished(const Run& run) {
  run.record();
  run.write_back();
  return run.returned();
}

}  // namespace

bool is_entangled(const Program& program, const Call& call) {
  if (program.writes.empty()) return false;
  const auto storage = [&](const Source& source) -> const Storage* {
    PyObject* const array = input(source, call);
    return array ? as_array(array).storage.get() : nullptr;
  };
  for (size_t i = 0; i < program.sources.size(); ++i) {
    if (program.sources[i].kind != Source::Kind::argument) continue;
    const Storage* const own = storage(program.sources[i]);
    if (is_written(program, i) && watches(program.guards.get(), *own)) return true;
    for (size_t k = 0; k < program.sources.size(); ++k) {
      const bool shared = k != i && storage(program.sources[k]) == own;
      if (shared && (is_written(program, i) || is_written(program, k))) return true;
    }
  }
  return false;
}

bool has_variable(const Program& program, const Call& call) {
  return program.constants &&
         std::any_of(call.arrays(), call.arrays() + call.array_count(), is_tracked);
}

PyObject* run_entry(const Found& found, const Call& call) {
  if (!found.entry->program->waits) return finished(Run(found, call));
  const RandomState before = random_state();
  std::optional<Run> run;
  try {
    run.emplace(found, call);
  } catch (const Failure&) {
    random_state() = before;
    return nullptr;
  }
  return finished(*run);
}

}  // namespace heterosis::python
