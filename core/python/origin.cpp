#include "origin.h"

#include <Python.h>
#include <frameobject.h>

#include <utility>

namespace heterosis::python {

namespace {

std::string& package_folder() {
  static auto* folder = new std::string;
  return *folder;
}

std::string line_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  std::string text = file ? file : "";
  Py_DECREF(code);
  if (!package_folder().empty() && text.starts_with(package_folder())) return {};
  return text + ":" + std::to_string(PyFrame_GetLineNumber(frame));
}

}  // namespace

std::string user_line() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  std::string text;
  while (frame && text.empty()) {
    text = line_of(frame);
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return text;
}

bool called_by_user() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  const bool found = frame && !line_of(frame).empty();
  Py_XDECREF(frame);
  return found;
}

void set_package_folder(std::string folder) { package_folder() = std::move(folder); }

}  // namespace heterosis::python
