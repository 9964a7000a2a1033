#include "relocations.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

#ifndef R_X86_64_GOTPCRELX
#define R_X86_64_GOTPCRELX 41
#define R_X86_64_REX_GOTPCRELX 42
#endif

namespace heterosis {
namespace {

#define HX_ROW(type) type, #type

constexpr auto x86_64_kinds = std::to_array<RelocationKind>({
    {HX_ROW(R_X86_64_NONE), Via::none, Form::absolute64},
    {HX_ROW(R_X86_64_64), Via::symbol, Form::absolute64},
    {HX_ROW(R_X86_64_PC32), Via::symbol, Form::relative32},
    {HX_ROW(R_X86_64_PLT32), Via::call, Form::relative32},
    {HX_ROW(R_X86_64_GOTPCREL), Via::slot, Form::relative32},
    {HX_ROW(R_X86_64_32), Via::symbol, Form::absolute32},
    {HX_ROW(R_X86_64_32S), Via::symbol, Form::absolute32_signed},
    {HX_ROW(R_X86_64_PC64), Via::symbol, Form::relative64},
    {HX_ROW(R_X86_64_GOTPCRELX), Via::slot, Form::relative32},
    {HX_ROW(R_X86_64_REX_GOTPCRELX), Via::slot, Form::relative32},
});

constexpr auto aarch64_kinds = std::to_array<RelocationKind>({
    {HX_ROW(R_AARCH64_NONE), Via::none, Form::absolute64},
    {HX_ROW(R_AARCH64_ABS64), Via::symbol, Form::absolute64},
    {HX_ROW(R_AARCH64_ABS32), Via::symbol, Form::absolute32_either},
    {HX_ROW(R_AARCH64_PREL64), Via::symbol, Form::relative64},
    {HX_ROW(R_AARCH64_PREL32), Via::symbol, Form::relative32},
    {HX_ROW(R_AARCH64_LD_PREL_LO19), Via::symbol, Form::branch19},
    {HX_ROW(R_AARCH64_ADR_PREL_LO21), Via::symbol, Form::relative21},
    {HX_ROW(R_AARCH64_ADR_PREL_PG_HI21), Via::symbol, Form::relative21_page},
    {HX_ROW(R_AARCH64_ADD_ABS_LO12_NC), Via::symbol, Form::low12, 0},
    {HX_ROW(R_AARCH64_LDST8_ABS_LO12_NC), Via::symbol, Form::low12, 0},
    {HX_ROW(R_AARCH64_LDST16_ABS_LO12_NC), Via::symbol, Form::low12, 1},
    {HX_ROW(R_AARCH64_LDST32_ABS_LO12_NC), Via::symbol, Form::low12, 2},
    {HX_ROW(R_AARCH64_LDST64_ABS_LO12_NC), Via::symbol, Form::low12, 3},
    {HX_ROW(R_AARCH64_LDST128_ABS_LO12_NC), Via::symbol, Form::low12, 4},
    {HX_ROW(R_AARCH64_TSTBR14), Via::symbol, Form::branch14},
    {HX_ROW(R_AARCH64_CONDBR19), Via::symbol, Form::branch19},
    {HX_ROW(R_AARCH64_JUMP26), Via::call, Form::branch26},
    {HX_ROW(R_AARCH64_CALL26), Via::call, Form::branch26},
    {HX_ROW(R_AARCH64_ADR_GOT_PAGE), Via::slot, Form::relative21_page},
    {HX_ROW(R_AARCH64_LD64_GOT_LO12_NC), Via::slot, Form::low12, 3},
});

#undef HX_ROW

constexpr std::uint64_t page_mask = ~std::uint64_t{0xfff};

// Distances wrap around on purpose: addresses are numbers modulo 2^64.
std::int64_t distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to - from);
}

bool fits_signed(std::int64_t value, int bits) {
  const std::int64_t limit = std::int64_t{1} << (bits - 1);
  return -limit <= value && value < limit;
}

bool is_multiple(std::uint64_t value, int shift) {
  return (value & ((std::uint64_t{1} << shift) - 1)) == 0;
}

template <class Word>
void put(std::byte* bytes, Word word) {
  std::memcpy(bytes, &word, sizeof word);
}

// Replaces `bits` bits of the instruction, from bit `low` on, by the low bits of `value`.
void patch(std::byte* bytes, std::uint64_t value, int bits, int low) {
  std::uint32_t instruction;
  std::memcpy(&instruction, bytes, sizeof instruction);
  const std::uint32_t mask = ((std::uint32_t{1} << bits) - 1) << low;
  instruction = (instruction & ~mask) | ((static_cast<std::uint32_t>(value) << low) & mask);
  put(bytes, instruction);
}

// ADR and ADRP keep the two low bits of their 21 apart from the rest.
void patch_adr(std::byte* bytes, std::uint64_t value) {
  patch(bytes, value & 3, 2, 29);
  patch(bytes, value >> 2, 19, 5);
}

}  // namespace

std::span<const RelocationKind> relocation_kinds(std::uint16_t machine) {
  if (machine == EM_X86_64) return x86_64_kinds;
  if (machine == EM_AARCH64) return aarch64_kinds;
  return {};
}

const RelocationKind* find_relocation(std::uint16_t machine, std::uint32_t type) {
  const auto kinds = relocation_kinds(machine);
  const auto found = std::ranges::find(kinds, type, &RelocationKind::type);
  return found == kinds.end() ? nullptr : &*found;
}

std::size_t relocation_width(Form form) {
  return form == Form::absolute64 || form == Form::relative64 ? 8 : 4;
}

bool reaches(const RelocationKind& kind, std::uint64_t place, std::uint64_t value) {
  const std::int64_t away = distance(place, value);
  const auto number = static_cast<std::int64_t>(value);
  switch (kind.form) {
    case Form::absolute64:
    case Form::relative64: return true;
    case Form::absolute32: return value <= UINT32_MAX;
    case Form::absolute32_signed: return fits_signed(number, 32);
    case Form::absolute32_either: return value <= UINT32_MAX || fits_signed(number, 32);
    case Form::relative32: return fits_signed(away, 32);
    case Form::relative21: return fits_signed(away, 21);
    case Form::relative21_page:
      return fits_signed(distance(place & page_mask, value & page_mask), 33);
    case Form::low12: return is_multiple(value & ~page_mask, kind.shift);
    case Form::branch26: return is_multiple(value - place, 2) && fits_signed(away, 28);
    case Form::branch19: return is_multiple(value - place, 2) && fits_signed(away, 21);
    case Form::branch14: return is_multiple(value - place, 2) && fits_signed(away, 16);
  }
  return false;
}

void write_relocation(const RelocationKind& kind, std::byte* bytes, std::uint64_t place,
                      std::uint64_t value) {
  const std::uint64_t away = value - place;
  switch (kind.form) {
    case Form::absolute64: return put(bytes, value);
    case Form::relative64: return put(bytes, away);
    case Form::absolute32:
    case Form::absolute32_signed:
    case Form::absolute32_either: return put(bytes, static_cast<std::uint32_t>(value));
    case Form::relative32: return put(bytes, static_cast<std::uint32_t>(away));
    case Form::relative21: return patch_adr(bytes, away);
    case Form::relative21_page:
      return patch_adr(bytes, ((value & page_mask) - (place & page_mask)) >> 12);
    case Form::low12: return patch(bytes, (value & ~page_mask) >> kind.shift, 12, 10);
    case Form::branch26: return patch(bytes, away >> 2, 26, 0);
    case Form::branch19: return patch(bytes, away >> 2, 19, 5);
    case Form::branch14: return patch(bytes, away >> 2, 14, 5);
  }
}

}  // namespace heterosis
