#include <algorithm>
#include <string_view>

#include "array_type.h"
#include "guards_type.h"
#include "replayed.h"

namespace heterosis::python {

namespace {

Source source(PyObject* object) {
  if (object == Py_None) return {Source::Kind::key, 0, Object()};
  if (PyTuple_Check(object)) {
    const char* kind;
    Py_ssize_t position;
    if (!PyArg_ParseTuple(object, "sn", &kind, &position)) throw PythonError();
    const bool is_known = std::string_view(kind) == "known";
    return {is_known ? Source::Kind::known : Source::Kind::supplied, position, Object()};
  }
  if (is_array(object)) return {Source::Kind::outside, 0, Object::borrowed(object)};
  return {Source::Kind::argument, to_number(object), Object()};
}

// How often an array is returned.
Py_ssize_t times_returned(const Item& item, Py_ssize_t array) {
  if (item.kind == Item::Kind::array) return item.array == array;
  Py_ssize_t found = 0;
  for (const Item& one : item.items) found += times_returned(one, array);
  return found;
}

// Whether nobody but this write needs its result, if that is new memory: it is not returned, and not
// kept for gradients.
bool is_last_use(const Program& program, const Write& write) {
  const auto same = [&](const Write& other) {
    return other.from == write.from || other.into == write.into;
  };
  const bool written_once = std::count_if(program.writes.begin(), program.writes.end(), same) == 1;
  const bool returned = times_returned(program.returned, static_cast<Py_ssize_t>(write.from)) > 0;
  return written_once && !returned && !program.record && !write.recorded;
}

Item to_item(PyObject* node) {
  const char* kind;
  PyObject *what, *keys = nullptr;
  if (!PyArg_ParseTuple(node, "sO|O", &kind, &what, &keys)) throw PythonError();
  Item found;
  const std::string_view name(kind);
  if (name == "array") {
    found.kind = Item::Kind::array;
    found.array = to_number(what);
    return found;
  }
  if (name == "constant") {
    found.kind = Item::Kind::constant;
    found.constant = Object::borrowed(what);
    return found;
  }
  found.kind = name == "tuple"  ? Item::Kind::tuple
               : name == "list" ? Item::Kind::list
                                : Item::Kind::dict;
  each(what, [&](PyObject* one) { found.items.push_back(to_item(one)); });
  if (keys) each(keys, [&](PyObject* one) { found.keys.push_back(Object::borrowed(one)); });
  return found;
}

Object unless_none(PyObject* object) {
  return object == Py_None ? Object() : Object::borrowed(object);
}

}  // namespace

Ref<const Program> to_program(PyObject* fields) {
  PyObject *sources, *returned, *writes, *supply, *record, *guards;
  int constants, waits;
  if (!PyArg_ParseTuple(fields, "OO!OOOOpp", &sources, &PyTuple_Type, &returned, &writes, &supply,
                        &record, &guards, &constants, &waits)) {
    throw PythonError();
  }
  if (!is_guards(guards)) {
    PyErr_SetString(PyExc_TypeError, "a program: expected Guards");
    throw PythonError();
  }
  auto* const program = new Program;
  const Ref<const Program> owned(program);
  program->supply = unless_none(supply);
  program->record = unless_none(record);
  program->guards = Object::borrowed(guards);
  program->constants = constants != 0;
  program->waits = waits != 0;
  each(sources, [&](PyObject* one) { program->sources.push_back(source(one)); });
  program->returned = to_item(returned);
  each(writes, [&](PyObject* triple) {
    Py_ssize_t from, into;
    int recorded;
    if (!PyArg_ParseTuple(triple, "nnp", &from, &into, &recorded)) throw PythonError();
    program->writes.push_back(
        {static_cast<size_t>(from), static_cast<size_t>(into), recorded != 0, false});
  });
  for (Write& write : program->writes) {
    write.last = is_last_use(*program, write);
    program->taken_over.resize(std::max(program->taken_over.size(), write.from + 1));
    program->taken_over[write.from] = write.last;
  }
  return owned;
}

}  // namespace heterosis::python
