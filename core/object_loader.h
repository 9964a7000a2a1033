// Loads the relocatable ELF objects that code generation writes: bytes in, callable addresses out.
//
// Why not LLVM's own linkers: they come with llvmlite, whose import takes 55 ms and more, and then
// need 280 us (LLJIT) or 1300 us (MCJIT) for a small object that takes 15 us here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "relocations.h"
#include "symbol_table.h"

namespace heterosis {

// Gives the address of a function outside the object, or nullptr.
using SymbolResolver = std::function<void*(std::string_view)>;

// Pages of this process: writable while an object is put together, then fixed.
class CodeMapping {
 public:
  CodeMapping() = default;
  explicit CodeMapping(std::size_t size);
  ~CodeMapping();
  CodeMapping(CodeMapping&& other) noexcept;
  CodeMapping& operator=(CodeMapping&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // From here on the first `code` bytes, whole pages, can be run and read, never written.
  void seal(std::size_t code);

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// An object in memory, ready to run. Its code lives as long as this does.
class LoadedObject {
 public:
  // Throws LoadError for a file that is damaged, for another processor, or in need of a symbol or
  // a relocation that is not known. Nothing of the object runs while it is loaded.
  static LoadedObject load(std::span<const std::byte> file,
                           const SymbolResolver& resolve = find_symbol);

  // Where the object's external symbol `name` is. Throws LoadError if it defines no such symbol.
  void* address(std::string_view name) const;

  struct Symbol {
    std::string name;
    void* address;
    std::size_t size;
    bool external;
  };
  // Its external symbols and its internal functions, of which two may have one name.
  const std::vector<Symbol>& symbols() const { return symbols_; }

  // Bytes of memory held, in whole pages.
  std::size_t size() const { return mapping_.size(); }

 private:
  LoadedObject(CodeMapping mapping, std::vector<Symbol> symbols)
      : mapping_(std::move(mapping)), symbols_(std::move(symbols)) {}

  CodeMapping mapping_;
  std::vector<Symbol> symbols_;
};

}  // namespace heterosis
