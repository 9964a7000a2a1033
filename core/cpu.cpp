#include "cpu.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace heterosis {

#if defined(__x86_64__)

std::vector<std::string> cpu_features() {
  __builtin_cpu_init();
  std::vector<std::string> found;
  // A macro, because the builtin takes nothing but a literal.
#define HX_FEATURE(name) \
  if (__builtin_cpu_supports(name)) found.emplace_back(name)
  HX_FEATURE("sse2");
  HX_FEATURE("sse4.1");
  HX_FEATURE("avx");
  HX_FEATURE("avx2");
  HX_FEATURE("fma");
  HX_FEATURE("f16c");
  HX_FEATURE("bmi");
  HX_FEATURE("bmi2");
  HX_FEATURE("avx512f");
  HX_FEATURE("avx512cd");
  HX_FEATURE("avx512bw");
  HX_FEATURE("avx512dq");
  HX_FEATURE("avx512vl");
  HX_FEATURE("avx512vnni");
  HX_FEATURE("avx512bf16");
#undef HX_FEATURE
  return found;
}

#elif defined(__aarch64__) && defined(__linux__)

std::vector<std::string> cpu_features() {
  const unsigned long capabilities = getauxval(AT_HWCAP);
  std::vector<std::string> found;
  if (capabilities & HWCAP_ASIMD) found.emplace_back("neon");
  if (capabilities & HWCAP_ASIMDHP) found.emplace_back("fullfp16");
  if (capabilities & HWCAP_ASIMDDP) found.emplace_back("dotprod");
  if (capabilities & HWCAP_SVE) found.emplace_back("sve");
  return found;
}

#elif defined(__aarch64__)

std::vector<std::string> cpu_features() { return {"neon"}; }

#else

std::vector<std::string> cpu_features() { return {}; }

#endif

}  // namespace heterosis
