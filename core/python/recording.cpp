#include "recording.h"

#include <utility>

#include "front_lock.h"

namespace heterosis::python {

namespace {

thread_local bool recording = false;
thread_local bool training = false;
thread_local bool capturing = false;
thread_local bool imperative = false;

}  // namespace

bool is_recording() { return recording; }
void set_recording(bool on) { recording = on; }
bool is_training() { return training; }
void set_training(bool on) { training = on; }
bool is_capturing() { return capturing; }
void set_capturing(bool on) { capturing = on; }
bool is_imperative() { return imperative; }
void set_imperative(bool on) { imperative = on; }

Modes switch_modes(std::optional<bool> recorded, std::optional<bool> trains,
                   std::optional<bool> captured, std::optional<bool> as_python) {
  return {std::exchange(recording, recorded.value_or(recording)),
          std::exchange(training, trains.value_or(training)),
          std::exchange(capturing, captured.value_or(capturing)),
          std::exchange(imperative, as_python.value_or(imperative))};
}

void check_write(PyObject* out) {
  const InPython others;
  checked(PyObject_CallFunctionObjArgs(hook("check_write"), out, nullptr));
}

void record_call(PyObject* record, uint64_t plan, const Object& operands, const Object& attributes,
                 PyObject* result) {
  const InPython others;
  const Object serial = checked(PyLong_FromUnsignedLongLong(plan));
  checked(PyObject_CallFunctionObjArgs(hook("record_call"), record, serial.get(), operands.get(),
                                       attributes.get(), result, nullptr));
}

PyObject* capture_call(PyObject* record, const Object& operands, const Object& attributes,
                       PyObject* out) {
  const InPython others;
  return PyObject_CallFunctionObjArgs(hook("capture_call"), record, operands.get(),
                                      attributes.get(), out ? out : Py_None, nullptr);
}

}  // namespace heterosis::python
