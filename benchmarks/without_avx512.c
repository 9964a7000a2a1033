/* Answers for the processor, as one without AVX-512 would: loaded before all else (LD_PRELOAD) where
   without_avx512.py has put what no processor runs in the place of cpuid. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

static struct sigaction before;

/* Bits of answers, by the leaf and the subleaf that are asked for. */
static void hide(uint32_t leaf, uint32_t subleaf, uint32_t* a, uint32_t* b, uint32_t* c, uint32_t* d) {
  if (leaf == 7 && subleaf == 0) {
    /* F, DQ, IFMA, PF, ER, CD, BW, VL */
    *b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    /* VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
    *c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
    /* 4VNNIW, 4FMAPS, VP2INTERSECT, and AMX: BF16, FP16, tiles, INT8 */
    *d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  }
  if (leaf == 7 && subleaf == 1) *a &= ~(1u << 4 | 1u << 5); /* AVX-VNNI, BF16 */
  if (leaf == 0xd && subleaf == 0) *a &= ~0xe0u;             /* the state of wide registers */
}

static void refused(int signal, siginfo_t* information, void* context) {
  (void)signal, (void)information;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uint8_t* at = (const uint8_t*)registers[REG_RIP];
  if (at[0] != 0x06 || at[1] != 0xa2) {
    sigaction(SIGILL, &before, 0); /* none of ours: it is refused again, and dealt with as before */
    return;
  }
  uint32_t leaf = (uint32_t)registers[REG_RAX], subleaf = (uint32_t)registers[REG_RCX], a, b, c, d;
  __cpuid_count(leaf, subleaf, a, b, c, d);
  hide(leaf, subleaf, &a, &b, &c, &d);
  registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

/* Before the constructors of other libraries, which ask. */
__attribute__((constructor(101))) static void begin(void) {
  struct sigaction ours = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigaction(SIGILL, &ours, &before);
}
