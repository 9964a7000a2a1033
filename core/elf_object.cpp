#include "elf_object.h"

#include <cstring>

namespace heterosis {
namespace {

[[noreturn]] void fail(const std::string& message) { throw LoadError("object file: " + message); }

Elf64_Ehdr read_header(std::span<const std::byte> file) {
  Elf64_Ehdr header;
  if (file.size() < sizeof header) fail("truncated: the header is not complete");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    fail("not a 64-bit little-endian ELF file");
  if (header.e_type != ET_REL)
    fail("not a relocatable object: its type is " + std::to_string(header.e_type));
  return header;
}

std::string_view string_at(std::span<const std::byte> table, std::uint64_t offset) {
  if (table.empty() && offset == 0) return {};
  if (offset >= table.size()) fail("a name begins outside its string table");
  const auto* text = reinterpret_cast<const char*>(table.data()) + offset;
  const auto* end = static_cast<const char*>(std::memchr(text, 0, table.size() - offset));
  if (!end) fail("a name does not end inside its string table");
  return {text, static_cast<std::size_t>(end - text)};
}

}  // namespace

ElfObject::ElfObject(std::span<const std::byte> file) : file_(file) {
  machine_ = read_header(file).e_machine;
  read_sections();
  read_symbols();
}

std::span<const std::byte> ElfObject::slice(std::uint64_t offset, std::uint64_t size,
                                            std::string_view what) const {
  if (offset > file_.size() || size > file_.size() - offset)
    fail(std::string(what) + " lies outside the file (truncated?)");
  return file_.subspan(offset, size);
}

template <class Record>
std::vector<Record> ElfObject::records(const Elf64_Shdr& section, std::string_view what) const {
  if (section.sh_entsize != sizeof(Record) || section.sh_size % sizeof(Record) != 0)
    fail(std::string(what) + ": records of an unexpected size");
  const auto bytes = slice(section.sh_offset, section.sh_size, what);
  std::vector<Record> read(bytes.size() / sizeof(Record));
  if (!read.empty()) std::memcpy(read.data(), bytes.data(), bytes.size());
  return read;
}

std::span<const std::byte> ElfObject::string_table(std::uint64_t index,
                                                   std::string_view what) const {
  if (index >= sections_.size() || sections_[index].sh_type != SHT_STRTAB)
    fail(std::string(what) + " has no string table");
  return slice(sections_[index].sh_offset, sections_[index].sh_size, what);
}

void ElfObject::read_sections() {
  const Elf64_Ehdr header = read_header(file_);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0)
    fail("no section table of the expected form");
  const std::uint64_t size = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const auto bytes = slice(header.e_shoff, size, "the section table");
  sections_.resize(header.e_shnum);
  std::memcpy(sections_.data(), bytes.data(), bytes.size());
  section_names_ = string_table(header.e_shstrndx, "the section table");
}

void ElfObject::read_symbols() {
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    if (sections_[i].sh_type != SHT_SYMTAB) continue;
    if (symbol_section_ != 0) fail("more than one symbol table");
    symbol_section_ = i;
  }
  if (symbol_section_ == 0) return;
  const Elf64_Shdr& table = sections_[symbol_section_];
  symbols_ = records<Elf64_Sym>(table, "the symbol table");
  symbol_names_ = string_table(table.sh_link, "the symbol table");
  for (const Elf64_Sym& symbol : symbols_) check_symbol(symbol);
}

void ElfObject::check_symbol(const Elf64_Sym& symbol) const {
  const std::string called = "symbol '" + std::string(name(symbol)) + "'";
  const int type = ELF64_ST_TYPE(symbol.st_info);
  if (type == STT_TLS) fail(called + " is thread-local, which is not supported");
  if (type == STT_GNU_IFUNC) fail(called + " is chosen at load time, which is not supported");
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) return;
  if (symbol.st_shndx == SHN_COMMON) fail(called + " is a common block, which is not supported");
  if (symbol.st_shndx >= sections_.size())
    fail(called + " is of section " + std::to_string(symbol.st_shndx) + ", which does not exist");
  if (symbol.st_value > sections_[symbol.st_shndx].sh_size)
    fail(called + " lies outside its section");
}

std::span<const std::byte> ElfObject::contents(const Elf64_Shdr& section) const {
  if (section.sh_type == SHT_NOBITS) return {};
  return slice(section.sh_offset, section.sh_size,
               "section '" + std::string(name(section)) + "'");
}

std::string_view ElfObject::name(const Elf64_Shdr& section) const {
  return string_at(section_names_, section.sh_name);
}

std::string_view ElfObject::name(const Elf64_Sym& symbol) const {
  return string_at(symbol_names_, symbol.st_name);
}

std::vector<Elf64_Rela> ElfObject::relocations(const Elf64_Shdr& section) const {
  const std::string called = "relocations '" + std::string(name(section)) + "'";
  if (section.sh_link != symbol_section_) fail(called + " are about another symbol table");
  auto read = records<Elf64_Rela>(section, called);
  for (const Elf64_Rela& entry : read)
    if (ELF64_R_SYM(entry.r_info) >= symbols_.size())
      fail(called + " name symbol " + std::to_string(ELF64_R_SYM(entry.r_info)) + " of " +
           std::to_string(symbols_.size()));
  return read;
}

}  // namespace heterosis
