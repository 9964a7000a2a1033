#include "remote.h"

#include <bit>
#include <memory>
#include <utility>

#include "../dispatch.h"
#include "front_lock.h"

namespace heterosis::python {

namespace {

void let_go(void* object) noexcept {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(object));
  PyGILState_Release(state);
}

Object wrapped(std::span<const Array* const> arrays) {
  Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
  for (size_t i = 0; i < arrays.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     checked(wrap(*arrays[i])).release());
  }
  return tuple;
}

class PythonRemote final : public Remote {
 public:
  PythonRemote(PyObject* function, std::vector<bool> reals)
      : function_(Object::borrowed(function)), reals_(std::move(reals)) {}

  void run(const Invocation& invocation, const Results& results) const override {
    const Object arrays = wrapped(invocation.inputs());
    std::vector<const Array*> written;
    size_t i = 0;
    for (const Array& result : results) {
      if (invocation.plan->results[i++].view_of < 0) written.push_back(&result);
    }
    const Object numbers = scalars(invocation);
    const Object targets = wrapped(written);
    const InPython others;
    checked(PyObject_CallFunctionObjArgs(function_.get(), arrays.get(), numbers.get(),
                                         targets.get(), nullptr));
  }

 private:
  Object scalars(const Invocation& invocation) const {
    Object tuple = checked(PyTuple_New(invocation.scalar_count));
    for (int i = 0; i < invocation.scalar_count; ++i) {
      const int64_t bits = invocation.scalars[i];
      PyObject* const number = reals_.at(static_cast<size_t>(i))
                                   ? PyFloat_FromDouble(std::bit_cast<double>(bits))
                                   : PyLong_FromLongLong(bits);
      PyTuple_SET_ITEM(tuple.get(), i, checked(number).release());
    }
    return tuple;
  }

  const Object function_;
  const std::vector<bool> reals_;
};

}  // namespace

PlanHandle make_remote_plan(std::string operation, PyObject* function, std::vector<bool> reals,
                            std::vector<ResultPlan> results) {
  auto* plan = new Plan;
  plan->serial = next_serial();
  const Ref<const Plan> owned(plan);
  plan->operation = std::move(operation);
  plan->results = std::move(results);
  plan->remote = Ref<const Remote>(new PythonRemote(function, std::move(reals)));
  return {owned, nullptr};
}

PyObject* get_elements(PyObject* array, void*) {
  return guarded([&]() -> PyObject* {
    const FrontLock lock;
    auto* const elements = static_cast<PyObject*>(as_array(array).storage->elements());
    if (elements) return Py_NewRef(elements);
    throw Failure(ErrorKind::internal, as_array(array).describe() + " has no elements on a device.");
  });
}

int set_elements(PyObject* array, PyObject* elements, void*) {
  return guarded_status([&] {
    const FrontLock lock;
    Storage& storage = *as_array(array).storage;
    if (!elements || !storage.is_remote()) {
      PyErr_SetString(PyExc_AttributeError, "the elements of this array are in main memory");
      throw PythonError();
    }
    storage.set_elements(Py_NewRef(elements), let_go);
    storage.variable.fail(nullptr);
  });
}

void fail_as(PyObject* array, PyObject* other) {
  const FrontLock lock;
  Storage& storage = *as_array(array).storage;
  const Variable& failed = as_array(other).storage->variable;
  storage.variable.fail(failed.error());
}

Object in_main_memory(PyObject* array) {
  return is_remote(array) ? brought(array, 0) : Object::borrowed(array);
}

Object brought(PyObject* array, int device) {
  const Object number = checked(PyLong_FromLong(device));
  const InPython others;
  return checked(PyObject_CallFunctionObjArgs(hook("brought"), array, number.get(), nullptr));
}

}  // namespace heterosis::python
