// The object loader and the processor's features, as Python sees them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>

#include "../cpu.h"
#include "../object_loader.h"
#include "function_handle.h"

namespace nb = nanobind;

namespace heterosis {
namespace {

using python::FunctionHandle;
using python::ObjectHandle;

ObjectHandle load_object(const nb::bytes& file) {
  return {std::make_shared<const LoadedObject>(
      LoadedObject::load({static_cast<const std::byte*>(file.data()), file.size()}))};
}

std::uintptr_t address(const ObjectHandle& self, std::string_view name) {
  return reinterpret_cast<std::uintptr_t>(self.object->address(name));
}

FunctionHandle function(const ObjectHandle& self, std::string_view name) {
  return {self.object, reinterpret_cast<hx_function>(self.object->address(name))};
}

std::vector<nb::object> symbols(const ObjectHandle& self) {
  std::vector<nb::object> found;
  for (const LoadedObject::Symbol& symbol : self.object->symbols()) {
    const auto address = reinterpret_cast<std::uintptr_t>(symbol.address);
    found.push_back(nb::make_tuple(symbol.name, address, symbol.size));
  }
  return found;
}

// (type, name) of every relocation that the loader knows for an ELF machine number.
std::vector<nb::object> relocation_types(std::uint16_t machine) {
  std::vector<nb::object> found;
  for (const RelocationKind& kind : relocation_kinds(machine))
    found.push_back(nb::make_tuple(kind.type, kind.name));
  return found;
}

}  // namespace

void bind_loader(nb::module_& m) {
  nb::exception<LoadError>(m, "LoadError", PyExc_RuntimeError);
  nb::class_<FunctionHandle>(m, "Function", "Machine code that plans call, and keep.")
      .def_prop_ro("address", [](const FunctionHandle& self) {
        return reinterpret_cast<std::uintptr_t>(self.function);
      });
  nb::class_<ObjectHandle>(m, "LoadedObject",
                           "Machine code in memory; its addresses are valid while it lives.")
      .def("address", &address, nb::arg("name"), "The address of an external symbol it defines.")
      .def_prop_ro("symbols", &symbols,
                   "(name, address, bytes) of its external symbols and its internal functions.")
      .def("function", &function, nb::arg("name"), "The function that `name` is, for plans.")
      .def_prop_ro("is_used", &ObjectHandle::is_used, "Whether a function of it is held.")
      .def_prop_ro("size", [](const ObjectHandle& self) { return self.object->size(); },
                   "Bytes of memory it holds, in whole pages.");
  m.def("load_object", &load_object, nb::arg("file"),
        "Put a relocatable ELF object for this processor into executable memory.");
  m.def(
      "register_symbol",
      [](std::string name, std::uintptr_t address) {
        register_symbol(std::move(name), reinterpret_cast<void*>(address));
      },
      nb::arg("name"), nb::arg("address"), "Let objects loaded from now on call `address`.");
  m.def("cpu_features", &cpu_features, "Instruction set extensions at hand, in LLVM's names.");
  m.def("relocation_types", &relocation_types, nb::arg("machine"),
        "The (type, name) of the relocations that can be loaded for an ELF machine number.");
}

}  // namespace heterosis
