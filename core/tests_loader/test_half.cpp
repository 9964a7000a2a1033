#include <bit>
#include <cmath>

#include "../half_calls.h"
#include "testing.h"

using namespace heterosis;

namespace {

std::uint32_t bits(float carrier) { return std::bit_cast<std::uint32_t>(carrier); }

// Every half there and back, and the points halfway between two neighbours.
void test_halves() {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = half_to_float(std::bit_cast<float>(half));
    const bool is_nan = (half & 0x7fff) > 0x7c00;
    CHECK(std::isnan(value) == is_nan);
    CHECK(bits(float_to_half(value)) == (is_nan ? half | 0x200 : half));
    if ((half & 0x7fff) >= 0x7bff) continue;
    const double next = half_to_float(std::bit_cast<float>(half + 1));
    const double middle = (value + next) / 2;
    CHECK(bits(double_to_half(middle)) == half + (half & 1));
    CHECK(bits(double_to_half(std::nextafter(middle, next))) == half + 1);
    CHECK(bits(double_to_half(std::nextafter(middle, value))) == half);
  }
  CHECK(bits(float_to_half(65504)) == 0x7bff && bits(float_to_half(65519.99f)) == 0x7bff);
  CHECK(bits(float_to_half(65520)) == 0x7c00 && bits(float_to_half(-1e30f)) == 0xfc00);
  CHECK(bits(double_to_half(1e-320)) == 0 && bits(double_to_half(-1e300)) == 0xfc00);
}

void test_bfloats() {
  for (std::uint32_t number = 0; number < 0x10000; ++number) {
    const float value = std::bit_cast<float>(number << 16);
    const bool is_nan = (number & 0x7fff) > 0x7f80;
    CHECK(bits(float_to_bfloat(value)) == (is_nan ? number | 0x40 : number));
    if ((number & 0x7fff) >= 0x7f80) continue;
    const float middle = std::bit_cast<float>((number << 16) | 0x8000);
    CHECK(bits(float_to_bfloat(middle)) == number + (number & 1));
    CHECK(bits(float_to_bfloat(std::bit_cast<float>((number << 16) | 0x8001))) == number + 1);
  }
  CHECK(bits(double_to_bfloat(1e300)) == 0x7f80);
}

}  // namespace

void test_half() {
  test_halves();
  test_bfloats();
}
