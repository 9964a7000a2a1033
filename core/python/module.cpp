// The extension module: types, engine controls, memory counters, plans, the loader.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../allocator.h"
#include "../dispatch.h"
#include "../pool.h"
#include "../profile.h"
#include "../random_state.h"
#include "array_type.h"
#include "checked_type.h"
#include "front_lock.h"
#include "function_handle.h"
#include "guards_type.h"
#include "kinds.h"
#include "lane_call.h"
#include "operation_type.h"
#include "origin.h"
#include "plan_handle.h"
#include "recording.h"
#include "remote.h"
#include "taping.h"
#include "view_notes.h"
#include "replay_type.h"

namespace nb = nanobind;

namespace heterosis {

void bind_loader(nb::module_& module);

namespace python {

void bind_sized_plans(nb::module_& module);

namespace {

// Python errors of the C API, and errors of the core, as Python exceptions.
template <typename Body>
auto translated(Body body) {
  try {
    return body();
  } catch (...) {
    raise_current();
    throw nb::python_error();
  }
}

// Under the front end's lock.
template <typename Body>
auto locked(Body body) {
  const FrontLock lock;
  return body();
}

// What a function of values gives, under that lock.
template <typename... Given>
nb::object listed(Object (*function)(Given...), Given... given) {
  return translated([&] {
    const FrontLock lock;
    return nb::steal(function(given...).release());
  });
}

// (dtype, shape, view_of or -1, strides, offset)
std::vector<ResultPlan> result_plans(nb::list results) {
  std::vector<ResultPlan> plans;
  for (nb::handle item : results) {
    nb::tuple fields = nb::cast<nb::tuple>(item);
    ResultPlan result;
    result.dtype = dtype_named(nb::cast<std::string>(fields[0]));
    result.shape = translated([&] { return to_dims(nb::object(fields[1]).ptr()); });
    result.view_of = nb::cast<int>(fields[2]);
    result.strides = translated([&] { return to_dims(nb::object(fields[3]).ptr()); });
    result.nbytes = itemsize(result.dtype);
    for (int64_t extent : result.shape) result.nbytes *= extent;
    result.offset = nb::cast<int64_t>(fields[4]);
    plans.push_back(std::move(result));
  }
  return plans;
}

// results: as above; failures: (error class, message).
PlanHandle make_plan(std::string operation, const FunctionHandle* function, std::vector<int64_t> integers,
                     int64_t workspace, double nanoseconds, bool elementwise, nb::list results,
                     std::vector<std::tuple<std::string, std::string>> failures, bool in_place,
                     std::vector<int> over) {
  auto* plan = new Plan;
  plan->serial = next_serial();
  const Ref<const Plan> owned(plan);
  plan->operation = std::move(operation);
  if (function) {
    plan->function = function->function;
    plan->code = function->object;
  }
  plan->runtime = runtime();
  plan->integers = std::move(integers);
  plan->workspace = workspace;
  plan->nanoseconds = nanoseconds;
  plan->elementwise = elementwise;
  plan->in_place = in_place;
  plan->results = result_plans(results);
  for (size_t i = 0; i < over.size(); ++i) plan->results.at(i).over = over[i];
  for (auto& [kind, message] : failures) plan->failures.push_back({kind_named(kind), message});
  return {owned, nullptr};
}

// An array that the core can write into: what is to be elsewhere, `made` brings there.
Array make_in_main_memory(DType dtype, PyObject* shape) {
  const OnDevice there(current_device() < kFirstRemote ? current_device() : 0);
  return make_array(dtype, to_dims(shape));
}

// What a program that is captured gets for an array that Python has made.
nb::object made(Array array) {
  const bool is_there = current_device() < kFirstRemote || array.storage->is_remote();
  Object object = checked(wrap(std::move(array)));
  if (!is_there) object = brought(object.get(), current_device());
  if (!is_capturing()) return nb::borrow(object.get());
  return nb::steal(checked(PyObject_CallFunctionObjArgs(hook("capture_made"), object.get(), nullptr))
                       .release());
}

// A new array with the bytes of `source`, which lie in row-major order without gaps.
nb::object array_from_bytes(nb::handle source, const std::string& dtype, nb::handle shape) {
  return translated([&] {
    Py_buffer view;
    if (PyObject_GetBuffer(source.ptr(), &view, PyBUF_C_CONTIGUOUS)) throw PythonError();
    struct Released {
      Py_buffer* view;
      ~Released() { PyBuffer_Release(view); }
    } released{&view};
    Array array = make_in_main_memory(dtype_named(dtype), shape.ptr());
    if (view.len != array.nbytes()) throw nb::value_error("the sizes of buffer and array differ");
    std::memcpy(array.storage->ensure(), view.buf, static_cast<size_t>(view.len));
    return made(std::move(array));
  });
}

nb::object empty(const std::string& dtype, nb::handle shape) {
  return translated([&] {
    Array array = make_array(dtype_named(dtype), to_dims(shape.ptr()));
    if (!array.storage->is_remote()) {
      array.storage->ensure();
      return made(std::move(array));
    }
    const Object object = checked(wrap(array));
    if (set_elements(object.get(), Py_None, nullptr)) throw PythonError();
    return made(std::move(array));
  });
}

// An array without elements, for a program that is captured: whoever reads it gets the error.
// With `extents`, users see these: integers that follow from sizes, and are `shape` in this call.
nb::object unreadable(const std::string& dtype, nb::handle shape, std::string message,
                      nb::object extents) {
  return translated([&] {
    Array array = make_array(dtype_named(dtype), to_dims(shape.ptr()));
    array.storage->variable.fail(make_error(ErrorKind::capture, std::move(message)));
    const Object made = checked(wrap(std::move(array)));
    if (!extents.is_none()) {
      if (!PyTuple_CheckExact(extents.ptr())) throw nb::type_error("extents are a tuple");
      reinterpret_cast<ArrayObject*>(made.get())->extents = extents.release().ptr();
    }
    return nb::borrow(made.get());
  });
}

// Another view of the same memory; strides and offset in elements, inside the storage.
nb::object view(nb::handle base, nb::handle shape, nb::handle strides, int64_t offset) {
  return translated([&] {
    const Array& array = as_array(base.ptr());
    return nb::steal(wrap(make_view(array, to_dims(shape.ptr()), to_dims(strides.ptr()), offset)));
  });
}

// The same bits as elements of another type of the same width.
nb::object reinterpret(nb::handle source, const std::string& dtype) {
  return translated([&] {
    Array array = as_array(source.ptr());
    if (itemsize(dtype_named(dtype)) != itemsize(array.dtype)) {
      throw nb::value_error("the element types differ in width");
    }
    array.dtype = dtype_named(dtype);
    return nb::steal(wrap(std::move(array)));
  });
}

using Run = std::tuple<std::string, int64_t, int64_t, int64_t, int64_t, bool>;

std::vector<Run> take_profile() {
  std::vector<Run> runs;
  for (ProfiledRun& run : profile().take()) {
    runs.emplace_back(std::move(run.operation), run.queued, run.started, run.ended, run.thread,
                      run.in_lane);
  }
  return runs;
}

nb::dict engine_counters() {
  const EngineCounters now = engine().counters();
  nb::dict counters;
  counters["executed"] = now.executed;
  counters["skipped"] = now.skipped;
  counters["inlined"] = now.inlined;
  counters["outstanding_tasks"] = now.outstanding_tasks;
  counters["outstanding_bytes"] = now.outstanding_bytes;
  counters["peak_tasks"] = now.peak_tasks;
  counters["peak_bytes"] = now.peak_bytes;
  return counters;
}

nb::dict memory() {
  const MemoryCounters now = memory_counters();
  nb::dict counters;
  counters["live"] = now.live;
  counters["peak"] = now.peak;
  counters["cached"] = now.cached;
  counters["limit"] = now.limit;
  counters["cache_limit"] = now.cache_limit;
  return counters;
}

void shutdown() {
  nb::gil_scoped_release unlocked;
  engine().shutdown(Engine::Shutdown::leave);
  pool().stop();
}

void bind_engine(nb::module_& m) {
  m.def("wait_all", [] { translated([] { wait_for_all(); return 0; }); });
  m.def("set_profiling", [](bool on) { profile().set(on); });
  m.def("take_profile", take_profile);
  m.def("engine_counters", engine_counters);
  m.def("reset_engine_peaks", [] { engine().reset_peaks(); });
  m.def("set_engine_bounds", [](int64_t tasks, int64_t bytes) { engine().set_bounds(tasks, bytes); });
  m.def("set_inline_nanoseconds", [](double limit) {
    locked([&] { dispatch_settings().inline_nanoseconds = limit; });
  });
  m.def("inline_nanoseconds", [] { return dispatch_settings().inline_nanoseconds; });
  m.def("call_in_lane", [](std::string operation, nb::handle function, nb::handle array,
                           nb::handle order) {
    translated([&] {
      call_in_lane(std::move(operation), function.ptr(), array.ptr(), order.ptr());
      return 0;
    });
  });
  share_front_lock();
  m.def("threads", [] { return pool().threads(); });
  m.def("set_threads", [](int count) { pool().set_threads(count); });
  m.def("intra_op_threads", [] { return pool().intra_op_threads(); });
  m.def("set_intra_op_threads", [](int count) { pool().set_intra_op_threads(count); });
  m.def("shutdown", shutdown);
  m.def("hold_front_lock", hold_front_lock);
  m.def("release_front_lock", release_front_lock);
}

void bind_memory(nb::module_& m) {
  m.def("memory_counters", memory);
  m.def("reset_memory_peak", [] { reset_peak(); });
  m.def("set_memory_limit", [](int64_t bytes) { set_memory_limit(bytes); });
  m.def("set_memory_cache_limit", [](int64_t bytes) { set_cache_limit(bytes); });
  m.def("empty_memory_cache", [] { empty_cache(); });
}

void bind_random(nb::module_& m) {
  m.def("seed", [](uint64_t seed) { locked([&] { random_state().seed(seed); }); });
  m.def("random_key", [] { return locked([] { return random_state().next(); }); });
  m.def("random_state", [] {
    return locked([] { return std::tuple(random_state().seed(), random_state().drawn()); });
  });
  m.def("restore_random_state", [](uint64_t seed, uint64_t drawn) {
    locked([&] { random_state().restore(seed, drawn); });
  });
}

// Gives the elements of the only array of a list to another array, and empties the list, if nobody
// else has it, and it could stand where the other one does.
bool hand_over(nb::list list, nb::handle array) {
  return translated([&] {
    const FrontLock lock;
    if (is_capturing() || PyList_GET_SIZE(list.ptr()) != 1) return false;
    PyObject* const given = PyList_GET_ITEM(list.ptr(), 0);
    if (!is_array(given) || !is_array(array.ptr()) || Py_REFCNT(given) != 1) return false;
    if (!heterosis::hand_over(as_array(array.ptr()), as_array(given))) return false;
    PyList_SetSlice(list.ptr(), 0, 1, nullptr);  // of a list it cannot fail
    return true;
  });
}

// Of what a user gives for a mode, None or anything that has a truth.
std::optional<bool> truth(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  return nb::cast<bool>(nb::bool_(given));
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // loaded code lives as long as the process
  m.doc() = "The native core: arrays, dependency engine, dispatch, memory, code loading.";
  translated([&] {
    make_front_lock();
    add_array_type(m.ptr());
    add_operation_type(m.ptr());
    add_guards_type(m.ptr());
    add_replay_type(m.ptr());
    add_checked_type(m.ptr());
    add_entry_type(m.ptr());
    return 0;
  });
  nb::class_<PlanHandle>(m, "Plan");
  m.def("make_plan", make_plan, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  m.def("make_remote_plan", [](std::string operation, nb::handle function, std::vector<bool> reals,
                               nb::list results) {
    return make_remote_plan(std::move(operation), function.ptr(), std::move(reals),
                            result_plans(results));
  });
  m.def("fail_as", [](nb::handle array, nb::handle other) { fail_as(array.ptr(), other.ptr()); });
  m.attr("first_remote") = kFirstRemote;
  m.attr("of_processes") = kOfProcesses;
  m.def("with_preparation", [](const PlanHandle& plan, const PlanHandle& preparation,
                               std::vector<size_t> ahead, std::vector<size_t> own) {
    return PlanHandle{plan.plan,
                      std::make_shared<Preparation>(preparation.plan, std::move(ahead)),
                      std::move(own)};
  });
  m.def("run_plan", [](const PlanHandle& handle, nb::handle operands) {
    return translated([&] { return nb::steal(run_plan(handle, operands.ptr())); });
  });
  m.def("is_recording", is_recording);
  m.def("set_recording", set_recording);
  m.def("is_training", is_training);
  m.def("set_training", set_training);
  m.def("is_imperative", is_imperative);
  m.def("set_imperative", set_imperative);
  m.def("is_capturing", is_capturing);
  m.def("set_capturing", set_capturing);
  m.def("switch_modes", [](nb::handle recording, nb::handle training, nb::handle capturing,
                           nb::handle imperative) {
    return switch_modes(truth(recording), truth(training), truth(capturing), truth(imperative));
  }, nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none());
  m.def("current_device", current_device);
  m.def("device_of", [](const std::string& name, nb::list arrays) {
    return translated([&] {
      std::vector<const Array*> found;
      for (nb::handle array : arrays) found.push_back(&as_array(array.ptr()));
      return device_of(name, found);
    });
  });
  m.def("set_current_device", set_current_device);
  m.def("array_from_bytes", array_from_bytes);
  m.def("empty", empty);
  m.def("unreadable", unreadable, nb::arg("dtype"), nb::arg("shape"), nb::arg("message"),
        nb::arg("extents") = nb::none());
  m.def("view", view);
  m.def("reinterpret", reinterpret);
  m.def("from_dlpack", [](nb::handle capsule) {
    PyObject* array = from_dlpack(capsule.ptr());
    if (!array) throw nb::python_error();
    return nb::steal(array);
  });
  m.def("set_operator", [](const char* name, nb::handle operation) {
    translated([&] { set_operator(name, operation.ptr()); return 0; });
  });
  m.def("hand_over", hand_over);
  m.def("followed", [](nb::handle name, nb::handle operands, nb::handle result) {
    return listed(followed, name.ptr(), operands.ptr(), result.ptr());
  }, nb::arg(), nb::arg(), nb::arg().none());
  m.def("attach", [](nb::handle node, nb::handle results, nb::list positions) {
    translated([&] {
      const FrontLock lock;
      attach(node.ptr(), results.ptr(), positions.ptr());
      return 0;
    });
  });
  m.def("as_now", [](nb::handle values) { return listed(as_now, values.ptr()); });
  m.def("unchanged", [](nb::handle name, nb::handle held) {
    return listed(unchanged, name.ptr(), held.ptr());
  });
  m.def("strides_of", [](nb::handle values) { return listed(strides_of, values.ptr()); });
  m.def("tell_of_write", [](nb::handle array) {
    translated([&] {
      const FrontLock lock;
      if (noting_views) tell_of_write(array.ptr());
      return 0;
    });
  });
  m.def("note_views_of", [](nb::handle operations) {
    translated([&] { note_views_of(operations.ptr()); return 0; });
  });
  m.def("set_hook", [](const char* name, nb::handle f) { set_hook(name, f.ptr()); });
  m.def("set_error_class", [](const char* kind, nb::handle c) { set_error_class(kind, c.ptr()); });
  m.def("set_package_folder", set_package_folder);
  bind_engine(m);
  bind_memory(m);
  bind_random(m);
  bind_sized_plans(m);
  bind_loader(m);
}

}  // namespace python
}  // namespace heterosis
