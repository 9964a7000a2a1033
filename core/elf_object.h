// A relocatable ELF64 file in memory, read with every offset, size and index checked.
//
// What the accessors return lies inside the file; a file that says otherwise is a LoadError.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "relocations.h"

namespace heterosis {

class ElfObject {
 public:
  // `file` must outlive this view.
  explicit ElfObject(std::span<const std::byte> file);

  std::uint16_t machine() const { return machine_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }

  // The bytes of a section; none for one that is only zeros at run time.
  std::span<const std::byte> contents(const Elf64_Shdr& section) const;
  std::string_view name(const Elf64_Shdr& section) const;
  std::string_view name(const Elf64_Sym& symbol) const;

  // The records of a section of type SHT_RELA.
  std::vector<Elf64_Rela> relocations(const Elf64_Shdr& section) const;

 private:
  void read_sections();
  void read_symbols();
  void check_symbol(const Elf64_Sym& symbol) const;
  std::span<const std::byte> slice(std::uint64_t offset, std::uint64_t size,
                                   std::string_view what) const;
  std::span<const std::byte> string_table(std::uint64_t index, std::string_view what) const;
  template <class Record>
  std::vector<Record> records(const Elf64_Shdr& section, std::string_view what) const;

  std::span<const std::byte> file_;
  std::uint16_t machine_ = 0;
  std::vector<Elf64_Shdr> sections_;
  std::size_t symbol_section_ = 0;
  std::vector<Elf64_Sym> symbols_;
  std::span<const std::byte> section_names_, symbol_names_;
};

}  // namespace heterosis
