#include "operation_type.h"  // first: it configures Python.h

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <bit>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../dispatch.h"
#include "../pool.h"
#include "../random_state.h"
#include "array_type.h"
#include "front_lock.h"
#include "origin.h"
#include "plan_handle.h"
#include "recording.h"
#include "remote.h"
#include "signature.h"
#include "view_notes.h"

namespace heterosis::python {

namespace {

// How an argument is used. The numbers are those of `ops.record`.
enum class Use : uint8_t { array, attribute, sequence, key };

struct Parameter {
  PyObject* name;      // interned
  Use use;
  PyObject* fallback;  // the default; null if the argument is required
};

// An operation without its Python object's head. Kept for ever: operations are never many. What
// changes is guarded by the front end's lock.
struct Operation {
  std::vector<Parameter> parameters;
  PyObject* name = nullptr;
  PyObject* record = nullptr;     // has `plan` and `slow`
  PyObject* documentation = nullptr;
  PyObject* attribute_ids = nullptr;  // dict: `attribute_key` of all attributes -> int
  uint64_t last_attribute_id = 0;
  bool has_attributes = false;
  bool noted = false;  // whether its views are, while any are
  bool crosses = false;  // whether it copies from one device to another
  int context_at = -1;   // the parameter that says where results are to be
  PlanCache plans;
};

struct OperationObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  Operation* operation;
};

constexpr int kMostParameters = 24;
PyObject* operators[kOperators];
PyObject* out_name;
PyObject* plan_name;
PyObject* slow_name;

// The fast path cannot decide; the record's Python code can, and gives the proper error.
struct TakeSlowPath {};

// -- arguments ------------------------------------------------------------------------------------

struct Arguments {
  PyObject* values[kMostParameters] = {};  // borrowed; null where the default counts
  PyObject* out = nullptr;                 // an array, or a tuple with one for each result
  bool crosses = false;                    // as `Invocation` has it
};

// Copies of lists among arguments, which other threads may change: every look finds the same.
using Copies = std::vector<Object>;

void copy_lists(const Operation& operation, Arguments& bound, Copies& copies) {
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    PyObject*& value = bound.values[i];
    if (operation.parameters[i].use != Use::sequence || !value || !PyList_CheckExact(value)) continue;
    copies.push_back(checked(PyList_AsTuple(value)));
    value = copies.back().get();
  }
}

// The arrays that results are written into.
class Outs {
 public:
  explicit Outs(PyObject* out) {
    if (!out) return;
    const bool several = PyTuple_CheckExact(out);
    const Py_ssize_t count = several ? PyTuple_GET_SIZE(out) : 1;
    if (count > kMost) throw TakeSlowPath();
    for (Py_ssize_t i = 0; i < count; ++i) {
      objects_[count_] = several ? PyTuple_GET_ITEM(out, i) : out;
      if (!is_array(objects_[count_])) throw TakeSlowPath();
      arrays_[count_] = &as_array(objects_[count_]);
      ++count_;
    }
  }
  std::span<const Array* const> arrays() const& { return {arrays_, static_cast<size_t>(count_)}; }
  std::span<PyObject* const> objects() const& { return {objects_, static_cast<size_t>(count_)}; }
  std::span<const Array* const> arrays() && = delete;  // they are valid while this lives
  std::span<PyObject* const> objects() && = delete;

 private:
  static constexpr int kMost = 8;
  PyObject* objects_[kMost];
  const Array* arrays_[kMost];
  int count_ = 0;
};

Arguments bind(const Operation& operation, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  Arguments bound;
  const size_t total = operation.parameters.size();
  if (static_cast<size_t>(count) > total) throw TakeSlowPath();
  std::copy_n(given, count, bound.values);
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject* value = given[count + i];
    if (name == out_name) {
      // As in NumPy, a tuple of one is that one.
      if (PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 1) value = PyTuple_GET_ITEM(value, 0);
      bound.out = value == Py_None ? nullptr : value;
      continue;
    }
    size_t at = 0;
    while (at < total && operation.parameters[at].name != name) ++at;
    if (at == total || bound.values[at]) throw TakeSlowPath();
    bound.values[at] = value;
  }
  return bound;
}

void add_operand(Signature& signature, PyObject* value) {
  if (is_array(value)) {
    signature.add_array(as_array(value));
  } else if (PyFloat_CheckExact(value)) {
    signature.add_number(Tag::real, std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(value)));
  } else if (PyBool_Check(value)) {
    signature.add_number(Tag::boolean, value == Py_True);
  } else if (PyLong_CheckExact(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) throw TakeSlowPath();
    signature.add_number(Tag::integer, number);
  } else if (value == Py_None) {
    signature.add_none();
  } else {
    throw TakeSlowPath();
  }
}

Py_ssize_t sequence_size(PyObject* value) {
  if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) throw TakeSlowPath();
  return PySequence_Fast_GET_SIZE(value);
}

void add_sequence(Signature& signature, PyObject* value) {
  const Py_ssize_t count = sequence_size(value);
  if (count > Signature::kNumbers / 2) throw TakeSlowPath();
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (signature.full()) throw TakeSlowPath();
    add_operand(signature, PySequence_Fast_GET_ITEM(value, i));
  }
}

// All attributes, defaults filled in, and an empty place for each array: what `plan` is given.
Object attribute_tuple(const Operation& operation, const Arguments& bound) {
  Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(operation.parameters.size())));
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    const Parameter& parameter = operation.parameters[i];
    PyObject* value = Py_None;
    if (parameter.use == Use::attribute) {
      value = bound.values[i] ? bound.values[i] : parameter.fallback;
      if (!value) throw TakeSlowPath();
    } else if (parameter.use == Use::sequence && bound.values[i]) {
      Object length = checked(PyLong_FromSsize_t(sequence_size(bound.values[i])));
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), length.release());
      continue;
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Py_NewRef(value));
  }
  return tuple;
}

// An attribute as plans are found by: what Python calls equal but is not, 1 and 1.0 and True or 0.0
// and -0.0, is told apart, and a NaN is what any other is. Booleans and floats stand as bytes.
Object attribute_key(PyObject* value) {
  if (PyTuple_CheckExact(value)) {
    Object key = checked(PyTuple_New(PyTuple_GET_SIZE(value)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      PyTuple_SET_ITEM(key.get(), i, attribute_key(PyTuple_GET_ITEM(value, i)).release());
    }
    return key;
  }
  if (PyBool_Check(value)) return checked(PyBytes_FromStringAndSize(value == Py_True ? "T" : "F", 1));
  if (PyFloat_Check(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    if (number != number) number = std::numeric_limits<double>::quiet_NaN();
    return checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&number), sizeof number));
  }
  const bool number = !PyLong_Check(value) && PyNumber_Check(value) && !PyType_Check(value);
  if (number) throw TakeSlowPath();  // another library's: it becomes one of Python's there
  return Object::borrowed(value);
}

// A small number for each combination of attributes that has occurred; 0 for all defaults.
uint64_t attribute_id(Operation& operation, const Arguments& bound) {
  if (!operation.has_attributes) return 0;
  const Object key = attribute_key(attribute_tuple(operation, bound).get());
  PyObject* known = PyDict_GetItemWithError(operation.attribute_ids, key.get());
  if (known) return PyLong_AsUnsignedLongLong(known);
  if (PyErr_Occurred()) {  // unhashable: a list for an axis, say
    PyErr_Clear();
    throw TakeSlowPath();
  }
  // Comparing keys may run Python, and another thread may be first: a number is used but once.
  const Object number = checked(PyLong_FromUnsignedLongLong(++operation.last_attribute_id));
  known = PyDict_SetDefault(operation.attribute_ids, key.get(), number.get());
  if (!known) throw PythonError();
  return PyLong_AsUnsignedLongLong(known);
}

bool all_attributes_default(const Operation& operation, const Arguments& bound) {
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    const Use use = operation.parameters[i].use;
    if (use == Use::sequence || (use == Use::attribute && bound.values[i])) return false;
  }
  return true;
}

Signature sign(Operation& operation, const Arguments& bound) {
  Signature signature;
  const bool plain = all_attributes_default(operation, bound);
  signature.begin(plain ? 0 : attribute_id(operation, bound), pool().intra_op_threads());
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    const Parameter& parameter = operation.parameters[i];
    if (signature.full()) throw TakeSlowPath();
    PyObject* value = bound.values[i] ? bound.values[i] : parameter.fallback;
    switch (parameter.use) {
      case Use::attribute:
        break;
      case Use::key:
        signature.add_key();
        break;
      case Use::array:
        if (!value) throw TakeSlowPath();
        add_operand(signature, value);
        break;
      case Use::sequence:
        if (!value) throw TakeSlowPath();
        add_sequence(signature, value);
        break;
    }
  }
  signature.add_numbers_beyond();
  const Outs outs(bound.out);
  for (const Array* out : outs.arrays()) signature.add_out(*out);
  return signature;
}

// -- plans ----------------------------------------------------------------------------------------

Object describe(const Array& array) {
  const std::string_view name = facts(array.dtype).name;
  return checked(Py_BuildValue("(s#NN)", name.data(), static_cast<Py_ssize_t>(name.size()),
                               to_tuple(array.shape), to_tuple(array.strides)));
}

Object describe_operand(PyObject* value, const Signature& signature) {
  if (is_array(value)) return describe(as_array(value));
  if (value == Py_None) return Object::borrowed(Py_None);
  const bool is_integer = PyLong_CheckExact(value);
  if (is_integer && signature.is_beyond(PyLong_AsLongLong(value))) return Object::borrowed(value);
  const char* kind = PyFloat_CheckExact(value) ? "float64" : PyBool_Check(value) ? "bool" : "int64";
  return checked(PyUnicode_FromString(kind));
}

void append(const Object& list, const Object& item) {
  if (PyList_Append(list.get(), item.get())) throw PythonError();
}

// Arrays as (dtype, shape, strides), numbers as the name of their type, or themselves where an array
// does not hold them, in the order of parameters.
Object describe_operands(const Operation& operation, const Arguments& bound,
                         const Signature& signature) {
  Object list = checked(PyList_New(0));
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    const Parameter& parameter = operation.parameters[i];
    PyObject* value = bound.values[i] ? bound.values[i] : parameter.fallback;
    if (parameter.use == Use::array) {
      append(list, describe_operand(value, signature));
    } else if (parameter.use == Use::key) {
      append(list, checked(PyUnicode_FromString("int64")));
    } else if (parameter.use == Use::sequence) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); ++k) {
        append(list, describe_operand(PySequence_Fast_GET_ITEM(value, k), signature));
      }
    }
  }
  return list;
}

Object describe_outs(const Arguments& bound) {
  if (!bound.out) return Object::borrowed(Py_None);
  Object list = checked(PyList_New(0));
  const Outs outs(bound.out);
  for (const Array* out : outs.arrays()) append(list, describe(*out));
  return list;
}

const Plan* make_plan(Operation& operation, const Arguments& bound, const Signature& signature,
                      int device) {
  const Object operands = describe_operands(operation, bound, signature);
  const Object attributes = attribute_tuple(operation, bound);
  const Object number = checked(PyLong_FromLong(device));
  const Object outs = describe_outs(bound);
  const Object made = [&] {
    const InPython others;
    return checked(PyObject_CallMethodObjArgs(operation.record, plan_name, operands.get(),
                                              attributes.get(), outs.get(), number.get(), nullptr));
  }();
  // Another thread may have been first.
  const Plan* const known = operation.plans.find(signature.words(), signature.count());
  if (known) return known;
  auto& handle = nanobind::cast<PlanHandle&>(nanobind::handle(made.get()));
  return operation.plans.insert(signature.words(), signature.count(), handle.plan);
}

// -- gradient recording ---------------------------------------------------------------------------

// Calls `visit` with every operand in the order of parameters; null stands for a random key.
template <typename Visit>
void each_operand(const Operation& operation, const Arguments& bound, Visit visit) {
  for (size_t i = 0; i < operation.parameters.size(); ++i) {
    const Parameter& parameter = operation.parameters[i];
    PyObject* value = bound.values[i] ? bound.values[i] : parameter.fallback;
    if (parameter.use == Use::key) {
      visit(nullptr);
      continue;
    }
    if (!value) throw TakeSlowPath();
    if (parameter.use == Use::array) {
      visit(value);
    } else if (parameter.use == Use::sequence) {
      const Py_ssize_t size = sequence_size(value);
      for (Py_ssize_t k = 0; k < size; ++k) {
        visit(PySequence_Fast_GET_ITEM(value, k));
      }
    }
  }
}

bool has_tracked_operand(const Operation& operation, const Arguments& bound) {
  bool found = false;
  const Outs outs(bound.out);
  for (PyObject* out : outs.objects()) found |= is_tracked(out);
  each_operand(operation, bound, [&](PyObject* value) { found |= value && is_tracked(value); });
  return found;
}

// Arrays, numbers and None in the order of parameters, random keys as they were drawn.
Object operand_tuple(const Operation& operation, const Arguments& bound, const Signature& signature) {
  const Object list = checked(PyList_New(0));
  int scalar = 0;
  each_operand(operation, bound, [&](PyObject* value) {
    if (!value) {
      append(list, checked(PyLong_FromLongLong(signature.scalars[scalar++])));
      return;
    }
    scalar += !is_array(value) && value != Py_None;
    append(list, Object::borrowed(value));
  });
  return checked(PyList_AsTuple(list.get()));
}

// -- capture --------------------------------------------------------------------------------------

bool is_plain(PyObject* value) {
  return is_array(value) || value == Py_None || PyFloat_CheckExact(value) || PyBool_Check(value) ||
         PyLong_CheckExact(value) ||
         reinterpret_cast<PyObject*>(Py_TYPE(value)) == hook("traced_size");
}

// The call as a node of the program that is captured; nothing is computed.
PyObject* call_captured(const Operation& operation, const Arguments& bound) {
  const Object operands = checked(PyList_New(0));
  each_operand(operation, bound, [&](PyObject* value) {
    if (value && !is_plain(value)) throw TakeSlowPath();
    append(operands, Object::borrowed(value ? value : Py_None));
  });
  return checked(capture_call(operation.record, operands, attribute_tuple(operation, bound),
                              bound.out)).release();
}

// -- the call -------------------------------------------------------------------------------------

PyObject* wrap_results(Results& results) {
  if (results.size() == 1) return wrap(std::move(results[0]));
  Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) {
    Object item = checked(wrap(std::move(results[i])));
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return tuple.release();
}

PyObject* call_fast(Operation& operation, Arguments& bound);

// Where writing a result could destroy what is still to be read: new arrays, copied afterwards.
PyObject* compute_aside(Operation& operation, Arguments& bound, const Outs& outs) {
  PyObject* target = std::exchange(bound.out, nullptr);
  const Object result = checked(call_fast(operation, bound));
  for (size_t i = 0; i < outs.objects().size(); ++i) {
    PyObject* const source = PyTuple_CheckExact(result.get())
                                 ? PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i))
                                 : result.get();
    checked(call_operator_into(Operator::assign, &source, outs.objects()[i]));
  }
  return Py_NewRef(target);
}

// Where the results of a call are.
int device_of(const Arguments& bound, const Signature& signature) {
  if (!bound.crosses && signature.array_count) return signature.arrays[0]->storage->device;
  if (!bound.out) return current_device();
  const Outs outs(bound.out);
  return outs.arrays()[0]->storage->device;
}

// Arguments whose arrays are where results are to be: copies of those that have to be brought there.
class Brought {
 public:
  Brought(const Operation& operation, const Arguments& bound, int device) : arguments(bound) {
    for (size_t i = 0; i < operation.parameters.size(); ++i) {
      PyObject*& value = arguments.values[i];
      if (!value || !is_array(value)) continue;
      const int own = as_array(value).storage->device;
      if (own == device || std::max(own, device) < kFirstRemote) continue;
      copies_.push_back(brought(value, device));
      value = copies_.back().get();
    }
  }

  bool any() const { return !copies_.empty(); }

  Arguments arguments;

 private:
  std::vector<Object> copies_;
};

PyObject* call_fast(Operation& operation, Arguments& bound) {
  if (is_capturing()) return call_captured(operation, bound);
  if (must_wait()) wait_for_room();
  Signature signature = sign(operation, bound);
  const int device = device_of(bound, signature);
  std::optional<Brought> there;
  if (bound.crosses) {
    there.emplace(operation, bound, device);
    if (there->any()) signature = sign(operation, there->arguments);
  }
  if (device >= kFirstRemote) signature.set_device(device);  // plans of its own
  const Plan* plan = operation.plans.find(signature.words(), signature.count());
  if (!plan) plan = make_plan(operation, there ? there->arguments : bound, signature, device);
  const Ref<const Plan> kept(kFreeThreaded ? plan : nullptr);  // others may empty the cache
  const Invocation invocation{plan, signature.arrays, signature.array_count, signature.scalars,
                              signature.scalar_count, bound.crosses};
  const bool noted = is_recording() && has_tracked_operand(operation, bound);
  const auto note = [&](PyObject* result) {
    if (!noted) return;
    record_call(operation.record, plan->serial, operand_tuple(operation, bound, signature),
                attribute_tuple(operation, bound), result);
  };
  if (!bound.out) {
    signature.draw(random_state());
    Results results = run(invocation, {}, user_line);
    Object result = checked(wrap_results(results));
    note(result.get());
    return result.release();
  }
  const Outs outs(bound.out);
  bool overlapping = false;
  for (size_t i = 0; i < outs.arrays().size(); ++i) {
    const bool varies = outs.arrays()[i]->storage->has_variable;
    if (noted || (varies && is_recording())) check_write(outs.objects()[i]);
    check_in_place(invocation, *outs.arrays()[i]);
    // XLA writes to nothing that it reads; a record of the call needs operands as they were.
    overlapping |= (noted || !plan->remote) && overlaps(invocation, *outs.arrays()[i]);
  }
  if (overlapping) return compute_aside(operation, bound, outs);
  signature.draw(random_state());
  run(invocation, outs.arrays(), user_line);
  note(bound.out);
  return Py_NewRef(bound.out);
}

// Notes the results that share an operand's memory; while capturing, where none has any, all of them.
void note_results(const Operation& operation, const Arguments& bound, PyObject* result) {
  each_operand(operation, bound, [&](PyObject* operand) {
    if (!operand || !is_array(operand)) return;
    const auto note = [&](PyObject* one) {
      const bool shared = is_array(one) && as_array(one).storage == as_array(operand).storage;
      if (shared || is_capturing()) note_view(one, operand);
    };
    if (!PyTuple_CheckExact(result)) return note(result);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) note(PyTuple_GET_ITEM(result, i));
  });
}

PyObject* call_noted(Operation& operation, Arguments& bound) {
  const Outs outs(bound.out);
  for (PyObject* out : outs.objects()) tell_of_own_write(out);
  Object result = checked(call_fast(operation, bound));
  if (operation.noted && !bound.out) note_results(operation, bound, result.get());
  return result.release();
}

// The context that results are to be on; null if the call does not say.
PyObject* context_of(const Operation& operation, const Arguments& bound) {
  if (operation.context_at < 0 || is_capturing()) return nullptr;
  PyObject* const context = bound.values[operation.context_at];
  return context == Py_None ? nullptr : context;
}

int device_named(PyObject* context) {
  const Object number = checked(PyObject_CallFunctionObjArgs(hook("device_named"), context, nullptr));
  return static_cast<int>(PyLong_AsLong(number.get()));
}

PyObject* call(PyObject* self, PyObject* const* given, size_t flags, PyObject* names) {
  Operation& operation = *reinterpret_cast<OperationObject*>(self)->operation;
  const auto count = PyVectorcall_NARGS(flags);
  try {
    Arguments bound = bind(operation, given, count, names);
    PyObject* const context = context_of(operation, bound);
    const OnDevice there(context ? device_named(context) : current_device());
    bound.crosses = context || operation.crosses;
    Copies copies;
    if constexpr (kFreeThreaded) copy_lists(operation, bound, copies);
    const FrontLock lock;
    if (!noting_views) return call_fast(operation, bound);
    return call_noted(operation, bound);
  } catch (const TakeSlowPath&) {
    const Object slow(PyObject_GetAttr(operation.record, slow_name));
    if (!slow) return nullptr;
    const BesideArguments there(given, count + (names ? PyTuple_GET_SIZE(names) : 0));
    return PyObject_Vectorcall(slow.get(), given, static_cast<size_t>(count), names);
  } catch (...) {
    raise_current();
    return nullptr;
  }
}

// each(calls): one call of the operation for every pair of positional arguments and `out`.
PyObject* call_each(PyObject* self, PyObject* calls) {
  return guarded([&]() -> PyObject* {
    static PyObject* names = PyTuple_Pack(1, out_name);
    const Object items = checked(PySequence_Fast(calls, "expected pairs of arguments and out"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* arguments;
      PyObject* out;
      PyObject* pair = PySequence_Fast_GET_ITEM(items.get(), i);
      if (!PyTuple_Check(pair)) {
        PyErr_SetString(PyExc_TypeError, "expected pairs of arguments and out");
        throw PythonError();
      }
      if (!PyArg_ParseTuple(pair, "O!O", &PyTuple_Type, &arguments, &out)) throw PythonError();
      const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
      PyObject* all[kMostParameters + 1];
      if (count > kMostParameters) {
        PyErr_Format(PyExc_TypeError, "%zd arguments; at most %d", count, kMostParameters);
        throw PythonError();
      }
      std::copy_n(&PyTuple_GET_ITEM(arguments, 0), count, all);
      all[count] = out;
      checked(call(self, all, static_cast<size_t>(count), names));
    }
    Py_RETURN_NONE;
  });
}

// -- the type -------------------------------------------------------------------------------------

Parameter parameter(PyObject* description) {
  PyObject* name;
  int use;
  PyObject* fallback;
  int required;
  if (!PyArg_ParseTuple(description, "UiOp", &name, &use, &fallback, &required)) throw PythonError();
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  return {name, static_cast<Use>(use), required ? nullptr : Py_NewRef(fallback)};
}

// Operation(record, name, parameters): `parameters` holds (name, use, default, required) tuples.
PyObject* new_operation(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* record;
    PyObject* name;
    PyObject* parameters;
    if (!PyArg_ParseTuple(arguments, "OUO!", &record, &name, &PyTuple_Type, &parameters)) {
      throw PythonError();
    }
    if (PyTuple_GET_SIZE(parameters) > kMostParameters) {
      PyErr_Format(PyExc_ValueError, "%U: more than %d parameters", name, kMostParameters);
      throw PythonError();
    }
    auto* operation = new Operation;
    operation->attribute_ids = checked(PyDict_New()).release();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); ++i) {
      operation->parameters.push_back(parameter(PyTuple_GET_ITEM(parameters, i)));
      const Use use = operation->parameters.back().use;
      operation->has_attributes |= use == Use::attribute || use == Use::sequence;
      if (PyUnicode_CompareWithASCIIString(operation->parameters.back().name, "ctx") == 0) {
        operation->context_at = static_cast<int>(i);
      }
    }
    operation->record = Py_NewRef(record);
    operation->name = Py_NewRef(name);
    Object self = checked(type->tp_alloc(type, 0));
    auto* object = reinterpret_cast<OperationObject*>(self.get());
    object->vectorcall = call;
    object->operation = operation;
    return self.release();
  });
}

Operation& of(PyObject* self) { return *reinterpret_cast<OperationObject*>(self)->operation; }

PyObject* get_record(PyObject* self, void*) { return Py_NewRef(of(self).record); }
PyObject* get_name(PyObject* self, void*) { return Py_NewRef(of(self).name); }
PyObject* get_plans(PyObject* self, void*) {
  const FrontLock lock;
  return PyLong_FromSize_t(of(self).plans.size());
}
PyObject* get_at(PyObject* self, void*) { return PyObject_GetAttrString(of(self).record, "at"); }

// Documentation and signature are the record's.
PyObject* get_documentation(PyObject* self, void*) {
  return PyObject_GetAttrString(of(self).record, "documentation");
}
PyObject* get_text_signature(PyObject* self, void*) {
  return PyObject_GetAttrString(of(self).record, "signature");
}

PyGetSetDef attributes[] = {
    {"record", get_record, nullptr, "What the operation is: the registry's record.", nullptr},
    {"plans", get_plans, nullptr, "Signatures seen so far.", nullptr},
    {"at", get_at, nullptr, "Combines elements at places with others: a function, in place.", nullptr},
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_documentation, nullptr, nullptr, nullptr},
    {"__signature__", get_text_signature, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// As a class attribute, an operation is a method whose first argument is the object.
PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* represent(PyObject* self) { return PyUnicode_FromFormat("<operation %U>", of(self).name); }

PyMethodDef methods[] = {
    {"each", call_each, METH_O, "Call with every (arguments, out) of a list: one native call."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperationObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_operation)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec specification = {
    "heterosis._core.Operation",
    sizeof(OperationObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    slots,
};

constexpr const char* kOperatorNames[kOperators] = {
    "add", "subtract", "multiply", "true_divide", "floor_divide", "mod", "power", "matmul",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "negative", "positive", "absolute", "invert",
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal",
    "assign",
};

PyObject* find_operator(Operator which) {
  PyObject* found = operators[static_cast<int>(which)];
  if (!found) {
    PyErr_Format(PyExc_TypeError, "the operator %s is not defined for arrays",
                 kOperatorNames[static_cast<int>(which)]);
  }
  return found;
}

}  // namespace

void add_operation_type(PyObject* module) {
  out_name = PyUnicode_InternFromString("out");
  plan_name = PyUnicode_InternFromString("plan");
  slow_name = PyUnicode_InternFromString("slow");
  const Object type = checked(PyType_FromSpec(&specification));
  if (PyModule_AddObjectRef(module, "Operation", type.get())) throw PythonError();
}

PyObject* run_plan(const PlanHandle& plan, PyObject* operands) {
  const FrontLock lock;
  if (must_wait()) wait_for_room();
  const Object items = checked(PySequence_Fast(operands, "expected arrays and numbers"));
  std::vector<const Array*> arrays;
  std::vector<int64_t> scalars;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (is_array(item)) {
      arrays.push_back(&as_array(item));
    } else if (PyFloat_CheckExact(item)) {
      scalars.push_back(std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(item)));
    } else {
      scalars.push_back(PyLong_AsLongLong(item));
      if (PyErr_Occurred()) throw PythonError();
    }
  }
  Results results = plan.run(arrays, scalars);
  Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     checked(wrap(std::move(results[i]))).release());
  }
  return tuple.release();
}

void set_operator(const char* name, PyObject* operation) {
  for (int i = 0; i < kOperators; ++i) {
    if (std::string_view(kOperatorNames[i]) == name) {
      Py_INCREF(operation);
      Py_XDECREF(std::exchange(operators[i], operation));
      of(operation).crosses = static_cast<Operator>(i) == Operator::assign;
      return;
    }
  }
  PyErr_Format(PyExc_ValueError, "no operator is called %s", name);
  throw PythonError();
}

void note_views_of(PyObject* operations) {
  const FrontLock lock;
  static std::vector<Operation*> noted;
  for (Operation* operation : noted) operation->noted = false;
  noted.clear();
  const Object items = checked(PySequence_Fast(operations, "expected a list of operations"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    noted.push_back(&of(PySequence_Fast_GET_ITEM(items.get(), i)));
    noted.back()->noted = true;
  }
  noting_views = !noted.empty();
}

PyObject* call_operator(Operator which, PyObject* const* arguments, int count) {
  PyObject* operation = find_operator(which);
  return operation ? call(operation, arguments, static_cast<size_t>(count), nullptr) : nullptr;
}

PyObject* call_operator_into(Operator which, PyObject* const* arguments, PyObject* out) {
  static PyObject* names = PyTuple_Pack(1, out_name);
  PyObject* operation = find_operator(which);
  if (!operation) return nullptr;
  const size_t count = which == Operator::assign ? 1 : 2;
  PyObject* all[3] = {arguments[0], count == 2 ? arguments[1] : out, out};
  return call(operation, all, count, names);
}

}  // namespace heterosis::python
