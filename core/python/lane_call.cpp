#include "lane_call.h"

#include <memory>
#include <utility>

#include "../dispatch.h"
#include "../profile.h"
#include "front_lock.h"
#include "origin.h"

namespace heterosis::python {

namespace {

class PythonLock {
 public:
  PythonLock() : state_(PyGILState_Ensure()) {}
  ~PythonLock() { PyGILState_Release(state_); }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;

 private:
  const PyGILState_STATE state_;
};

// The text of the Python error that is set, which is cleared; and whether it is of our own class.
std::pair<ErrorKind, std::string> taken_error() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Object owned_type(type);
  const Object owned_value(value);
  const Object owned_trace(trace);
  const bool ours = PyErr_GivenExceptionMatches(type, hook("error:CommunicationError")) != 0;
  const Object shown(PyObject_Str(value ? value : type));
  const char* text = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  std::string message = text ? text : "an error without a text";
  PyErr_Clear();
  if (ours) return {ErrorKind::communication, std::move(message)};
  return {ErrorKind::internal, std::string(PyExceptionClass_Name(type)) + ": " + message};
}

class LaneCall final : public Task {
 public:
  LaneCall(std::string operation, PyObject* function, const Array& array, const Array& order)
      : operation_(std::move(operation)),
        function_(Object::borrowed(function)),
        array_(array),
        origin_(user_line()) {
    update(array.storage);
    write(order.storage);
    use_lane();
  }

  ~LaneCall() override {
    const PythonLock lock;
    function_ = Object();
  }

 protected:
  void run() override {
    const int64_t started = Profile::now();
    {
      const PythonLock lock;
      const Object memory(PyMemoryView_FromMemory(reinterpret_cast<char*>(array_.data()),
                                                  array_.nbytes(), PyBUF_WRITE));
      const bool done = memory && called(memory.get(), Py_None);
      const auto [kind, text] = done ? std::pair<ErrorKind, std::string>() : taken_error();
      close(memory.get());
      if (!done) throw Failure(kind, origin_.empty() ? text : text + " Issued at " + origin_ + ".");
    }
    if (profile().on()) profile().add(operation_, queued_ ? queued_ : started, started, true);
  }

  void miss(const Error& error) noexcept override {
    const PythonLock lock;
    const Object text(PyUnicode_FromString(error.message.c_str()));
    if (!text || !called(Py_None, text.get())) PyErr_Clear();  // the array keeps its error
  }

 private:
  bool called(PyObject* memory, PyObject* error) {
    return Object(PyObject_CallFunctionObjArgs(function_.get(), memory, error, nullptr)).get();
  }

  // Nobody may write there from now on.
  static void close(PyObject* memory) {
    if (memory && !Object(PyObject_CallMethod(memory, "release", nullptr))) PyErr_Clear();
  }

  const std::string operation_;
  Object function_;
  const Array array_;
  const std::string origin_;
  const int64_t queued_ = profile().on() ? Profile::now() : 0;
};

void* release_front_lock() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }

void regain_front_lock(void* released) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(released));
}

}  // namespace

void call_in_lane(std::string operation, PyObject* function, PyObject* array, PyObject* order) {
  const Array& target = as_array(array);
  if (target.storage->is_remote()) {
    throw Failure(ErrorKind::value, operation + ": " + target.describe() +
                                        " is on a GPU; expected an array in main memory. Copy it " +
                                        "with x.as_in_ctx(npx.cpu()).");
  }
  if (!target.contiguous) {
    throw Failure(ErrorKind::value, operation + ": the elements of " + target.describe() +
                                        " have gaps between them; copy it first.");
  }
  const FrontLock lock;
  if (must_wait()) wait_for_room();
  auto task = std::make_unique<LaneCall>(std::move(operation), function, target, as_array(order));
  ++target.storage->version;
  engine().push(std::move(task));
}

void share_front_lock() { engine().set_front_lock({release_front_lock, regain_front_lock}); }

}  // namespace heterosis::python
