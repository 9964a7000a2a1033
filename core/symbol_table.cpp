#include "symbol_table.h"

#include <math.h>
#include <string.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include "half_calls.h"

namespace heterosis {
namespace {

using Table = std::map<std::string, void*, std::less<>>;

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

// What LLVM itself calls where a processor has no instruction for the job.
Table built_in() {
  using Float1 = float(float);
  using Double1 = double(double);
  return {
      {"memcpy", address_of<void*(void*, const void*, size_t)>(memcpy)},
      {"memmove", address_of<void*(void*, const void*, size_t)>(memmove)},
      {"memset", address_of<void*(void*, int, size_t)>(memset)},
      {"memcmp", address_of<int(const void*, const void*, size_t)>(memcmp)},
      {"floor", address_of<Double1>(floor)},
      {"floorf", address_of<Float1>(floorf)},
      {"ceil", address_of<Double1>(ceil)},
      {"ceilf", address_of<Float1>(ceilf)},
      {"trunc", address_of<Double1>(trunc)},
      {"truncf", address_of<Float1>(truncf)},
      {"round", address_of<Double1>(round)},
      {"roundf", address_of<Float1>(roundf)},
      {"rint", address_of<Double1>(rint)},
      {"rintf", address_of<Float1>(rintf)},
      {"nearbyint", address_of<Double1>(nearbyint)},
      {"nearbyintf", address_of<Float1>(nearbyintf)},
      // Not every C library has these; nobody here leaves the rounding mode that makes them equal.
      {"roundeven", address_of<Double1>(rint)},
      {"roundevenf", address_of<Float1>(rintf)},
      {"fma", address_of<double(double, double, double)>(fma)},
      {"fmaf", address_of<float(float, float, float)>(fmaf)},
      {"fmod", address_of<double(double, double)>(fmod)},
      {"fmodf", address_of<float(float, float)>(fmodf)},
      {"__extendhfsf2", address_of(half_to_float)},
      {"__truncsfhf2", address_of(float_to_half)},
      {"__truncdfhf2", address_of(double_to_half)},
      {"__truncsfbf2", address_of(float_to_bfloat)},
      {"__truncdfbf2", address_of(double_to_bfloat)},
  };
}

struct Symbols {
  std::mutex mutex;
  Table table = built_in();
};

Symbols& symbols() {
  static Symbols* const all = new Symbols;  // never destroyed: code may be loaded until the end
  return *all;
}

}  // namespace

void register_symbol(std::string name, void* address) {
  if (name.empty() || !address)
    throw std::invalid_argument("register_symbol: expected a name and an address, got '" + name +
                                "' without " + (address ? "a name" : "an address"));
  const std::scoped_lock lock(symbols().mutex);
  symbols().table.insert_or_assign(std::move(name), address);
}

void* find_symbol(std::string_view name) {
  const std::scoped_lock lock(symbols().mutex);
  const auto found = symbols().table.find(name);
  return found == symbols().table.end() ? nullptr : found->second;
}

}  // namespace heterosis
