// The arithmetic of every AArch64 form against encodings from the architecture manual, so that it
// is checked on any processor; loaded snippets check x86-64's.
#include <elf.h>

#include <cstring>

#include "../relocations.h"
#include "testing.h"

using namespace heterosis;

namespace {

constexpr std::uint64_t place = 0x40001000;

struct Case {
  std::uint32_t type, before;
  std::uint64_t value;
  std::uint32_t after;
};

const Case cases[] = {
    {R_AARCH64_CALL26, 0x94000000, place + 0x1000, 0x94000400},              // bl +0x1000
    {R_AARCH64_JUMP26, 0x14000000, place - 4, 0x17ffffff},                   // b -4
    {R_AARCH64_CONDBR19, 0x54000000, place + 8, 0x54000040},                 // b.eq +8
    {R_AARCH64_TSTBR14, 0x36000000, place - 8, 0x3607ffc0},                  // tbz w0, #0, -8
    {R_AARCH64_LD_PREL_LO19, 0x58000000, place + 16, 0x58000080},            // ldr x0, +16
    {R_AARCH64_ADR_PREL_LO21, 0x10000000, place + 5, 0x30000020},            // adr x0, +5
    {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, place + 0x3010, 0xf0000000},    // adrp x0, +3 pages
    {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, place - 0x1000, 0xf0ffffe0},    // adrp x0, -1 page
    {R_AARCH64_ADR_GOT_PAGE, 0x90000000, place + 0x4008, 0x90000020},        // adrp x0, +4 pages
    {R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, place + 0xabc, 0x912af000},      // add x0, x0, #0xabc
    {R_AARCH64_LDST8_ABS_LO12_NC, 0x39400000, place + 0x123, 0x39448c00},    // ldrb w0
    {R_AARCH64_LDST16_ABS_LO12_NC, 0x79400000, place + 0x124, 0x79424800},   // ldrh
    {R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, place + 0x124, 0xb9412400},   // ldr w0
    {R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, place + 0x128, 0xf9409400},   // ldr x0
    {R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, place + 0x130, 0x3dc04c00},  // ldr q0
    {R_AARCH64_LD64_GOT_LO12_NC, 0xf9400000, place + 8, 0xf9400400},         // ldr x0, [x0, #8]
    {R_AARCH64_PREL32, 0, place - 2, 0xfffffffe},
    {R_AARCH64_ABS32, 0, 0x89abcdef, 0x89abcdef},
};

struct Limit {
  std::uint16_t machine;
  std::uint32_t type;
  std::uint64_t value;
  bool reached;
};

const Limit limits[] = {
    {EM_AARCH64, R_AARCH64_CALL26, place + 0x7fffffc, true},
    {EM_AARCH64, R_AARCH64_CALL26, place + 0x8000000, false},
    {EM_AARCH64, R_AARCH64_CALL26, place - 0x8000000, true},
    {EM_AARCH64, R_AARCH64_CALL26, place + 2, false},
    {EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, place + 4, false},
    {EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, place + 0xfffff000, true},
    {EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, place + 0x100000000, false},
    {EM_X86_64, R_X86_64_PC32, place + 0x7fffffff, true},
    {EM_X86_64, R_X86_64_PC32, place + 0x80000000, false},
    {EM_X86_64, R_X86_64_PC32, place - 0x80000000, true},
    {EM_X86_64, R_X86_64_32, 0xffffffff, true},
    {EM_X86_64, R_X86_64_32, 0x100000000, false},
    {EM_X86_64, R_X86_64_32S, 0x80000000, false},
    {EM_X86_64, R_X86_64_32S, 0xffffffff80000000, true},
    {EM_X86_64, R_X86_64_64, ~std::uint64_t{0}, true},
};

std::uint32_t written(const RelocationKind& kind, std::uint32_t before, std::uint64_t value) {
  std::byte bytes[8];
  std::memcpy(bytes, &before, sizeof before);
  write_relocation(kind, bytes, place, value);
  std::uint32_t after;
  std::memcpy(&after, bytes, sizeof after);
  return after;
}

}  // namespace

void test_relocations() {
  for (const Case& c : cases) {
    const RelocationKind* kind = find_relocation(EM_AARCH64, c.type);
    CHECK(kind && reaches(*kind, place, c.value));
    const std::uint32_t after = written(*kind, c.before, c.value);
    if (after != c.after) std::fprintf(stderr, "%s: %08x, not %08x\n", kind->name, after, c.after);
    CHECK(after == c.after);
  }
  for (const Limit& l : limits) {
    const RelocationKind* kind = find_relocation(l.machine, l.type);
    CHECK(kind && reaches(*kind, place, l.value) == l.reached);
  }
  CHECK(!find_relocation(EM_X86_64, 12345));
  CHECK(relocation_kinds(EM_MIPS).empty());
}
