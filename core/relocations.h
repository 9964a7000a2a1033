// What each ELF relocation type asks for, as a table, and the arithmetic that answers it.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

namespace heterosis {

// An object that cannot be loaded; the message names the part of it that is wrong.
class LoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Which address of its symbol a relocation is about.
enum class Via : std::uint8_t {
  none,    // nothing to do
  symbol,  // the symbol itself
  slot,    // a word that holds the symbol's address (an entry of the "global offset table")
  call,    // the symbol, or a stub that jumps there if it is out of the instruction's reach
};

// How the value is written at the relocated place.
enum class Form : std::uint8_t {
  absolute64,
  absolute32,           // must read back the same when extended with zeros
  absolute32_signed,    // must read back the same when extended with the sign
  absolute32_either,
  relative64,
  relative32,
  relative21,           // AArch64 ADR
  relative21_page,      // AArch64 ADRP: distance in pages of 4 KiB
  low12,                // AArch64 ADD, LDR, STR: offset in the page, in units of `1 << shift`
  branch26,             // AArch64 B, BL
  branch19,             // AArch64 B.cond, CBZ, LDR (literal)
  branch14,             // AArch64 TBZ
};

struct RelocationKind {
  std::uint32_t type;
  const char* name;
  Via via;
  Form form;
  std::uint8_t shift = 0;
};

// The kinds implemented for an ELF machine number; empty for other machines.
std::span<const RelocationKind> relocation_kinds(std::uint16_t machine);

// The row for `type`, or nullptr.
const RelocationKind* find_relocation(std::uint16_t machine, std::uint32_t type);

// Bytes that a relocation of this form changes.
std::size_t relocation_width(Form form);

// Whether `value` can be written at address `place` in this form.
bool reaches(const RelocationKind& kind, std::uint64_t place, std::uint64_t value);

// Writes `value` (symbol plus addend) at `bytes`, which will be found at address `place`.
// The caller has checked `reaches`.
void write_relocation(const RelocationKind& kind, std::byte* bytes, std::uint64_t place,
                      std::uint64_t value);

}  // namespace heterosis
